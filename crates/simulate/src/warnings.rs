//! What a reader of a simulated trial's figures must know.

use record::{JobMeasurement, JobRole, Warning};
use units::Nanos;

/// Adds what a reader of one job's figures must know. `oldest`: how long the oldest operation in
/// flight at the end had been in flight.
pub(crate) fn warn(
    warnings: &mut Vec<Warning>,
    job: JobRole,
    measured: &JobMeasurement,
    span: Nanos,
    oldest: Nanos,
) {
    if let Some(&operations) = measured.errors.get("EIO") {
        warnings.push(Warning::BeyondDeviceEnd { job, operations });
    }
    if measured.operations() == 0 {
        warnings.push(Warning::NothingCompleted { job, within: span });
    }
    let longest = measured.latency().max().unwrap_or(Nanos::ZERO);
    if oldest > longest && oldest > Nanos::from_millis(10) {
        warnings.push(Warning::InFlightLonger { job, age: oldest, completed: false });
    }
}

/// Warns of operations that were due before the end and are not done: how many, and how late the first
/// is. Less than a second late is what latency alone explains.
pub(crate) fn warn_of_backlog(
    warnings: &mut Vec<Warning>,
    job: JobRole,
    (operations, oldest): (u64, Nanos),
) {
    if operations > 1 && oldest > Nanos::from_secs(1) {
        warnings.push(Warning::Backlog { job, operations, oldest });
    }
}
