//! What happened in a simulated trial, event by event.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// A trial's events: their hash always, the requests' lives and the heads' ways where asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventLog {
    /// Over every event with its time, from the trial's beginning to its end: equal when, and only
    /// when, two trials were the same.
    pub hash: u64,
    /// Requests in the order in which they ended, from the end of warm-up on, up to a number.
    pub requests: Vec<RequestLife>,
    /// Heads at the ends of those requests.
    pub heads: Vec<HeadPosition>,
    /// There were more than are kept.
    pub cut: bool,
}

/// A request of the block layer from its making to its end. Times count from the end of warm-up;
/// what began before it began at zero or less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLife {
    /// Whose.
    pub process: u32,
    /// `R`, `W`, `F` (flush), `D` (discard).
    pub op: char,
    /// First sector.
    pub start: u64,
    /// Sectors.
    pub sectors: u64,
    /// When it was made, ns.
    pub queued_ns: i64,
    /// When it went to the device, ns.
    pub dispatched_ns: i64,
    /// When the device began to work on it, ns.
    pub began_ns: i64,
    /// When it was done, ns.
    pub done_ns: i64,
    /// Operations that had joined it.
    pub merged: u32,
}

/// Where a drive's head was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadPosition {
    /// When, ns from the end of warm-up.
    pub at_ns: i64,
    /// The drive, from 0.
    pub drive: u32,
    /// Its cylinder.
    pub cylinder: u32,
}

impl RequestLife {
    /// From its making to its end.
    pub fn life(&self) -> Nanos {
        Nanos((self.done_ns - self.queued_ns).max(0) as u64)
    }
}
