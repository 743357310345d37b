//! A recorded trace in place of the measured job.

use crate::board::{Control, Page, add};
use crate::buffer::Buffers;
use crate::engines::Action;
use crate::source::{Source, Step};
use std::sync::Arc;
use trace::{Entry, Trace, TraceOp};
use units::{Bytes, Nanos, Sectors};
use workload::{Job, Order, Pattern, ReplayMode, SyncMode};

/// How many processes are distinguished; further ones share these.
const MAX_PROCESSES: u32 = 1024;
/// The largest number of outstanding requests of all processes of an open replay. One that reaches it waits,
/// and its response times include that.
const MAX_OUTSTANDING: u32 = 1024;
/// The memory that the buffers of an open replay may take at most.
const MAX_BUFFERS: u64 = 256 << 20;

/// A trace, and how it is replayed on a span of a target.
#[derive(Debug)]
pub struct ReplayLoad {
    trace: Arc<Trace>,
    mode: ReplayMode,
    span: Sectors,
    job: Job,
    /// The entries of each client; none where clients share all.
    of_client: Vec<Vec<u32>>,
}

impl ReplayLoad {
    /// Of a trace on the first `span` of a target, into which requests beyond are moved. `job` says how many
    /// clients there are and how deep each is where the trace is replayed as fast as possible, and which
    /// I/O priority they have.
    pub fn new(trace: Arc<Trace>, mode: ReplayMode, span: Bytes, job: &Job) -> ReplayLoad {
        let of_client = match mode {
            ReplayMode::Asap => Vec::new(),
            ReplayMode::Open | ReplayMode::Closed => trace.dealt(MAX_PROCESSES),
        };
        let has = |op: TraceOp| trace.entries.iter().any(|entry| entry.op == op);
        let (reads, writes) = (has(TraceOp::Read), has(TraceOp::Write));
        let read_percent = [0, 50, 100][usize::from(reads) + usize::from(reads && !writes)];
        let mut job = Job {
            pattern: Pattern { order: Order::Random, read_percent },
            block_size: trace.longest().bytes().max(Bytes(512)),
            sync: SyncMode::DIRECT,
            rate: None,
            ..job.clone()
        };
        if mode != ReplayMode::Asap {
            job.clients = of_client.len() as u32;
            job.depth = 1;
        }
        if mode == ReplayMode::Open {
            let one = Buffers::size(job.block_size.0, job.clients, reads, writes).max(1);
            let fitting = (MAX_BUFFERS / one).min(u64::from(MAX_OUTSTANDING / job.clients));
            let most = of_client.iter().map(Vec::len).max().unwrap_or(1) as u64;
            job.depth = fitting.min(most).max(1) as u32;
        }
        ReplayLoad { trace, mode, span: span.sectors(), job, of_client }
    }

    /// The job in whose place it is: as many clients, as deep, with blocks as long as the longest request.
    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// What all its requests are multiples of.
    pub(crate) fn multiple(&self) -> Bytes {
        self.trace.multiple().bytes()
    }

    /// Whether latency counts from the recorded times, too.
    pub(crate) fn is_open(&self) -> bool {
        self.mode == ReplayMode::Open
    }

    fn entry(&self, place: u32) -> Entry {
        self.trace.entries[place as usize].within(self.span)
    }

    fn own(&self, client: u32) -> &[u32] {
        self.of_client.get(client as usize).map_or(&[], Vec::as_slice)
    }
}

/// What one client replays.
pub(crate) struct Recorded<'a> {
    replay: &'a ReplayLoad,
    control: &'a Control,
    page: &'a Page,
    start: Nanos,
    /// What is left of its own entries.
    own: &'a [u32],
    /// In mode closed: when its think time ends.
    not_before: Nanos,
    /// In mode asap: nothing is left.
    exhausted: bool,
}

impl<'a> Recorded<'a> {
    pub fn new(
        replay: &'a ReplayLoad,
        (control, page): (&'a Control, &'a Page),
        client: u32,
        start: Nanos,
    ) -> Self {
        let own = replay.own(client);
        // A process's first request is issued at its recorded time.
        let not_before = start + own.first().map_or(Nanos::ZERO, |first| replay.entry(*first).at);
        Recorded { replay, control, page, start, own, not_before, exhausted: false }
    }

    fn step(&self, place: u32, intended: Nanos) -> Step {
        let entry = self.replay.entry(place);
        let action = match (entry.op, entry.fua) {
            (TraceOp::Read, _) => Action::Read,
            (TraceOp::Write, false) => Action::Write,
            (TraceOp::Write, true) => Action::WriteThrough,
            (TraceOp::Flush, _) => Action::Fdatasync,
        };
        Step {
            action,
            offset: entry.start.bytes().0,
            length: entry.count.bytes().0 as u32,
            preflush: entry.preflush && entry.op == TraceOp::Write,
            intended,
            tag: place,
        }
    }

    /// When the next of its own entries may begin.
    fn due_of(&self, place: u32) -> Nanos {
        match self.replay.mode {
            ReplayMode::Closed => self.not_before,
            ReplayMode::Open | ReplayMode::Asap => self.start + self.replay.entry(place).at,
        }
    }
}

impl Source for Recorded<'_> {
    fn next(&mut self, now: Nanos) -> Option<Step> {
        let (place, intended) = if self.replay.mode == ReplayMode::Asap {
            let place = self.control.next_entry();
            self.exhausted = place >= self.replay.trace.entries.len() as u64;
            (!self.exhausted).then_some((place as u32, now))?
        } else {
            let (&place, rest) = self.own.split_first()?;
            let due = self.due_of(place);
            if due > now {
                return None;
            }
            self.own = rest;
            (place, due)
        };
        add(&self.page.begun, 1);
        Some(self.step(place, intended))
    }

    fn due(&self) -> Option<Nanos> {
        self.own.first().map(|place| self.due_of(*place))
    }

    fn is_open(&self) -> bool {
        self.replay.is_open()
    }

    fn follows(&mut self, _: Action) -> Option<Action> {
        None
    }

    fn ended(&mut self, step: &Step, well: bool, now: Nanos) {
        add(&self.page.finished, 1);
        if well {
            let reads = step.action == Action::Read;
            let moved = if reads { &self.page.bytes_read } else { &self.page.bytes_written };
            add(moved, step.length.into());
        }
        if self.replay.mode == ReplayMode::Closed
            && let Some(&next) = self.own.first()
        {
            let done = self.replay.entry(step.tag);
            let before = done.at + done.service.unwrap_or_default();
            self.not_before = now + self.replay.entry(next).at.saturating_sub(before);
        }
    }

    fn is_done(&self) -> bool {
        match self.replay.mode {
            ReplayMode::Asap => self.exhausted,
            ReplayMode::Open | ReplayMode::Closed => self.own.is_empty(),
        }
    }

    fn backlog(&self, end: Nanos) -> Option<(u64, Nanos)> {
        let first = self.own.first().filter(|_| self.is_open())?;
        let due = |place: &u32| self.start + self.replay.entry(*place).at < end;
        Some((self.own.partition_point(due) as u64, self.due_of(*first)))
    }
}
