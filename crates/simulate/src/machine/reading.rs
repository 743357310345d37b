//! Reads through the page cache, and reading ahead.

use super::run::Run;
use super::{Frame, Machine, ReadCall, Step, TaskId};
use device::Device;
use units::Nanos;

/// The read-ahead state of a client's open file. Documented: descriptions of on-demand read-ahead.
/// Sequential reads open a window that doubles up to read_ahead_kb, and the next window is read when the
/// reader enters the last one; random reads read only what they request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reader {
    file: u16,
    /// The page after the last one read.
    next: u32,
    /// Pages of the last window; 0: not sequential.
    window: u32,
    /// Where the last window begins; entering it reads the next one.
    mark: u32,
    /// Where it ends.
    ahead: u32,
}

impl<D: Device + ?Sized> Machine<D> {
    pub(super) fn read(&mut self, id: TaskId, mut call: ReadCall) -> Step {
        while call.page < call.end {
            let found = match call.counted {
                true => self.cache.peek(call.file, call.page),
                false => self.cache.find(call.file, call.page),
            };
            if !call.counted {
                self.look_ahead(id, &call, found.is_some());
                call.counted = true;
                if self.tasks[id as usize].asleep.is_some() {
                    return Step::Again(Frame::Read(call));
                }
            }
            match self.cache.peek(call.file, call.page).map(|slot| self.cache[slot]) {
                Some(page) if !page.reading => {
                    call.page += 1;
                    call.counted = false;
                }
                Some(page) => {
                    if let Some(run) = page.run {
                        self.wait_for_run(id, run);
                    }
                    return Step::Io(Frame::Read(call));
                }
                // No memory: write-back frees some.
                None if !self.fetch(id, call.file, call.page, call.end) => {
                    self.wake_flusher();
                    self.set_timer(id, self.now + Nanos::from_millis(100));
                    return Step::Wait(Frame::Read(call));
                }
                None => return Step::Again(Frame::Read(call)),
            }
        }
        Step::Done
    }

    /// Decides which pages are read with `call.page` or ahead of it, and reads them.
    fn look_ahead(&mut self, id: TaskId, call: &ReadCall, found: bool) {
        let process = self.tasks[id as usize].context.process as usize;
        let Some(reader) = self.readers.get_mut(process) else { return };
        let (max, page) = (self.read_ahead_pages, call.page);
        let sequential = reader.file == call.file && page == reader.next && (page > 0 || max > 0);
        if !sequential {
            *reader = Reader { file: call.file, next: page + 1, ..Reader::default() };
            return;
        }
        reader.next = page + 1;
        if max == 0 {
            return;
        }
        let entered = reader.window > 0 && page == reader.mark;
        if found && !entered {
            return;
        }
        let from = if found { reader.ahead } else { page };
        let window = match reader.window {
            0 => (call.end - page).next_power_of_two().saturating_mul(2).max(4),
            window => window.saturating_mul(2),
        };
        reader.window = window.min(max).max(1);
        (reader.mark, reader.ahead) = (from, from.saturating_add(reader.window));
        let ahead = reader.ahead;
        self.fetch(id, call.file, from, ahead);
    }

    /// Reads missing pages; false if there is no memory for the first one.
    fn fetch(&mut self, id: TaskId, file: u16, from: u32, to: u32) -> bool {
        let last = self.files[file as usize].pages.min(u64::from(to)) as u32;
        let mut page = from;
        while page < last {
            if self.cache.peek(file, page).is_some() {
                page += 1;
                continue;
            }
            let max = self.pages_in_bio(file, page).min(last - page);
            let mut count = 0;
            while count < max && self.cache.peek(file, page + count).is_none() {
                let Some(slot) = self.cache.insert(file, page + count) else { break };
                // In use from now on, so that the next page does not evict it.
                self.cache[slot].run = Some(u32::MAX);
                count += 1;
            }
            if count == 0 {
                return page > from;
            }
            let run = Run { file, first: page, count, ..Run::default() };
            self.submit_run(id, run, true);
            page += count;
            if self.tasks[id as usize].asleep.is_some() {
                return true;
            }
        }
        true
    }

    /// Reads one page before part of it is written; false without memory.
    pub(super) fn fetch_page(&mut self, id: TaskId, file: u16, page: u32) -> bool {
        self.fetch(id, file, page, page + 1)
    }
}
