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
    pub pending: Vec<(Bio, Nanos)>,
    /// Writes with FUA before a device without it: their data are written, and the next flush ends them.
    pub written: Vec<(Rq, Completion)>,
    /// Those that the running flush ends.
    pub ending: Vec<(Rq, Completion)>,
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
