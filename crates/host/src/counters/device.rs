//! A block device's counters: `/sys/dev/block/M:N/stat`, in the order of Documentation/block/stat.

use serde::{Deserialize, Serialize};
use units::Sectors;

/// Since the device came. Kernels before 5.5 count no flushes, before 4.18 no discards: zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounters {
    /// Reads.
    pub reads: Requests,
    /// Writes.
    pub writes: Requests,
    /// Discards.
    pub discards: Requests,
    /// Flushes of the write cache.
    pub flushes: u64,
    /// What they took, together, ms.
    pub flush_ms: u64,
    /// Requests at the device now.
    pub in_flight: u64,
    /// Time with at least one request in flight, ms.
    pub busy_ms: u64,
    /// Time of all requests added up, ms.
    pub queue_ms: u64,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// Completed.
    pub completed: u64,
    /// Merged into another before they were sent.
    pub merged: u64,
    /// Moved.
    pub sectors: Sectors,
    /// What they took from being queued to completion, together, ms.
    pub time_ms: u64,
}

impl Requests {
    fn add(&mut self, other: &Requests) {
        self.completed += other.completed;
        self.merged += other.merged;
        self.sectors.0 += other.sectors.0;
        self.time_ms += other.time_ms;
    }
}

impl DeviceCounters {
    /// Several devices as one: what they did adds up; they were busy as long as one of them on average.
    pub(super) fn together<'a>(
        devices: impl ExactSizeIterator<Item = &'a DeviceCounters>,
    ) -> Option<DeviceCounters> {
        let count = devices.len() as u64;
        let mut all = devices.fold(DeviceCounters::default(), |mut all, device| {
            all.reads.add(&device.reads);
            all.writes.add(&device.writes);
            all.discards.add(&device.discards);
            all.flushes += device.flushes;
            all.flush_ms += device.flush_ms;
            all.in_flight += device.in_flight;
            all.busy_ms += device.busy_ms;
            all.queue_ms += device.queue_ms;
            all
        });
        all.busy_ms = all.busy_ms.checked_div(count)?;
        Some(all)
    }

    /// From the one line of `stat`.
    pub(super) fn parse(line: &str) -> Option<DeviceCounters> {
        let fields: Vec<u64> =
            line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        if fields.len() < 11 {
            return None;
        }
        let at = |index: usize| fields.get(index).copied().unwrap_or(0);
        let requests = |first: usize| Requests {
            completed: at(first),
            merged: at(first + 1),
            sectors: Sectors(at(first + 2)),
            time_ms: at(first + 3),
        };
        Some(DeviceCounters {
            reads: requests(0),
            writes: requests(4),
            in_flight: at(8),
            busy_ms: at(9),
            queue_ms: at(10),
            discards: requests(11),
            flushes: at(15),
            flush_ms: at(16),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_devices_as_one() {
        let line = "10 1 80 5 20 2 160 8 3 14 35 0 0 0 0 4 2";
        let one = DeviceCounters::parse(line).unwrap();
        let both = DeviceCounters::together([one, one].iter()).unwrap();
        assert_eq!((both.reads.completed, both.writes.time_ms, both.flushes), (20, 16, 8));
        assert_eq!((both.busy_ms, both.queue_ms, both.in_flight), (14, 70, 6));
        assert_eq!(DeviceCounters::together([one].iter()), Some(one));
        assert_eq!(DeviceCounters::together([].iter()), None);
    }

    #[test]
    fn fields_in_their_order_and_old_kernels_shorter_lines() {
        let line = "49504 7843 3387722 28141 23900 11426 2242920 4939 3 14984 35743 6100 7 584728 \
                    2589 4374 74";
        let counters = DeviceCounters::parse(line).unwrap();
        assert_eq!(counters.reads.completed, 49504);
        assert_eq!(counters.writes.time_ms, 4939);
        assert_eq!(counters.in_flight, 3);
        assert_eq!(counters.discards.sectors, Sectors(584_728));
        assert_eq!((counters.flushes, counters.flush_ms), (4374, 74));
        let old = DeviceCounters::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!((old.queue_ms, old.flushes), (11, 0));
        assert_eq!(DeviceCounters::parse("1 2 3"), None);
    }
}
