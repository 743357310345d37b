//! Write-back: sweeps over a file's dirty pages, and the flusher thread.

use super::run::Run;
use super::{BY_FLUSHER, Frame, Machine, Step, TaskId};
use blocklayer::Kernel;
use device::Device;
use std::collections::VecDeque;
use units::Nanos;

/// How often the flusher looks for old dirty pages (vm.dirty_writeback_centisecs).
const WAKE_UP: Nanos = Nanos::from_secs(5);
/// The age from which dirty pages are old (vm.dirty_expire_centisecs).
const EXPIRY: Nanos = Nanos::from_secs(30);
/// Pages of one file that are written before the next file's turn.
const CHUNK: u32 = 1024;
/// How long the flusher waits at most for congestion to end.
const HOLD_OFF: Nanos = Nanos::from_millis(100);

/// For whom pages are written, with the index of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The flusher.
    Background,
    /// A throttled writer, which sleeps for requests.
    Blocking(usize),
    /// fsync, which omits nothing.
    Sync(usize),
}

/// A sweep over a file's dirty pages in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteOut {
    pub file: u16,
    cursor: u32,
    /// The page at which the sweep ends; `None`: continues to the end, and then once from the start.
    stop: Option<u32>,
    from: u32,
    budget: u32,
    mode: Mode,
    written: u32,
}

impl WriteOut {
    /// All dirty pages.
    pub fn all_of(file: u16, mode: Mode) -> Self {
        let (budget, stop) = (u32::MAX, Some(u32::MAX));
        WriteOut { file, cursor: 0, stop, from: 0, budget, mode, written: 0 }
    }

    /// A chunk from where the last sweep stopped, wrapping once.
    pub fn some_of(file: u16, mode: Mode, from: u32) -> Self {
        WriteOut { file, cursor: from, stop: None, from, budget: CHUNK, mode, written: 0 }
    }
}

/// What the flusher does next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Patrol {
    /// Looks for work.
    #[default]
    Look,
    /// A chunk of a file was written, because too much was dirty or because it was old.
    Wrote(u16),
}

/// The flusher's state: one thread per device, as since 2.6.32. pdflush behaves the same here: at most one
/// of its threads works on a queue.
#[derive(Debug)]
pub(crate) struct Flusher {
    pub task: TaskId,
    /// It waits for congestion to end.
    holding_off: bool,
    /// Backs off from a congested queue: before the flusher had a thread for each device.
    backs_off: bool,
    /// The file whose turn it was.
    last: u16,
    throttling: Throttling,
}

impl Flusher {
    pub fn new(kernel: Kernel, wbt: Nanos) -> Self {
        let on = kernel.multi_queue() && wbt > Nanos::ZERO;
        Flusher {
            task: 0,
            holding_off: false,
            backs_off: kernel.is_2_6_18(),
            last: 0,
            throttling: Throttling { target: on.then_some(wbt), ..Throttling::default() },
        }
    }
}

/// Write-back throttling: the limit of outstanding background writes. A window in which no read met the
/// target halves it, one in which all did raises it. Documented: the proposal of blk-wbt.
#[derive(Debug, Default)]
struct Throttling {
    target: Option<Nanos>,
    depth: u32,
    out: u32,
    waiting: VecDeque<TaskId>,
    window: Nanos,
    fastest: Option<Nanos>,
}

const WINDOW: Nanos = Nanos::from_millis(100);

impl<D: Device + ?Sized> Machine<D> {
    pub(super) fn cursor_of(&self, file: u16) -> u32 {
        self.files[file as usize].cursor
    }

    /// The next file, in turn, that has dirty pages.
    pub(super) fn next_dirty_file(&mut self) -> Option<u16> {
        let count = self.files.len() as u16;
        let turns = (1..=count).map(|step| (self.flusher.last + step) % count);
        let found = turns.into_iter().find(|file| self.files[*file as usize].has_dirty())?;
        self.flusher.last = found;
        Some(found)
    }

    pub(super) fn write_out(&mut self, id: TaskId, mut out: WriteOut) -> Step {
        loop {
            let background = out.mode == Mode::Background;
            let congested = background && self.flusher.backs_off && self.volume.congested(true);
            if congested && self.heeds_congestion {
                self.tasks[id as usize].congested = true;
                return self.end_sweep(id, out);
            }
            let Some(page) = self.next_page(&mut out) else { return self.end_sweep(id, out) };
            let running = self.cache.peek(out.file, page).and_then(|slot| self.cache[slot].run);
            if let Some(run) = running {
                self.wait_for_run(id, run);
                return Step::Io(Frame::WriteOut(out));
            }
            if background && !self.throttling_allows(id) {
                return Step::Wait(Frame::WriteOut(out));
            }
            let count = self.neighbours(&out, page);
            let run = Run {
                file: out.file,
                first: page,
                count,
                write: true,
                background,
                ..Run::default()
            };
            let by = match out.mode {
                Mode::Background => BY_FLUSHER,
                Mode::Blocking(by) | Mode::Sync(by) => by,
            };
            self.counts.written[by] += u64::from(count);
            self.submit_run(id, run, matches!(out.mode, Mode::Sync(_)));
            out.cursor = page.saturating_add(count);
            out.budget = out.budget.saturating_sub(count);
            out.written += count;
            if self.tasks[id as usize].asleep.is_some() {
                return Step::Again(Frame::WriteOut(out));
            }
        }
    }

    /// The next dirty page of a sweep, wrapping once if it may. Pages dirtied again under write-back concern
    /// only fsync, which waits for them.
    fn next_page(&self, out: &mut WriteOut) -> Option<u32> {
        if out.budget == 0 {
            return None;
        }
        let file = &self.files[out.file as usize];
        let syncs = matches!(out.mode, Mode::Sync(_));
        let next = |from: u32| match syncs {
            true => {
                [&file.dirty, &file.rewritten].into_iter().filter_map(|set| set.next(from)).min()
            }
            false => file.dirty.next(from),
        };
        if let Some(page) =
            next(out.cursor).filter(|page| Some(*page) < out.stop.or(Some(u32::MAX)))
        {
            return Some(page);
        }
        if out.stop.is_some() || out.from == 0 {
            return None;
        }
        (out.cursor, out.stop) = (0, Some(out.from));
        next(0).filter(|page| *page < out.from)
    }

    /// How many dirty pages from `page` go in one bio.
    fn neighbours(&self, out: &WriteOut, page: u32) -> u32 {
        if self.rules.page_by_page {
            return 1;
        }
        let dirty = &self.files[out.file as usize].dirty;
        let max = self.pages_in_bio(out.file, page).min(out.budget);
        let mut count = 1;
        while count < max && dirty.next(page + count) == Some(page + count) {
            count += 1;
        }
        count
    }

    fn end_sweep(&mut self, id: TaskId, out: WriteOut) -> Step {
        let file = &mut self.files[out.file as usize];
        if out.mode != Mode::Sync(super::BY_SYNC) {
            file.cursor = out.cursor;
        }
        if !file.has_dirty() {
            file.dirtied = None;
        }
        self.tasks[id as usize].written = out.written;
        Step::Done
    }

    /// The flusher: above the background threshold it writes chunk by chunk, file after file, until below
    /// it; every 5 s it writes what has been dirty for 30 s.
    pub(super) fn patrol(&mut self, id: TaskId, patrol: Patrol) -> Step {
        self.flusher.holding_off = false;
        if let Patrol::Wrote(file) = patrol {
            let task = &mut self.tasks[id as usize];
            let congested = std::mem::take(&mut task.congested);
            if congested {
                self.counts.held_off += 1;
                self.flusher.holding_off = true;
                self.set_timer(id, self.now + HOLD_OFF);
                return Step::Wait(Frame::Patrol(Patrol::Look));
            }
            let written = self.tasks[id as usize].written;
            let none_left = written == 0;
            // After a full sweep it is no longer old, even if more was dirtied meanwhile.
            if written < CHUNK && self.files[file as usize].dirtied.is_some() {
                self.files[file as usize].dirtied = Some(self.now);
            }
            if none_left {
                self.set_timer(id, self.now + HOLD_OFF);
                return Step::Wait(Frame::Patrol(Patrol::Look));
            }
        }
        let (background, _) = self.thresholds();
        let over = self.cache.dirty() + self.cache.under_write() > background;
        let file = match over {
            true => self.next_dirty_file(),
            false => self.next_old_file(),
        };
        let Some(file) = file else {
            self.set_timer(id, Nanos((self.now.0 / WAKE_UP.0 + 1) * WAKE_UP.0));
            return Step::Wait(Frame::Patrol(Patrol::Look));
        };
        let out = WriteOut::some_of(file, Mode::Background, self.cursor_of(file));
        Step::Call(Frame::Patrol(Patrol::Wrote(file)), Frame::WriteOut(out))
    }

    fn next_old_file(&self) -> Option<u16> {
        let old = |file: &super::File| {
            file.has_dirty() && file.dirtied.is_some_and(|at| at + EXPIRY <= self.now)
        };
        self.files.iter().position(old).map(|file| file as u16)
    }

    /// Wakes the flusher: there may be work.
    pub(super) fn wake_flusher(&mut self) {
        if !self.flusher.holding_off {
            self.wake_task(self.flusher.task);
        }
    }

    /// Whether the flusher may submit another write; it is woken when it may.
    fn throttling_allows(&mut self, id: TaskId) -> bool {
        let depth = self.volume.config().nr_requests;
        let throttling = &mut self.flusher.throttling;
        if throttling.target.is_none() {
            return true;
        }
        if throttling.depth == 0 {
            throttling.depth = (depth * 3 / 4).max(1);
        }
        // Background writes get half of the total limit.
        if throttling.out >= throttling.depth.div_ceil(2) {
            throttling.waiting.push_back(id);
            return false;
        }
        throttling.out += 1;
        true
    }

    /// A write of pages has ended.
    pub(super) fn write_ended(&mut self, background: bool) {
        if background && self.flusher.throttling.target.is_some() {
            let throttling = &mut self.flusher.throttling;
            throttling.out = throttling.out.saturating_sub(1);
            if let Some(task) = throttling.waiting.pop_front() {
                self.wake_task(task);
            }
        }
        if self.flusher.holding_off && !self.volume.congested(true) {
            self.flusher.holding_off = false;
            self.wake_task(self.flusher.task);
        }
    }

    /// Reports a read's latency to write-back throttling.
    #[inline]
    pub fn watch_read(&mut self, took: Nanos) {
        let max = (self.volume.config().nr_requests * 3 / 4).max(1);
        let throttling = &mut self.flusher.throttling;
        let Some(target) = throttling.target else { return };
        throttling.fastest = Some(throttling.fastest.map_or(took, |fastest| fastest.min(took)));
        if self.now < throttling.window + WINDOW {
            return;
        }
        throttling.window = self.now;
        let fastest = throttling.fastest.take().unwrap_or(Nanos::ZERO);
        throttling.depth = match fastest > target {
            true => (throttling.depth / 2).max(1),
            false => (throttling.depth * 2).clamp(1, max),
        };
    }
}
