//! Hand-worked schedules; the same examples stand in docs/scheduler.

use crate::world::{Logger, drive, ms, play, read, write};
use blocklayer::{Config, Kernel};
use units::Nanos;

/// One request at a time at the device.
fn one_at_a_time(kernel: Kernel, scheduler: &str) -> Config {
    let mut config = Config::new(kernel, 1).with_scheduler(scheduler);
    config.one_beyond = false;
    config
}
