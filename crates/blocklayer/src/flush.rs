//! Flushes: barriers that drain everything (2.6), or one flush at a time that answers all who
//! asked before it (3.10 on).

use crate::bio::Bio;
use crate::requests::Rq;
use device::Completion;
use units::Nanos;

/// From 3.10 on: one flush is at the device, and those who come meanwhile share the next.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    pub running: Option<Rq>,
    /// Writes with FUA before a device without it whose data are at the device: a flush waits for them, and then
    /// ends them all.
    pub writing: u32,
    /// Since when somebody waits for a flush that is not at the device.
    pub since: Option<Nanos>,
    pub pending: Vec<(Bio, Nanos)>,
    /// Writes with FUA before a device without it: their data are written, and the next flush ends them.
    pub written: Vec<(Rq, Completion)>,
    /// Those that the running flush ends.
    pub ending: Vec<(Rq, Completion)>,
}

/// A flush waits no longer than this for the data of other writes. Documented: the kernel's block/blk-flush.c, in its
/// description of flushes, which calls it a time-out of requests that wait.
const LONGEST_WAIT: Nanos = Nanos::from_secs(5);

impl Flushes {
    /// Whether those who wait for a flush get one.
    pub(crate) fn may_start(&self, now: Nanos) -> bool {
        let waited = self.since.is_some_and(|since| now.saturating_sub(since) >= LONGEST_WAIT);
        self.running.is_none() && (self.writing == 0 || waited)
    }
}

/// In 2.6: the request before which everything had to be done, and which goes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    /// The flush before this barrier's write is at the device.
    PreFlush(Rq),
    /// The barrier itself is at the device.
    Body(Rq),
}

/// The device's name for a flush that belongs to a barrier.
pub(crate) const PRE_FLUSH: u64 = u64::MAX;
