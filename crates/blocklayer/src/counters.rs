//! What a layer counts, and what can be seen of it at a moment.

use crate::requests::Request;
use device::Op;
use units::Nanos;

/// Sums since the layer was made. All are monotonic: subtract two copies to get an interval's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bios accepted: reads, writes, flushes, discards.
    pub bios: [u64; 4],
    /// Bios of them that joined a request that was there: reads, writes.
    pub merges: [u64; 2],
    /// RequestTable that grew together with a neighbour that was there.
    pub joins: u64,
    /// RequestTable sent to the device: reads, writes, flushes, discards.
    pub dispatched: [u64; 4],
    /// Sectors sent to the device: reads, writes.
    pub sectors: [u64; 2],
    /// Sum of the distances from each request's end to the next one's start, in dispatch order, in
    /// sectors; flushes and discards do not count.
    pub seek_sectors: u64,
    /// How many distances that sum has.
    pub seeks: u64,
    /// How many of them were zero.
    pub sequential: u64,
    /// Times a task was sent to sleep for a request.
    pub sleeps: u64,
    /// Time with requests in the layer and none at the device: idling, plugging, draining.
    pub idle_waiting: Nanos,
    /// Time with requests in the layer and room at the device.
    pub room_waiting: Nanos,
    /// Σ requests at the device × time, in nanoseconds: divided by the time, the achieved depth.
    pub depth_time: u128,
    /// Σ requests in the layer × time, in nanoseconds.
    pub queued_time: u128,
}

/// A look at the layer at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerView {
    /// RequestTable waiting in plugs, the scheduler and the dispatch list.
    pub queued: u32,
    /// RequestTable the driver has out at the device.
    pub in_driver: u32,
    /// The device.
    pub device: device::View,
}

/// The counters, and what is needed to keep them.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub counters: Counters,
    last: Nanos,
    /// Where the last dispatched request ended.
    pub end: u64,
    any: bool,
}

pub(crate) fn index(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Flush => 2,
        Op::Discard => 3,
    }
}

impl Ledger {
    /// Accounts for the time since the last call, in which this was so.
    #[inline]
    pub fn pass(&mut self, now: Nanos, queued: u32, in_driver: u32, depth: u32) {
        if now <= self.last {
            return;
        }
        let span = now - self.last;
        self.last = now;
        self.counters.depth_time += u128::from(span.0) * u128::from(in_driver);
        if queued > 0 {
            self.counters.queued_time += u128::from(span.0) * u128::from(queued);
            if in_driver == 0 {
                self.counters.idle_waiting += span;
            }
            if in_driver < depth {
                self.counters.room_waiting += span;
            }
        }
    }

    #[inline]
    pub fn dispatched(&mut self, request: &Request) {
        let counters = &mut self.counters;
        counters.dispatched[index(request.op)] += 1;
        if !matches!(request.op, Op::Read | Op::Write) {
            return;
        }
        counters.sectors[index(request.op)] += request.count;
        if self.any {
            let distance = request.start.abs_diff(self.end);
            counters.seeks += 1;
            counters.seek_sectors += distance;
            counters.sequential += u64::from(distance == 0);
        }
        self.any = true;
        self.end = request.end();
    }
}
