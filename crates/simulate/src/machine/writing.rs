//! Writes into the page cache.

use super::calls::WriteStage;
use super::run::Run;
use super::{BY_JOURNAL, Frame, Machine, Step, TaskId, WriteCall};
use crate::cache::{PAGE, Slot};
use device::Device;
use units::Nanos;

/// The result of writing to one page.
enum Touched {
    /// It is dirty now.
    Dirty,
    /// I/O is needed first; then it is tried again.
    Io,
    /// There is no memory.
    NoMemory,
}

impl<D: Device + ?Sized> Machine<D> {
    pub(super) fn write(&mut self, id: TaskId, mut call: WriteCall) -> Step {
        match call.stage {
            WriteStage::Lock => {
                call.stage = WriteStage::Pages;
                if self.rules.locks && !self.files[call.file as usize].lock.take(id) {
                    return Step::Wait(Frame::Write(call));
                }
                Step::Again(Frame::Write(call))
            }
            WriteStage::Pages => self.write_pages(id, call),
            WriteStage::Balance => {
                call.stage = WriteStage::Unlock;
                match self.must_balance(id) {
                    true => Step::Call(Frame::Write(call), Frame::Throttle),
                    false => Step::Again(Frame::Write(call)),
                }
            }
            WriteStage::Unlock => {
                if self.rules.locks {
                    self.unlock(call.file);
                }
                Step::Done
            }
        }
    }

    fn write_pages(&mut self, id: TaskId, mut call: WriteCall) -> Step {
        while call.from < call.to {
            let index = (call.from / PAGE) as u32;
            let end = call.to.min((u64::from(index) + 1) * PAGE);
            let whole = end - call.from == PAGE;
            match self.touch(id, call.file, index, whole) {
                Touched::Dirty => call.from = end,
                Touched::Io => return Step::Io(Frame::Write(call)),
                Touched::NoMemory => {
                    self.wake_flusher();
                    self.set_timer(id, self.now + Nanos::from_millis(100));
                    return Step::Wait(Frame::Write(call));
                }
            }
        }
        call.stage = WriteStage::Balance;
        Step::Again(Frame::Write(call))
    }

    fn touch(&mut self, id: TaskId, file: u16, index: u32, whole: bool) -> Touched {
        if let Some(slot) = self.cache.find(file, index) {
            let page = self.cache[slot];
            if page.reading
                && let Some(run) = page.run
            {
                self.wait_for_run(id, run);
                return Touched::Io;
            }
            // The running commit still has to write this page: a writer that changes it writes it out first,
            // and waits.
            if page.dirty && page.run.is_none() && self.journal.is_committing(page.transaction) {
                self.counts.written[BY_JOURNAL] += 1;
                let run = Run { file, first: index, count: 1, write: true, ..Run::default() };
                let run = self.submit_run(id, run, true);
                self.wait_for_run(id, run);
                return Touched::Io;
            }
            self.make_dirty(id, slot);
            return Touched::Dirty;
        }
        let new = u64::from(index) >= self.files[file as usize].pages;
        if whole || new || !self.reads_before_write {
            let Some(slot) = self.cache.insert(file, index) else { return Touched::NoMemory };
            self.files[file as usize].grow(index, &mut self.free_space);
            self.make_dirty(id, slot);
            return Touched::Dirty;
        }
        self.counts.read_before_write += 1;
        match self.fetch_page(id, file, index) {
            true => {
                if let Some(run) = self.cache.peek(file, index).and_then(|s| self.cache[s].run) {
                    self.wait_for_run(id, run);
                }
                Touched::Io
            }
            false => Touched::NoMemory,
        }
    }

    fn make_dirty(&mut self, id: TaskId, slot: Slot) {
        let page = self.cache[slot];
        let task = &mut self.tasks[id as usize];
        if !page.dirty {
            self.cache.set_dirty(slot);
            let file = &mut self.files[page.file as usize];
            file.dirtied.get_or_insert(self.now);
            match page.run {
                None => file.dirty.insert(page.index),
                Some(_) => file.rewritten.insert(page.index),
            };
            task.dirtied += 1;
        }
        task.last_dirtied = self.now;
        if let Some(transaction) = self.journal.orders(&self.cache[slot]) {
            self.cache[slot].transaction = transaction;
        }
        self.journal.touched();
    }
}
