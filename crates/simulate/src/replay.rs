//! A recorded trace in place of the measured job.

use std::collections::VecDeque;
use trace::{Entry, Trace, TraceOp};
use units::{Nanos, Sectors};
use workload::ReplayMode;

/// A trace and how to replay it.
#[derive(Clone, Copy, Debug)]
pub struct ReplaySpec<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// When its requests are issued.
    pub mode: ReplayMode,
    /// In mode `asap`: the largest number of outstanding requests.
    pub outstanding: u32,
    /// Requests beyond the span are moved into it; without this, such a trace is refused.
    pub wrap: bool,
}

/// How many processes are distinguished; further ones share these.
pub(crate) const MAX_PROCESSES: u32 = 4096;

/// The largest number of outstanding requests of all processes. An open replay that reaches it waits, and
/// its response times include that.
const MAX_SLOTS: u32 = 1 << 16;

/// Samples of counters that a replay may always have: an hour of seconds.
const MIN_SAMPLES: u64 = 3600;

/// A longer replay may have one sample more for so many requests: one costs about 2 KB of memory.
const REQUESTS_A_SAMPLE: u64 = 128;

impl ReplaySpec<'_> {
    /// The time between two samples of counters: whole seconds, one wherever memory and run file stay in
    /// proportion to the trace.
    pub(crate) fn sampling_step(&self) -> Nanos {
        let entries = &self.trace.entries;
        let length_s = entries.last().map_or(0, |last| last.at.0 / 1_000_000_000);
        let samples = MIN_SAMPLES + entries.len() as u64 / REQUESTS_A_SAMPLE;
        Nanos::from_secs(length_s.div_ceil(samples).max(1))
    }

    /// How many clients replay the trace.
    pub(crate) fn clients(&self) -> u32 {
        self.trace.processes.clamp(1, MAX_PROCESSES)
    }

    /// Requests that each client may have outstanding.
    pub(crate) fn slots(&self) -> u32 {
        let most = match self.mode {
            ReplayMode::Closed => 1,
            ReplayMode::Asap => self.outstanding.clamp(1, MAX_SLOTS / self.clients()),
            ReplayMode::Open => (MAX_SLOTS / self.clients()).max(1),
        };
        most.min(self.trace.entries.len() as u32).max(1)
    }
}

/// What a client may do next.
pub(crate) enum Next {
    /// Begin this request, intended for this time.
    Begin(Entry, Nanos),
    /// Nothing before this time.
    At(Nanos),
    /// Nothing before a request completes, or nothing more at all.
    Nothing,
}

/// The state of a replay.
pub(crate) struct Replaying<'a> {
    entries: &'a [Entry],
    span: Sectors,
    mode: ReplayMode,
    outstanding: u32,
    /// The remaining entries of each client.
    of_client: Vec<VecDeque<u32>>,
    /// In mode `closed`: when each client's think time ends.
    not_before: Vec<Nanos>,
    /// In mode `asap`: the next entry.
    cursor: usize,
    in_flight: u32,
    left: usize,
}

impl<'a> Replaying<'a> {
    pub fn new(spec: &ReplaySpec<'a>, span: Sectors) -> Self {
        let of_client: Vec<VecDeque<u32>> =
            spec.trace.dealt(MAX_PROCESSES).into_iter().map(VecDeque::from).collect();
        Replaying {
            entries: &spec.trace.entries,
            span,
            mode: spec.mode,
            outstanding: spec.outstanding.max(1),
            // A process's first request is issued at its recorded time.
            not_before: of_client
                .iter()
                .map(|own| own.front().map_or(Nanos::ZERO, |at| entry(spec, *at).at))
                .collect(),
            of_client,
            cursor: 0,
            in_flight: 0,
            left: spec.trace.entries.len(),
        }
    }

    /// Whether all requests have been issued and completed.
    pub fn is_done(&self) -> bool {
        self.left == 0 && self.in_flight == 0
    }

    /// What `client`, which has a free slot, may do at `now`.
    pub fn next(&self, client: u32, now: Nanos) -> Next {
        let Some(&place) = self.of_client[client as usize].front() else { return Next::Nothing };
        let entry = self.entries[place as usize].within(self.span);
        let due = match self.mode {
            ReplayMode::Open => entry.at,
            ReplayMode::Closed => self.not_before[client as usize],
            ReplayMode::Asap => {
                let turn = place as usize == self.cursor && self.in_flight < self.outstanding;
                return if turn { Next::Begin(entry, now) } else { Next::Nothing };
            }
        };
        if due > now { Next::At(due) } else { Next::Begin(entry, due) }
    }

    /// `client` has begun what [`next`](Self::next) returned. Returns the client whose turn it is.
    pub fn took(&mut self, client: u32) -> Option<u32> {
        self.of_client[client as usize].pop_front();
        self.cursor += 1;
        self.in_flight += 1;
        self.left -= 1;
        self.turn()
    }

    /// A request of `client` has completed. Returns the client whose turn it is.
    pub fn done(&mut self, client: u32, ended: &Ended) -> Option<u32> {
        self.in_flight -= 1;
        if self.mode == ReplayMode::Closed
            && let Some(&next) = self.of_client[client as usize].front()
        {
            let before = ended.recorded_at + ended.recorded_service.unwrap_or_default();
            let thought = self.entries[next as usize].at.saturating_sub(before);
            self.not_before[client as usize] = ended.at + thought;
        }
        self.turn()
    }

    fn turn(&self) -> Option<u32> {
        let entry = (self.mode == ReplayMode::Asap).then(|| self.entries.get(self.cursor));
        entry.flatten().map(|entry| entry.process % self.of_client.len() as u32)
    }

    /// How many requests are due and not issued, and since when the first of them is due.
    pub fn backlog(&self, now: Nanos) -> (u64, Option<Nanos>) {
        let waiting = self.of_client.iter().flatten().map(|place| self.entries[*place as usize].at);
        let due = waiting.filter(|at| self.mode == ReplayMode::Open && *at < now);
        due.fold((0, None), |(count, first): (u64, Option<Nanos>), at| {
            (count + 1, Some(first.map_or(at, |first| first.min(at))))
        })
    }
}

fn entry<'a>(spec: &ReplaySpec<'a>, place: u32) -> &'a Entry {
    &spec.trace.entries[place as usize]
}

/// A completed request.
pub(crate) struct Ended {
    /// When it completed.
    pub at: Nanos,
    /// When it was issued in the trace, and how long it took there.
    pub recorded_at: Nanos,
    pub recorded_service: Option<Nanos>,
}

/// Whether an entry moves data.
pub(crate) fn moves_data(entry: &Entry) -> bool {
    entry.op != TraceOp::Flush
}
