//! More was outstanding than the queue has requests.

use super::{Change, Check, Evidence, Expectation, Found, counter, lone_job, summaries};
use crate::{Analysis, CellSummary};
use plan::Factor;
use record::Run;

/// Share of the bytes, or of the mean latency, above which the wait shows in the 99th percentile.
const SHARE: f64 = 0.01;
/// Of the requests of a queue, in flight on average: with more, one is hardly ever free.
const FULL: f64 = 0.9;
/// What a device with one queue cannot exceed; samples of the counter are not taken at exact seconds.
const OF_ONE_QUEUE: f64 = 1.05;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut worst: Option<(f64, Evidence)> = None;
    for summary in summaries(analysis) {
        // The counters do not say whose waits these are.
        let workload = run.plan.workload_of(&run.plan.cells[summary.cell]);
        if !workload.is_ok_and(|(workload, _)| workload.background.is_none()) {
            continue;
        }
        let Some((share, evidence)) = waits(run, summary).filter(|(share, _)| *share > SHARE)
        else {
            continue;
        };
        cells.push(summary.cell);
        if worst.is_none_or(|(most, _)| share > most) {
            worst = Some((share, evidence));
        }
    }
    let (_, evidence) = worst?;
    Some(Found {
        cells,
        evidence,
        check: Check { change: Change::LongerQueue, expect: Expectation::ImprovesEither },
    })
}

/// How much waited: the model counts the time; on a real kernel io_uring's workers carry the bytes, and of other
/// engines all is known if the queue is full.
fn waits(run: &Run, summary: &CellSummary) -> Option<(f64, Evidence)> {
    if let Some(asleep_ms) = counter(summary, &counters::SIM_TIME_ASLEEP) {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == summary.cell);
        let means = of_cell.filter_map(|trial| trial.measurement()?.latency().mean());
        let means: Vec<f64> = means.map(|mean| mean.as_micros_f64() / 1000.0).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let share = asleep_ms / mean.max(f64::MIN_POSITIVE);
        return Some((share, Evidence::WaitedForRequest { share: share.min(1.0) }));
    }
    // What is buffered goes to the workers for other reasons.
    let direct = lone_job(run, summary).filter(|job| job.sync.direct);
    let punted = direct.and(counter(summary, &counters::URING_PUNTED)).map(|punted| {
        let share = punted / summary.bytes_per_second.max(1.0);
        (share, Evidence::Punted { share: share.min(1.0) })
    });
    punted.filter(|(share, _)| *share > SHARE).or_else(|| full(run, summary))
}

/// Whether all requests of the one queue are taken nearly all the time, and more clients would take one.
fn full(run: &Run, summary: &CellSummary) -> Option<(f64, Evidence)> {
    let cell = run.plan.cells.get(summary.cell)?;
    let (workload, _) = run.plan.workload_of(cell).ok()?;
    let outstanding = match &workload.database {
        Some(database) => u64::from(database.clients.unwrap_or(workload.job.clients)),
        None if workload.job.sync.direct => {
            u64::from(workload.job.clients) * u64::from(workload.job.depth)
        }
        // The kernel's own workers write what is buffered; its queue may well be full.
        None => return None,
    };
    // Counters of several devices are of all together.
    if run.environment.settings.iter().any(|(name, _)| name.ends_with(":nr_requests")) {
        return None;
    }
    let requests: u32 = run.level(cell, &Factor::NrRequests)?.parse().ok()?;
    let in_flight = counter(summary, &counters::DEVICE_AQU_SZ)?;
    // A device with several queues has as many in each, and more in flight than that.
    let taken = in_flight / f64::from(requests);
    (outstanding > u64::from(requests) && (FULL..OF_ONE_QUEUE).contains(&taken))
        .then_some((1.0, Evidence::QueueFull { in_flight, requests }))
}
