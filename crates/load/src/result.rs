//! From what the clients counted to a measurement, with the warnings that belong to it.

use crate::bank::{Bank, Tally};
use crate::board::{ERRNOS, Page, SHORT, UNKNOWN};
use crate::error::{LoadError, errno_name};
use crate::handles::ClientHandles;
use crate::spec::LoadSpec;
use crate::watch::Watch;
use record::{
    ClientShare, CounterSample, GeneratorCost, Histogram, JobMeasurement, JobRole, Measurement,
    OperationMeasurement, SharePermille, Warning,
};
use std::{collections::BTreeMap, sync::atomic::Ordering::Relaxed};
use units::{Bytes, Nanos};
use workload::EngineKind;

/// A client that spends more of its time than this on a CPU may be what limits.
const SATURATED: f64 = 0.9;
/// Lateness of our own above this share of the mean latency is worth a word.
const LATE: f64 = 0.05;
/// Waiting of clients for a processor above this share of the mean latency is worth a word.
const WAITED: f64 = 0.1;

pub(crate) fn measurement(
    spec: &LoadSpec,
    handles: &[ClientHandles],
    watch: Watch,
) -> Result<Measurement, LoadError> {
    let span = watch.times.end - watch.times.measure;
    let mut jobs: Vec<JobMeasurement> = handles.iter().map(job).collect();
    if let Some(failed) = jobs.iter().find(|job| job.operations() == 0 && !job.errors.is_empty()) {
        return Err(LoadError::AllFailed {
            path: spec.target.path.clone(),
            count: failed.errors.values().sum(),
            errors: failed
                .errors
                .iter()
                .map(|(name, count)| format!("{count} × {name}"))
                .collect::<Vec<_>>()
                .join(", "),
        });
    }
    let background = (jobs.len() > 1).then(|| jobs.remove(1));
    let job = jobs.remove(0);
    let [before, workers] = watch.workers;
    let generator = cost(handles, span, workers.cpu.saturating_sub(before.cpu));
    let moved = Bytes(workers.moved.0.saturating_sub(before.moved.0));
    let mut counted = BTreeMap::new();
    if spec.engine == EngineKind::IoUring {
        let per_second = moved.0 as f64 / span.as_secs_f64().max(1e-9);
        counted.insert("uring.punted/s".to_owned(), per_second);
    }
    let waited = cpu_wait(&handles[0]).filter(|_| job.operations() > 0);
    let waited = waited.map(|wait| wait.as_micros_f64() / job.operations() as f64);
    if let Some(waited) = waited {
        counted.insert("clients.cpu_wait_us".to_owned(), waited);
    }
    let counted =
        (!counted.is_empty()).then(|| CounterSample { at: span.as_secs_f64(), values: counted });
    let mut warnings = Vec::new();
    if watch.stopped {
        warnings.push(Warning::StoppedEarly { measured: span, planned: spec.measure });
    }
    warn_of_saturation(&generator, span, &mut warnings);
    warn_of_cpu_wait(waited, job.latency().mean(), &mut warnings);
    for ((clients, job), role) in handles
        .iter()
        .zip([Some(&job), background.as_ref()])
        .zip([JobRole::Measured, JobRole::Background])
    {
        if let Some(job) = job {
            warn_of_job(clients, job, role, span, &mut warnings);
        }
    }
    Ok(Measurement {
        span,
        job,
        transactions: None,
        background,
        seconds: watch.seconds,
        counters: counted.into_iter().collect(),
        generator,
        warnings,
        events: None,
        imported: None,
    })
}

fn job(clients: &ClientHandles) -> JobMeasurement {
    let open = clients.open;
    let total = |bank: fn(&Page) -> &Bank| -> Histogram {
        let mut tally = Tally::new();
        clients.board.pages().for_each(|page| tally.add(bank(page)));
        tally.histogram()
    };
    let kind = |service: Histogram, response: Option<Histogram>, bytes: Bytes| {
        OperationMeasurement { operations: service.count(), bytes, service, response }
    };
    let (reads, writes) = (total(|page| &page.read_service), total(|page| &page.write_service));
    let [read, written] = clients.moved(reads.count(), writes.count());
    JobMeasurement {
        reads: kind(reads, open.then(|| total(|page| &page.read_response)), read),
        writes: kind(writes, open.then(|| total(|page| &page.write_response)), written),
        syncs: kind(total(|page| &page.sync_service), None, Bytes::ZERO),
        clients: clients
            .board
            .pages()
            .map(|page| {
                let operations = page.read_service.count() + page.write_service.count();
                let bytes = match clients.replays {
                    true => page.bytes_read.load(Relaxed) + page.bytes_written.load(Relaxed),
                    false => operations * clients.job.block_size.0,
                };
                ClientShare { operations, bytes: Bytes(bytes) }
            })
            .collect(),
        errors: errors(clients),
    }
}

fn errors(clients: &ClientHandles) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for errno in 0..ERRNOS {
        let count: u64 = clients.board.pages().map(|page| page.errors[errno].load(Relaxed)).sum();
        if count > 0 {
            let name = match errno {
                SHORT => "short transfer".to_owned(),
                errno => errno_name(errno as i32),
            };
            errors.insert(name, count);
        }
    }
    errors
}

fn cost(handles: &[ClientHandles], span: Nanos, workers: Nanos) -> GeneratorCost {
    let mut cost = GeneratorCost::default();
    let mut busiest = Nanos::ZERO;
    for page in handles.iter().flat_map(|clients| clients.board.pages()) {
        let (user, system) = (page.user.load(Relaxed), page.system.load(Relaxed));
        cost.user += Nanos(user);
        cost.system += Nanos(system);
        cost.threads += 1;
        busiest = busiest.max(Nanos(user + system));
    }
    cost.system += workers;
    let share = busiest.0 as f64 / span.0.max(1) as f64;
    cost.busiest = SharePermille((share * 1000.0).round() as u32);
    cost
}

/// For how long the clients of a job, together, were ready to run and had no processor. None where the
/// kernel does not count that.
fn cpu_wait(clients: &ClientHandles) -> Option<Nanos> {
    let each = clients.board.pages().map(|page| page.cpu_wait.load(Relaxed));
    each.map(|wait| (wait != UNKNOWN).then_some(wait)).sum::<Option<u64>>().map(Nanos)
}

/// `waited` in microseconds an operation. Who waits for a processor takes up completions late: that is
/// part of their latency, and none of the storage's.
fn warn_of_cpu_wait(waited: Option<f64>, mean: Option<Nanos>, warnings: &mut Vec<Warning>) {
    let (Some(waited), Some(mean)) = (waited, mean) else { return };
    if waited > mean.as_micros_f64() * WAITED && waited > 1.0 {
        warnings.push(Warning::ClientsWaitedForCpu { microseconds: waited, mean_latency: mean });
    }
}

/// True of cached and null loads as well, where the generator is meant to be the limit.
pub(crate) fn warn_of_saturation(cost: &GeneratorCost, span: Nanos, warnings: &mut Vec<Warning>) {
    let busiest = f64::from(cost.busiest.0) / 1000.0;
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get()) as f64;
    let all = (cost.user + cost.system).as_secs_f64() / span.as_secs_f64().max(1e-9);
    if all > SATURATED * cpus {
        warnings.push(Warning::GeneratorSaturatesCpus { used: all, cpus: cpus as u32 });
    } else if busiest > SATURATED {
        warnings.push(Warning::GeneratorClientSaturated { busiest: cost.busiest });
    }
}

fn warn_of_job(
    clients: &ClientHandles,
    job: &JobMeasurement,
    role: JobRole,
    span: Nanos,
    warnings: &mut Vec<Warning>,
) {
    if !job.errors.is_empty() {
        warnings.push(Warning::OperationsFailed { job: role, errors: job.errors.clone() });
    }
    if job.operations() == 0 {
        warnings.push(Warning::NothingCompleted { job: role, within: span });
    }
    let sum = |cell: fn(&Page) -> &std::sync::atomic::AtomicU64| -> u64 {
        clients.board.pages().map(|page| cell(page).load(Relaxed)).sum()
    };
    let longest = |cell: fn(&Page) -> &std::sync::atomic::AtomicU64| -> Nanos {
        Nanos(clients.board.pages().map(|page| cell(page).load(Relaxed)).max().unwrap_or(0))
    };
    let latency = job.latency();
    let (backlog, oldest) = (sum(|page| &page.backlog), longest(|page| &page.oldest));
    // What is in flight at any moment is natural: rate times latency (Little's law).
    let offered = clients.job.rate.map_or(0.0, |rate| rate.per_second * span.as_secs_f64());
    if backlog as f64 > (offered * 0.01).max(1.0) && oldest > Nanos::from_millis(100)
        || oldest > Nanos::from_secs(1)
    {
        warnings.push(Warning::Backlog { job: role, operations: backlog, oldest });
    }
    let drained = longest(|page| &page.longest_drained);
    if drained > latency.max().unwrap_or(Nanos::ZERO) && drained > Nanos::from_millis(10) {
        warnings.push(Warning::InFlightLonger { job: role, age: drained, completed: true });
    }
    warn_of_lateness(
        sum(|page| &page.lateness),
        sum(|page| &page.awaited),
        latency.mean(),
        role,
        warnings,
    );
}

/// Time that passed between an arrival and its submission though the client was free.
fn warn_of_lateness(
    lateness: u64,
    awaited: u64,
    mean: Option<Nanos>,
    role: JobRole,
    warnings: &mut Vec<Warning>,
) {
    let (Some(mean), Some(late)) = (mean, lateness.checked_div(awaited).map(Nanos)) else {
        return;
    };
    if late.0 as f64 > mean.0 as f64 * LATE && late > Nanos::from_micros(1) {
        warnings.push(Warning::GeneratorLate { job: role, late, mean_response: mean });
    }
}
