//! Files: the layout of their pages on the device, dirty pages, and the inode's lock.

use crate::cache::{PAGE_SECTORS, PageSet};
use crate::machine::TaskId;
use crate::stack::{Interleaved, JOURNAL};
use std::collections::VecDeque;
use units::Nanos;

/// The layout of a file's pages on the device.
#[derive(Clone, Debug)]
pub(crate) enum Layout {
    /// From the device's start, in one piece or interleaved; with a filesystem, around the journal.
    Whole {
        /// Where the journal begins.
        journal: Option<u64>,
        interleaved: Option<Interleaved>,
    },
    /// In extents of [`EXTENT`] sectors, allocated as the file grows.
    Extents(Vec<u64>),
}

/// A growing file allocates this much at once; files that grow at the same time interleave. Assumed.
pub(crate) const EXTENT: u64 = 8 * 2048;

/// A file, or the raw device.
#[derive(Clone, Debug)]
pub(crate) struct File {
    pub place: Layout,
    /// Allocated pages; a page beyond is new and is never read.
    pub pages: u64,
    /// Dirty pages that are not under write-back.
    pub dirty: PageSet,
    /// Pages dirtied again while under write-back, or while being read.
    pub rewritten: PageSet,
    /// Since when it has had dirty pages.
    pub dirtied: Option<Nanos>,
    /// Where write-back continues its sweep.
    pub cursor: u32,
    pub lock: Lock,
}

impl File {
    pub fn new(place: Layout, pages: u64) -> Self {
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

    /// Whether there is anything to write back, now or after the present write-back.
    pub fn has_dirty(&self) -> bool {
        !self.dirty.is_empty() || !self.rewritten.is_empty()
    }

    /// An empty file that allocates extents as it grows.
    pub fn growing() -> Self {
        File::new(Layout::Extents(Vec::new()), 0)
    }

    /// The device's sector of a sector of the file.
    #[inline]
    pub fn sector(&self, sector: u64) -> u64 {
        match &self.place {
            Layout::Whole { journal, interleaved } => {
                let at = interleaved.map_or(sector, |it| it.sector(sector));
                match journal {
                    Some(journal) if at >= *journal => at + JOURNAL.0,
                    _ => at,
                }
            }
            Layout::Extents(extents) => extents[(sector / EXTENT) as usize] + sector % EXTENT,
        }
    }

    /// How many sectors from there are contiguous.
    pub fn together(&self, sector: u64) -> u64 {
        match &self.place {
            Layout::Whole { journal, interleaved } => {
                let at = interleaved.map_or(sector, |it| it.sector(sector));
                let piece = interleaved.map_or(u64::MAX, |it| it.together(sector));
                match journal {
                    Some(journal) if at < *journal => piece.min(*journal - at),
                    _ => piece,
                }
            }
            Layout::Extents(_) => EXTENT - sector % EXTENT,
        }
    }

    /// The same for a page, in pages.
    pub fn pages_together(&self, page: u32) -> u64 {
        (self.together(u64::from(page) * PAGE_SECTORS) / PAGE_SECTORS).max(1)
    }

    /// Allocates the file up to and including `page`; `free` is where free space begins.
    pub fn grow(&mut self, page: u32, free: &mut u64) {
        self.pages = self.pages.max(u64::from(page) + 1);
        if let Layout::Extents(extents) = &mut self.place {
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
    /// Takes the lock, or queues the task, which has the lock when it is woken.
    pub fn take(&mut self, task: TaskId) -> bool {
        if self.held {
            self.waiting.push_back(task);
            return false;
        }
        self.held = true;
        true
    }

    /// Releases the lock, and returns the task that has it now.
    pub fn release(&mut self) -> Option<TaskId> {
        let next = self.waiting.pop_front();
        self.held = next.is_some();
        next
    }
}
