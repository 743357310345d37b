//! Warnings of trials.

use record::{JobRole, NotAlternated, Warning};
use std::collections::BTreeMap;

/// A warning in a sentence, without a full stop.
pub(crate) fn warning(warning: &Warning) -> String {
    match warning {
        Warning::StoppedEarly { measured, planned } => {
            format!("the trial stopped early: {measured} of {planned} were measured")
        }
        Warning::NothingCompleted { job, within } => {
            format!("no operation of {} completed within {within}", role(*job))
        }
        Warning::OperationsFailed { job, errors } => {
            format!("operations of {} failed: {}", role(*job), counts(errors))
        }
        Warning::BeyondDeviceEnd { job, operations } => {
            format!("{operations} operations of {} reached beyond the end of the device", role(*job))
        }
        Warning::InFlightLonger { job, age, completed: true } => format!(
            "an operation of {} that was in flight at the end took {age}, longer than any that \
             counts and a quarter of the trial or more: what is as slow counts too rarely; measure longer \
             (--measure)",
            role(*job)
        ),
        Warning::InFlightLonger { job, age, completed: false } => format!(
            "an operation of {} had been in flight for {age} at the end, longer than any that \
             counts and a quarter of the trial or more: what is as slow counts too rarely; measure longer \
             (--measure)",
            role(*job)
        ),
        Warning::Backlog { job, operations, oldest } => format!(
            "backlog: about {operations} operations of {} that were due before the end had not been \
             done, the first of them {oldest} late: the offered rate is above what this target \
             carries, and response times grow with the length of the trial",
            role(*job)
        ),
        Warning::TransactionBacklog { transactions, oldest } => format!(
            "backlog: {transactions} transactions were due and had not begun at the end, the first of \
             them {oldest} late: the server did not keep up with the offered rate, and response times \
             grow with the length of the trial"
        ),
        Warning::ClientsWaitedForCpu { microseconds, mean_latency } => format!(
            "clients waited {microseconds:.1} µs per operation for a CPU, out of a mean latency of \
             {mean_latency}: these latencies are not the storage's alone; fewer clients wait less"
        ),
        Warning::GeneratorSaturatesCpus { used, cpus } => format!(
            "the load generator used {used:.1} of {cpus} CPUs: the CPUs, not the storage, may be the \
             limit"
        ),
        Warning::GeneratorClientSaturated { busiest } => format!(
            "the busiest client of the load generator was on a CPU for {:.0} % of the time: it, not \
             the storage, may be the limit; more clients may give more",
            f64::from(busiest.0) / 10.0
        ),
        Warning::GeneratorLate { job, late, mean_response } => format!(
            "the load generator submitted operations of {} {late} late on average: that is part of \
             their response time (mean {mean_response}), but not of their service time",
            role(*job)
        ),
        Warning::SyncsReportedApart => {
            "fio reports fsync and fdatasync apart: its write latencies do not include them, unlike \
             those of the other engines"
                .to_owned()
        }
        Warning::NoFiguresPerSecond { clients } => {
            format!("no figures per second: fio reports {clients} clients only at the end")
        }
        Warning::CpuLimitReached { throttled } => {
            format!("a CPU limit of Spindle's own control group held it back for {throttled}")
        }
        Warning::NotCounted { devices } => format!(
            "the kernel does not count the requests of {} (queue/iostats is 0): device columns are missing, and \
             findings that need them",
            devices.join(" and ")
        ),
        Warning::NoHostCounters => "the counters of the host could not be read".to_owned(),
        Warning::PageCacheBounded { limit, cgroup_version } => format!(
            "the page cache and the load's own memory together were limited to {limit} by a control \
             group (version {cgroup_version})"
        ),
        Warning::UnsafeMountOption { option } => format!(
            "mounted with {option}: a power failure may lose or reorder writes that were reported as \
             complete; this is measured because the plan names it, and never recommended"
        ),
        Warning::ForeignServer => {
            "Spindle did not start the server: its data are what earlier trials left, and its other \
             load is unknown"
                .to_owned()
        }
        Warning::DataGoOn { .. } => {
            "cells were switched inside one running server: its data and caches are what earlier trials \
             left"
                .to_owned()
        }
        Warning::NotAlternated { variable, cause } => format!(
            "each trial got a server on fresh data, because cells cannot be switched inside one that \
             runs: {}",
            not_alternated(variable, cause)
        ),
        Warning::AnotherValue { variable, wanted, took } => {
            format!("the server was started with {variable}={wanted} and made it {took}")
        }
        Warning::EmulatorHostBusy { idle_percent } => format!(
            "the host's CPUs were only {idle_percent:.0} % idle: they, more than the model, may have \
             set these figures (the model's own times were kept)"
        ),
        Warning::ClockSet { by_seconds } => {
            let direction = if *by_seconds < 0 { "back" } else { "ahead" };
            format!(
                "the host's clock was set {direction} by {} s: times of day are in no order, durations are not \
                 affected",
                by_seconds.unsigned_abs()
            )
        }
        Warning::EmulatorNotRealTime => {
            "the server of the emulated device has no real-time priority: on a busy host its \
             completions are late"
                .to_owned()
        }
        Warning::Recorded { text } => text.clone(),
    }
}

fn not_alternated(variable: &str, cause: &NotAlternated) -> String {
    match cause {
        NotAlternated::Refused { words } => {
            format!("it does not change {variable} while it runs ({words})")
        }
        NotAlternated::TookAnother { wanted, took } => {
            format!("it made {took} of {variable}={wanted}")
        }
        NotAlternated::MadeWith => format!("data are made with {variable}"),
        NotAlternated::Unnamed => format!("not every cell names {variable}"),
    }
}

fn role(job: JobRole) -> &'static str {
    match job {
        JobRole::Measured => "the job",
        JobRole::Background => "the background job",
    }
}

/// `3 × EIO, 1 × ENOSPC`.
fn counts(errors: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> =
        errors.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    each.join(", ")
}
