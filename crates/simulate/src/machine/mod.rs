//! The kernel between clients and block layer: tasks in system calls, the page cache, write-back,
//! the filesystem's journal.
//!
//! A task is a stack of frames, as in a kernel: each step works on the topmost frame and ends it, repeats
//! it, calls another, or waits. A task is stepped only when what it waits for has happened.

mod calls;
mod file;
mod journal;
mod pace;
mod reading;
mod run;
mod server;
mod submit;
mod write_back;
mod writing;

pub(crate) use calls::{DirectCall, DirectStage, ReadCall, SyncCall, WriteCall};
pub(crate) use file::File;
use file::Layout;
pub(crate) use server::Server;

use crate::cache::{Cache, PAGE, PAGE_SECTORS};
use crate::events::{EventHash, EventKind};
use crate::spec::Spec;
use crate::stack::{JOURNAL, Rules};
use crate::stage::Stage;
use crate::volume::Volume;
use blocklayer::{Bio, BioDone, Context, Kernel};
use device::{Device, Path};
use journal::{Commit, Journal};
use pace::Pace;
use plan::Mechanism;
use random::Stream;
use reading::Reader;
use run::Runs;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};
use units::{Bytes, Nanos};
use write_back::{Flusher, Patrol, WriteOut};

/// A task's index in [`Machine::tasks`]. The first ones are the clients' operations, by slot.
pub(crate) type TaskId = u32;

/// The highest bits of a bio's id say what it belongs to.
const OF_TASK: u64 = 1 << 62;
const OF_RUN: u64 = 1 << 63;

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Frame {
    Read(ReadCall),
    Write(WriteCall),
    Direct(DirectCall),
    Sync(SyncCall),
    /// Writes a file's dirty pages out.
    WriteOut(WriteOut),
    /// Throttles a writer while too much is dirty.
    Throttle,
    /// The flusher's thread.
    Patrol(Patrol),
    /// The journal's thread.
    Commit(Commit),
    /// A stage of a database server's transaction or thread.
    Server(Stage),
}

/// How a step ended.
pub(crate) enum Step {
    /// The frame is done.
    Done,
    /// It continues at once.
    Again(Frame),
    /// It continues when the second, which it calls, is done.
    Call(Frame, Frame),
    /// It continues when all I/O that it waits for is done.
    Io(Frame),
    /// It continues when it is woken.
    Wait(Frame),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Waits for its own I/O.
    InIo,
    /// Waits for a lock, a timer, or another task.
    Parked,
    /// Waits for a free request.
    Asleep,
}

/// A task: a client in a system call, or a thread of the kernel or of a server.
#[derive(Debug)]
pub(crate) struct Task {
    pub context: Context,
    frames: Vec<Frame>,
    state: State,
    /// Completions that it waits for.
    pending: u32,
    /// The bio it could not submit yet, and since when it waits.
    asleep: Option<(Bio, Nanos)>,
    /// Which timer counts.
    timer: u64,
    plugged: bool,
    pub failed: bool,
    /// Pages that its last [`WriteOut`] wrote, and whether congestion ended it.
    written: u32,
    congested: bool,
    /// Pages dirtied since it was last throttled.
    dirtied: u32,
    last_dirtied: Nanos,
}

enum TagWaiter {
    /// A client's slot on the direct path, which the simulation resumes.
    Slot(u32),
    Task(TaskId),
}

/// The machine's state.
pub(crate) struct Machine<D: Device + ?Sized> {
    pub volume: Volume<D>,
    pub hash: EventHash,
    /// Outstanding bios.
    pub outstanding: u64,
    pub now: Nanos,
    pub kernel: Kernel,
    pub rules: Rules,
    pub cache: Cache,
    pub files: Vec<File>,
    /// Where free space begins, for files that grow.
    pub free_space: u64,
    /// Tasks whose last frame is done.
    pub finished: Vec<TaskId>,
    /// fsync calls that are done, and how long they took.
    pub synced: Vec<(TaskId, Nanos)>,
    /// Time slept for requests since the last sample.
    pub slept: Nanos,
    /// The database server that the clients use, if any.
    pub server: Option<Box<dyn Server<D>>>,
    threads: bool,
    reads_before_write: bool,
    heeds_congestion: bool,
    tasks: Vec<Task>,
    tag_waiters: Vec<VecDeque<TagWaiter>>,
    /// Decides which of a process's waiters gets the request.
    first: Stream,
    runs: Runs,
    runnable: VecDeque<TaskId>,
    timers: BinaryHeap<Reverse<(Nanos, u64, TaskId)>>,
    sequence: u64,
    readers: Vec<Reader>,
    read_ahead_pages: u32,
    flusher: Flusher,
    pace: Pace,
    journal: Journal,
    counts: Counts,
}

/// Counts since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Pages written back: by the flusher, by throttled writers, by fsync, by the journal.
    pub written: [u64; 4],
    /// Pages read because part of them was to be written.
    pub read_before_write: u64,
    pub commits: u64,
    /// How often the flusher held off because the queue was congested.
    pub held_off: u64,
    /// Time for which writers were throttled.
    pub throttled: Nanos,
}

/// The machine's state at a moment, for counters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauges {
    /// System calls go through the machine; otherwise the other fields do not matter.
    pub calls: bool,
    pub counts: Counts,
    pub hits: u64,
    pub misses: u64,
    /// Pages in memory, those that are dirty, and those that are being written.
    pub cached: u64,
    pub dirty: u64,
    pub under_write: u64,
    /// The database's own counters; `true` for sums since the beginning, shown as rates.
    pub database: Vec<(&'static str, f64, bool)>,
}

/// The indices of [`Counts::written`].
const BY_FLUSHER: usize = 0;
const BY_WRITER: usize = 1;
const BY_SYNC: usize = 2;
const BY_JOURNAL: usize = 3;

impl<D: Device + ?Sized> Machine<D> {
    /// A machine with a volume and a file of the spec's span; `contexts` are those of the clients' slots.
    pub fn new(volume: Volume<D>, spec: &Spec, contexts: &[Context]) -> Self {
        let (kernel, stack, span) = (volume.config().kernel, spec.stack, spec.span);
        let rules = Rules::of(stack, kernel);
        // In the middle of the file's space, or before files that grow.
        let middle = span.0 / 2 / PAGE_SECTORS * PAGE_SECTORS;
        let grow = spec.workload.database.is_some();
        let journal_at = rules.journal.map(|_| if grow { 0 } else { middle });
        let interleaved = stack.interleaved;
        let place = Layout::Whole { journal: journal_at, interleaved };
        let processes = contexts.iter().map(|context| context.process + 1).max().unwrap_or(0);
        let mut machine = Machine {
            hash: EventHash::new(),
            outstanding: 0,
            now: Nanos::ZERO,
            kernel,
            cache: Cache::new((stack.page_cache.0 / PAGE).min(u64::from(u32::MAX - 1)) as u32),
            files: vec![File::new(place, span.0.div_ceil(PAGE_SECTORS))],
            free_space: if journal_at.is_some() { JOURNAL.0 } else { 0 },
            finished: Vec::new(),
            synced: Vec::new(),
            slept: Nanos::ZERO,
            server: None,
            threads: false,
            reads_before_write: !stack.without.has(Mechanism::ReadBeforeWrite),
            heeds_congestion: !stack.without.has(Mechanism::Congestion),
            tasks: Vec::new(),
            tag_waiters: Vec::new(),
            first: Stream::new(spec.seed, "which sleeper is first"),
            runs: Runs::default(),
            runnable: VecDeque::new(),
            timers: BinaryHeap::new(),
            sequence: 0,
            readers: vec![Reader::default(); processes as usize],
            read_ahead_pages: (stack.read_ahead.0 / PAGE) as u32,
            flusher: Flusher::new(kernel, stack.wbt),
            pace: Pace::default(),
            journal: Journal::new(rules.journal, journal_at.unwrap_or(0), JOURNAL.0),
            counts: Counts::default(),
            rules,
            volume,
        };
        for context in contexts {
            machine.join(*context);
        }
        machine.tag_waiters.resize_with(processes as usize + 2, VecDeque::new);
        machine
    }

    /// A new task; a thread of its own when it begins with a frame.
    pub fn join(&mut self, context: Context) -> TaskId {
        let process = context.process as usize;
        if self.tag_waiters.len() <= process {
            self.tag_waiters.resize_with(process + 1, VecDeque::new);
        }
        self.tasks.push(Task {
            context,
            frames: Vec::new(),
            state: State::Running,
            pending: 0,
            asleep: None,
            timer: 0,
            plugged: false,
            failed: false,
            written: 0,
            congested: false,
            dirtied: 0,
            last_dirtied: Nanos::ZERO,
        });
        (self.tasks.len() - 1) as TaskId
    }

    /// A file of this size, written before the trial began.
    pub fn lay_out(&mut self, size: Bytes) -> u16 {
        let mut file = File::growing();
        file.grow((size.0.div_ceil(PAGE).max(1) - 1) as u32, &mut self.free_space);
        self.files.push(file);
        (self.files.len() - 1) as u16
    }

    /// A thread of a server: a task in a context of its own.
    pub fn join_thread(&mut self) -> TaskId {
        let process = self.tag_waiters.len() as u32;
        self.join(Context::of(process))
    }

    /// Pushes a frame below the one that a step returns.
    pub fn push_frame(&mut self, id: TaskId, frame: Frame) {
        self.tasks[id as usize].frames.push(frame);
    }

    /// Parks a task, whose step then ends with [`Step::Wait`], until then.
    pub fn park_until(&mut self, id: TaskId, until: Nanos) {
        self.set_timer(id, until);
    }

    /// Starts the kernel's own threads, in contexts after all others.
    pub fn start_threads(&mut self) {
        self.threads = true;
        let process = self.tag_waiters.len() as u32;
        let flusher = self.join(Context::of(process));
        self.flusher.task = flusher;
        self.start(flusher, &[Frame::Patrol(Patrol::default())]);
        if self.rules.journal.is_some() {
            let journal = self.join(Context::of(process + 1));
            self.journal.task = journal;
            self.start(journal, &[Frame::Commit(Commit::Idle)]);
        }
    }

    /// Starts an idle task with these frames, the last one first.
    pub fn start(&mut self, task: TaskId, frames: &[Frame]) {
        let at = &mut self.tasks[task as usize];
        at.frames.extend_from_slice(frames);
        at.state = State::Running;
        at.failed = false;
        self.runnable.push_back(task);
    }

    /// The present values for counters.
    pub fn gauges(&self) -> Gauges {
        let database = self.server.as_ref().map(|server| server.counters()).unwrap_or_default();
        let (hits, misses) = self.cache.found();
        Gauges {
            calls: self.threads,
            counts: self.counts,
            hits,
            misses,
            cached: self.cache.len(),
            dirty: self.cache.dirty(),
            under_write: self.cache.under_write(),
            database,
        }
    }

    pub fn failed(&self, task: TaskId) -> bool {
        self.tasks[task as usize].failed
    }

    #[inline]
    pub fn next_event(&self) -> Option<Nanos> {
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        match (self.volume.next_event(), timer) {
            (Some(volume), Some(timer)) => Some(volume.min(timer)),
            (volume, timer) => volume.or(timer),
        }
    }

    /// Ends expired timers.
    #[inline]
    pub fn end_timers(&mut self) {
        while let Some(Reverse((at, timer, task))) = self.timers.peek().copied() {
            if at > self.now {
                return;
            }
            self.timers.pop();
            if self.tasks[task as usize].timer == timer {
                self.wake_task(task);
            }
        }
    }

    /// Runs all runnable tasks.
    #[inline]
    pub fn settle(&mut self) {
        while let Some(task) = self.runnable.pop_front() {
            self.run(task);
        }
    }

    fn run(&mut self, id: TaskId) {
        loop {
            if self.tasks[id as usize].asleep.is_some() {
                self.tasks[id as usize].state = State::Asleep;
                return;
            }
            let Some(frame) = self.tasks[id as usize].frames.pop() else {
                self.unplug(id);
                self.finished.push(id);
                return;
            };
            let step = match frame {
                Frame::Read(call) => self.read(id, call),
                Frame::Write(call) => self.write(id, call),
                Frame::Direct(call) => self.direct(id, call),
                Frame::Sync(call) => self.sync(id, call),
                Frame::WriteOut(out) => self.write_out(id, out),
                Frame::Throttle => self.throttle(id),
                Frame::Patrol(patrol) => self.patrol(id, patrol),
                Frame::Commit(commit) => self.commit(id, commit),
                Frame::Server(stage) => self.serve(id, stage),
            };
            let task = &mut self.tasks[id as usize];
            match step {
                Step::Done => {}
                Step::Again(frame) => task.frames.push(frame),
                Step::Call(frame, called) => task.frames.extend([frame, called]),
                Step::Io(frame) => {
                    task.frames.push(frame);
                    if task.asleep.is_none() && task.pending > 0 {
                        task.state = State::InIo;
                        self.unplug(id);
                        return;
                    }
                }
                Step::Wait(frame) => {
                    task.frames.push(frame);
                    task.state = State::Parked;
                    self.unplug(id);
                    return;
                }
            }
        }
    }

    fn unplug(&mut self, id: TaskId) {
        let task = &mut self.tasks[id as usize];
        if std::mem::take(&mut task.plugged) {
            let process = task.context.process;
            self.volume.unplug(process, self.now);
        }
    }

    /// Wakes a parked task.
    pub fn wake_task(&mut self, id: TaskId) {
        let task = &mut self.tasks[id as usize];
        if task.state == State::Parked {
            task.state = State::Running;
            task.timer = 0;
            self.runnable.push_back(id);
        }
    }

    /// Sets a parked task's timer.
    fn set_timer(&mut self, id: TaskId, until: Nanos) {
        self.sequence += 1;
        self.tasks[id as usize].timer = self.sequence;
        self.timers.push(Reverse((until.max(self.now), self.sequence, id)));
    }

    /// A client's slot on the direct path waits for a free request.
    pub fn sleep_slot(&mut self, process: u32, slot: u32) {
        self.tag_waiters[process as usize].push_back(TagWaiter::Slot(slot));
    }

    /// Wakes one of a process's waiters: a task submits again at once, a slot is returned. A waiter that
    /// finds the request taken waits again behind the others, so that any of them may be the next.
    pub fn wake(&mut self, process: u32) -> Option<u32> {
        let tag_waiters = &mut self.tag_waiters[process as usize];
        let nth =
            if tag_waiters.len() > 1 { self.first.below(tag_waiters.len() as u64) } else { 0 };
        match tag_waiters.remove(nth as usize)? {
            TagWaiter::Slot(slot) => Some(slot),
            TagWaiter::Task(id) => {
                let (bio, since) = self.tasks[id as usize].asleep.take()?;
                self.submit(id, bio);
                let task = &mut self.tasks[id as usize];
                match &mut task.asleep {
                    Some((_, still)) => *still = since,
                    None => {
                        self.slept += self.now - since;
                        task.state = State::Running;
                        self.runnable.push_back(id);
                    }
                }
                None
            }
        }
    }

    /// A bio completed. If it belongs to the direct path, its slot is returned.
    #[inline]
    pub fn complete(&mut self, bio: &BioDone) -> Option<u32> {
        self.outstanding -= 1;
        self.hash.add(bio.at, EventKind::Done, bio.id);
        if bio.id < OF_TASK {
            return Some(bio.id as u32);
        }
        let name = bio.id as u32;
        if bio.id & OF_TASK != 0 {
            self.tasks[name as usize].failed |= bio.path == Path::OutOfRange;
            self.io_done(name);
        } else {
            self.end_run(name);
        }
        None
    }

    fn io_done(&mut self, id: TaskId) {
        let task = &mut self.tasks[id as usize];
        task.pending -= 1;
        if task.pending == 0 && task.state == State::InIo {
            task.state = State::Running;
            self.runnable.push_back(id);
        }
    }

    fn end_run(&mut self, name: u32) {
        let mut run = self.runs.end(name);
        for index in run.first..run.first + run.count {
            let slot = self.cache.peek(run.file, index);
            if let Some(slot) = slot.filter(|slot| self.cache[*slot].run == Some(name)) {
                self.cache.end_run(slot, run.write);
                let file = &mut self.files[run.file as usize];
                if self.cache[slot].dirty && file.rewritten.remove(index) {
                    file.dirty.insert(index);
                }
            }
        }
        for task in run.waiters.drain(..) {
            self.io_done(task);
        }
        if run.write {
            self.pace.written += u64::from(run.count);
            self.write_ended(run.background);
        }
    }
}

#[cfg(test)]
mod tests;
