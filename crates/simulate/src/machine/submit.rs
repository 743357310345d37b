//! Submitting bios to the block layer, for tasks and for runs of pages.

use super::run::Run;
use super::{Machine, OF_RUN, OF_TASK, TagWaiter, TaskId};
use crate::cache::PAGE_SECTORS;
use crate::events::EventKind;
use blocklayer::{Bio, Context, Submitted};
use device::{Device, Op};
use units::Sectors;

impl<D: Device + ?Sized> Machine<D> {
    /// Submits a bio; without a free request the task sleeps after its step.
    pub(super) fn submit(&mut self, id: TaskId, mut bio: Bio) {
        let task = &mut self.tasks[id as usize];
        bio.context = task.context;
        task.plugged = true;
        self.outstanding += 1;
        match self.volume.submit(bio, self.now) {
            Submitted::Accepted => {
                self.hash.add(self.now, EventKind::Submitted, bio.start.0);
            }
            Submitted::MustWait => {
                self.outstanding -= 1;
                task.asleep = Some((bio, self.now));
                self.hash.add(self.now, EventKind::Slept, bio.id);
                self.tag_waiters[bio.context.process as usize].push_back(TagWaiter::Task(id));
            }
        }
    }

    /// Submits a bio whose completion the task waits for.
    pub(super) fn submit_own(&mut self, id: TaskId, op: Op, start: u64, count: u64, fua: bool) {
        self.tasks[id as usize].pending += 1;
        let bio = Bio {
            id: OF_TASK | u64::from(id),
            op,
            start: Sectors(start),
            count: Sectors(count),
            sync: true,
            fua,
            context: Context::default(),
        };
        self.submit(id, bio);
    }

    /// Flushes all devices; the task waits for that.
    pub(super) fn submit_flush(&mut self, id: TaskId) {
        let task = &mut self.tasks[id as usize];
        let bio = Bio {
            id: OF_TASK | u64::from(id),
            op: Op::Flush,
            start: Sectors(0),
            count: Sectors(0),
            sync: true,
            fua: false,
            context: task.context,
        };
        task.plugged = true;
        let flushes = self.volume.flush(bio, self.now);
        task.pending += flushes;
        self.outstanding += u64::from(flushes);
        self.hash.add(self.now, EventKind::Submitted, u64::MAX);
    }

    /// Reads or writes a run of pages; `sync`: a task waits for it.
    pub(super) fn submit_run(&mut self, id: TaskId, run: Run, sync: bool) -> u32 {
        let (file, first, count) = (run.file, run.first, run.count);
        let op = if run.write { Op::Write } else { Op::Read };
        let name = self.runs.begin(Run { live: true, ..run });
        for index in first..first + count {
            let Some(slot) = self.cache.peek(file, index) else { continue };
            if op == Op::Write {
                self.cache.begin_write(slot, name);
                self.files[file as usize].dirty.remove(index);
            } else {
                let page = &mut self.cache[slot];
                (page.run, page.reading) = (Some(name), true);
            }
        }
        let start = self.files[file as usize].sector(u64::from(first) * PAGE_SECTORS);
        let bio = Bio {
            id: OF_RUN | u64::from(name),
            op,
            start: Sectors(start),
            count: Sectors(u64::from(count) * PAGE_SECTORS),
            sync,
            fua: false,
            context: Context::default(),
        };
        self.submit(id, bio);
        name
    }

    pub(super) fn wait_for_run(&mut self, id: TaskId, run: u32) {
        self.runs.wait(run, id);
        self.tasks[id as usize].pending += 1;
    }

    /// How many pages from `page` may go in one bio.
    pub(super) fn pages_in_bio(&self, file: u16, page: u32) -> u32 {
        let file = &self.files[file as usize];
        let start = file.sector(u64::from(page) * PAGE_SECTORS);
        let room = (self.volume.room(start) / PAGE_SECTORS).max(1);
        room.min(file.pages_together(page)).min(1 << 20) as u32
    }

    /// Writes sectors of a file with direct I/O, without waiting; false if the task now sleeps for a
    /// request. Pages never cross a border of extents or stripes.
    pub fn write_direct(&mut self, id: TaskId, file: u16, from: u64, to: u64) -> bool {
        let start = self.files[file as usize].sector(from);
        self.submit_own(id, Op::Write, start, to - from, false);
        self.tasks[id as usize].asleep.is_none()
    }
}
