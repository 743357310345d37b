//! Plugging: holding requests back for a moment, so that neighbours meet.

use crate::requests::Rq;
use units::Nanos;

/// How the queue is plugged before 3.10: all of it, by a timer.
#[derive(Debug, Default)]
pub(crate) struct QueuePlug {
    /// Until when; None: unplugged.
    pub until: Option<Nanos>,
}

impl QueuePlug {
    /// How long an empty queue is held.
    pub const DELAY: Nanos = Nanos::from_millis(3);
    /// Allocated and not in flight: this many open it.
    pub const THRESHOLD: u32 = 4;
}

/// The plug lists of tasks, from 3.10 on.
#[derive(Debug, Default)]
pub(crate) struct TaskPlugs {
    lists: Vec<(u32, Vec<Rq>)>,
    spare: Vec<Vec<Rq>>,
}

/// A last request of 128 KiB or more flushes the list.
pub(crate) const LARGE_SECTORS: u64 = 256;

impl TaskPlugs {
    /// The requests that `process` holds back.
    pub fn list(&self, process: u32) -> &[Rq] {
        let found = self.lists.iter().find(|(owner, _)| *owner == process);
        found.map_or(&[], |(_, list)| list)
    }

    /// Adds one; says how many there are now.
    pub fn push(&mut self, process: u32, rq: Rq) -> usize {
        if let Some((_, list)) = self.lists.iter_mut().find(|(owner, _)| *owner == process) {
            list.push(rq);
            return list.len();
        }
        let mut list = self.spare.pop().unwrap_or_default();
        list.push(rq);
        self.lists.push((process, list));
        1
    }

    /// Takes a process's list.
    pub fn take(&mut self, process: u32) -> Option<Vec<Rq>> {
        let at = self.lists.iter().position(|(owner, _)| *owner == process)?;
        Some(self.lists.swap_remove(at).1)
    }

    /// Gives an emptied list back for use by another.
    pub fn recycle(&mut self, mut list: Vec<Rq>) {
        list.clear();
        self.spare.push(list);
    }
}
