//! What somebody who reads a simulated trial's figures must know.

use record::JobMeasurement;
use units::Nanos;

/// What a reader of one job's figures must know. `oldest`: how long the oldest operation in flight at
/// the end had been going on.
pub(crate) fn warn(
    warnings: &mut Vec<String>,
    role: &str,
    job: &JobMeasurement,
    span: Nanos,
    oldest: Nanos,
) {
    if let Some(failed) = job.errors.get("EIO") {
        warnings.push(format!("{failed} operations of {role} reached beyond the device's end"));
    }
    if job.operations() == 0 {
        warnings.push(format!("no operation of {role} completed within {span}"));
    }
    let longest = job.latency().max().unwrap_or(Nanos::ZERO);
    if oldest > longest && oldest > Nanos::from_millis(10) {
        warnings.push(format!(
            "an operation of {role} had been in flight for {oldest} at the end, longer than any \
             that counts: the longest latency is an underestimate"
        ));
    }
}

/// What was to begin before the end and is not done: how many, and for how long the first is due.
/// Below a second it is what latency alone leaves.
pub(crate) fn warn_of_backlog(
    warnings: &mut Vec<String>,
    role: &str,
    (count, oldest): (u64, Nanos),
) {
    if count > 1 && oldest > Nanos::from_secs(1) {
        warnings.push(format!(
            "backlog: about {count} operations of {role} that were to begin before the end were \
             not done by then, the first of them {oldest} late: the rate is above what this target \
             carries, and response times grow with the length of the trial"
        ));
    }
}
