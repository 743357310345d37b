//! Files: where their pages lie on the device, which are dirty, and who may write.

use crate::cache::{PAGE_SECTORS, PageSet};
use crate::machine::TaskId;
use crate::stack::JOURNAL;
use std::collections::VecDeque;
use units::Nanos;

/// Where a file's pages lie.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// One after the other from the device's start; with a filesystem, around the journal.
    Whole {
        /// Where the journal begins.
        journal: Option<u64>,
    },
    /// In extents of [`EXTENT`] sectors, taken as the file grows.
    Extents(Vec<u64>),
}

/// A growing file takes this much at once: an assumption; files that grow side by side interleave.
pub(crate) const EXTENT: u64 = 8 * 2048;

/// A file, or the raw device.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub place: Place,
    /// Pages that have been laid out; a page beyond is new and is never read.
    pub pages: u64,
    /// Dirty pages, but those that are on their way.
    pub dirty: PageSet,
    /// Pages that are dirty again while they are on their way to the device, or come from it.
    pub rewritten: PageSet,
    /// Since when it has dirty pages.
    pub dirtied: Option<Nanos>,
    /// Where write-back goes on: it sweeps the file again and again.
    pub cursor: u32,
    pub lock: Lock,
}

impl File {
    pub fn new(place: Place, pages: u64) -> Self {
        File {
            place,
            pages,
            dirty: PageSet::default(),
            rewritten: PageSet::default(),
            dirtied: None,
            cursor: 0,
            lock: Lock::default(),
        }
    }

    /// Whether there is anything to write back, now or when it has come back from the device.
    pub fn has_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.rewritten.is_empty()
    }

    /// An empty file that takes extents as it grows.
    pub fn growing() -> Self {
        File::new(Place::Extents(Vec::new()), 0)
    }

    /// The device's sector of a sector of the file.
    #[inline]
    pub fn sector(&self, sector: u64) -> u64 {
        match &self.place {
            Place::Whole { journal: Some(journal) } if sector >= *journal => sector + JOURNAL.0,
            Place::Whole { .. } => sector,
            Place::Extents(extents) => extents[(sector / EXTENT) as usize] + sector % EXTENT,
        }
    }

    /// How many sectors from there lie together.
    pub fn together(&self, sector: u64) -> u64 {
        match &self.place {
            Place::Whole { journal: Some(journal) } if sector < *journal => *journal - sector,
            Place::Whole { .. } => u64::MAX,
            Place::Extents(_) => EXTENT - sector % EXTENT,
        }
    }

    /// The same for a page, in pages.
    pub fn pages_together(&self, page: u32) -> u64 {
        (self.together(u64::from(page) * PAGE_SECTORS) / PAGE_SECTORS).max(1)
    }

    /// Lays the file out up to and with `page`; `free` is where free space begins.
    pub fn grow(&mut self, page: u32, free: &mut u64) {
        self.pages = self.pages.max(u64::from(page) + 1);
        if let Place::Extents(extents) = &mut self.place {
            while extents.len() as u64 * EXTENT < self.pages * PAGE_SECTORS {
                extents.push(*free);
                *free += EXTENT;
            }
        }
    }
}

/// The inode's lock: one holder, the others in order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    held: bool,
    waiting: VecDeque<TaskId>,
}

impl Lock {
    /// Takes it, or lines up: then it is given when the task is woken.
    pub fn take(&mut self, task: TaskId) -> bool {
        if self.held {
            self.waiting.push_back(task);
            return false;
        }
        self.held = true;
        true
    }

    /// Lets go, and says who has it now.
    pub fn release(&mut self) -> Option<TaskId> {
        let next = self.waiting.pop_front();
        self.held = next.is_some();
        next
    }
}
