//! What cfq and bfq share: a queue for each process's sync requests, shared ones for async.

use super::mean::Mean;
use crate::bio::{Context, IoClass};
use crate::config::Resolved;
use crate::order::{Fifo, Links, Sorted};
use crate::requests::{RequestTable, Rq};
use crate::scheduler::Side;
use std::collections::BTreeMap;
use units::Nanos;

/// A queue's index in [`Queues`].
pub(super) type Q = usize;

/// The tunables of cfq, of which bfq has some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub quantum: u32,
    pub fifo_expire_sync: Nanos,
    pub fifo_expire_async: Nanos,
    pub back_seek_sectors: u64,
    pub back_seek_penalty: u64,
    pub slice_sync: Nanos,
    pub slice_async: Nanos,
    pub slice_async_rq: u32,
    pub slice_idle: Nanos,
    /// Whether the nearest request goes first, or the oldest.
    pub sorting: bool,
    /// Whether an empty queue may keep the device.
    pub waiting: bool,
    /// Whether each process has an async queue of its own.
    pub private_async: bool,
    /// Whether a new queue starts with a long think time.
    pub thinks_first: bool,
}

impl Settings {
    pub fn new(config: &Resolved) -> Self {
        let tunables = &config.tunables;
        let ms = |name| Nanos::from_millis(tunables.get(name));
        Settings {
            quantum: tunables.get("quantum") as u32,
            fifo_expire_sync: ms("fifo_expire_sync"),
            fifo_expire_async: ms("fifo_expire_async"),
            back_seek_sectors: tunables.get("back_seek_max") * 2,
            back_seek_penalty: tunables.get("back_seek_penalty"),
            slice_sync: ms("slice_sync"),
            slice_async: ms("slice_async"),
            slice_async_rq: tunables.get("slice_async_rq") as u32,
            slice_idle: if config.waiting { ms("slice_idle") } else { Nanos::ZERO },
            waiting: config.waiting,
            sorting: config.sorting,
            private_async: false,
            thinks_first: false,
        }
    }

    /// base + base/5 · (4 − level).
    pub fn slice(&self, sync: bool, level: u8) -> Nanos {
        let base = if sync { self.slice_sync } else { self.slice_async };
        Nanos(base.0 * (9 - u64::from(level.min(7))) / 5)
    }

    /// How many async requests a slice may dispatch: 16 at level 4.
    pub fn async_requests(&self, level: u8) -> u32 {
        2 * self.slice_async_rq * (8 - u32::from(level.min(7)))
    }
}

/// One queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub sync: bool,
    pub class: IoClass,
    pub level: u8,
    pub sorted: Sorted,
    pub fifo: Fifo,
    /// Requests dispatched and not completed.
    pub in_flight: u32,
    /// Requests so far.
    pub requests: u64,
    /// Requests dispatched in this slice.
    pub sent: u32,
    pub slice_end: Option<Nanos>,
    /// The oldest request was checked in this slice.
    pub fifo_seen: bool,
    pub think: Mean,
    pub seek: Mean,
    /// Which of the last 32 requests were not near their predecessor: one bit each.
    pub jumps: u32,
    pub last_end: Option<u64>,
    pub last_done: Option<Nanos>,
    /// It had four or more requests queued at once in this slice.
    pub deep: bool,
    /// It has the device: think times do not count meanwhile.
    pub in_service: bool,
}

impl Queue {
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
    /// RequestTable it has here and at the device.
    pub fn depth(&self) -> u32 {
        self.sorted.len() as u32 + self.in_flight
    }
}

/// All queues, their requests, and the choice of the next request in a queue.
#[derive(Debug)]
pub(super) struct Queues {
    pub all: Vec<Queue>,
    by_process: BTreeMap<u32, Q>,
    /// Async queues by class and level, and by process where it has its own.
    by_level: BTreeMap<(IoClass, u8, Option<u32>), Q>,
    pub links: Links,
    pub settings: Settings,
    /// Where the last request sent ended.
    pub position: u64,
    pub in_flight: u32,
    pub sync_in_flight: u32,
    pub held: usize,
}

impl std::ops::Index<Q> for Queues {
    type Output = Queue;
    fn index(&self, q: Q) -> &Queue {
        &self.all[q]
    }
}

impl std::ops::IndexMut<Q> for Queues {
    fn index_mut(&mut self, q: Q) -> &mut Queue {
        &mut self.all[q]
    }
}

impl Queues {
    pub fn new(settings: Settings) -> Self {
        Queues {
            all: Vec::new(),
            by_process: BTreeMap::new(),
            by_level: BTreeMap::new(),
            links: Links::default(),
            settings,
            position: 0,
            in_flight: 0,
            sync_in_flight: 0,
            held: 0,
        }
    }

    pub fn find(&self, context: &Context, sync: bool) -> Option<Q> {
        match sync {
            true => self.by_process.get(&context.process).copied(),
            false => self.by_level.get(&self.level(context)).copied(),
        }
    }

    fn level(&self, context: &Context) -> (IoClass, u8, Option<u32>) {
        let own = self.settings.private_async.then_some(context.process);
        (context.class, context.level, own)
    }

    /// Redirects a process's sync requests to this queue.
    pub fn join(&mut self, process: u32, q: Q) {
        self.by_process.insert(process, q);
    }

    fn find_or_make(&mut self, context: &Context, sync: bool) -> Q {
        let next = self.all.len();
        let level = self.level(context);
        let q = match sync {
            true => *self.by_process.entry(context.process).or_insert(next),
            false => *self.by_level.entry(level).or_insert(next),
        };
        if q == next {
            self.all.push(Queue { sync, ..Queue::default() });
        }
        let queue = &mut self.all[q];
        if queue.is_empty() {
            // A changed priority takes effect when the queue next becomes busy.
            (queue.class, queue.level) = (context.class, context.level);
        }
        q
    }

    /// Adds a request to its queue, and updates the statistics of its process.
    pub fn insert(&mut self, rq: Rq, sync: bool, requests: &mut RequestTable, now: Nanos) -> Q {
        let context = requests[rq].context;
        let q = self.find_or_make(&context, sync);
        let settings = self.settings;
        let request = &mut requests[rq];
        request.queue_index = q as u32;
        request.deadline = now
            + match sync {
                true => settings.fifo_expire_sync,
                false => settings.fifo_expire_async,
            };
        let queue = &mut self.all[q];
        if sync {
            let most = settings.slice_idle * 2;
            let thought = match queue.last_done {
                Some(done) => Some(now.saturating_sub(done).min(most)),
                None => Some(most).filter(|_| settings.thinks_first && queue.is_empty()),
            };
            if let Some(thought) = thought.filter(|_| queue.in_flight == 0 && !queue.in_service) {
                queue.think.add(thought.0);
            }
            let jump = queue.last_end.map_or(0, |end| end.abs_diff(request.start));
            if queue.last_end.is_some() {
                queue.seek.add(jump);
            }
            queue.jumps = queue.jumps << 1 | u32::from(jump > 800);
            queue.last_end = Some(request.end());
        }
        queue.requests += 1;
        queue.sorted.insert(request.start, rq);
        queue.fifo.push(&mut self.links, rq);
        queue.deep |= queue.depth() >= 4;
        self.held += 1;
        q
    }

    fn remove(&mut self, rq: Rq, requests: &RequestTable) {
        let queue = &mut self.all[requests[rq].queue_index as usize];
        queue.sorted.remove(requests[rq].start, rq);
        queue.fifo.remove(&mut self.links, rq);
        self.held -= 1;
    }

    /// Removes a request that is dispatched.
    pub fn send(&mut self, rq: Rq, requests: &RequestTable) {
        self.remove(rq, requests);
        let queue = &mut self.all[requests[rq].queue_index as usize];
        queue.in_flight += 1;
        queue.sent += 1;
        self.in_flight += 1;
        self.sync_in_flight += u32::from(queue.sync);
        self.position = requests[rq].end();
    }

    pub fn complete(&mut self, rq: Rq, requests: &RequestTable, now: Nanos) -> Q {
        let q = requests[rq].queue_index as usize;
        let queue = &mut self.all[q];
        queue.in_flight -= 1;
        queue.last_done = Some(now);
        self.in_flight -= 1;
        self.sync_in_flight -= u32::from(queue.sync);
        q
    }

    /// The oldest request, once per slice and if it has expired; otherwise the nearest.
    pub fn choose(&mut self, q: Q, requests: &RequestTable, now: Nanos) -> Option<Rq> {
        let queue = &mut self.all[q];
        let head = queue.fifo.head()?;
        if !queue.fifo_seen {
            queue.fifo_seen = true;
            if requests[head].deadline <= now {
                return Some(head);
            }
        }
        self.nearest(q, requests)
    }

    /// The nearest request: ahead, or behind up to back_seek_max, where distance counts back_seek_penalty
    /// times; otherwise the lowest.
    pub fn nearest(&self, q: Q, requests: &RequestTable) -> Option<Rq> {
        if !self.settings.sorting {
            return self.all[q].fifo.head();
        }
        let sorted = &self.all[q].sorted;
        let position = self.position;
        let ahead = sorted.from(position);
        let behind = sorted
            .below(position)
            .filter(|rq| position - requests[*rq].start <= self.settings.back_seek_sectors);
        match (ahead, behind) {
            (Some(a), Some(b)) => {
                let forward = requests[a].start.abs_diff(position);
                let back = (position - requests[b].start) * self.settings.back_seek_penalty;
                Some(if forward <= back { a } else { b })
            }
            (Some(a), None) => Some(a),
            (None, Some(b)) => Some(b),
            (None, None) => sorted.first(),
        }
    }

    /// Which of two starts is nearer, in the sense of `nearest`.
    pub fn is_nearer(&self, start: u64, than: u64) -> bool {
        let cost = |start: u64| match self.position.checked_sub(start) {
            Some(back) if back > self.settings.back_seek_sectors => (true, start),
            Some(back) if back > 0 => (false, back * self.settings.back_seek_penalty),
            _ => (false, start - self.position),
        };
        cost(start) < cost(than)
    }

    pub fn moved(&mut self, rq: Rq, old_start: u64, requests: &RequestTable) {
        let sorted = &mut self.all[requests[rq].queue_index as usize].sorted;
        sorted.remove(old_start, rq);
        sorted.insert(requests[rq].start, rq);
    }

    pub fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable) {
        self.remove(gone, requests);
        requests[into].deadline = requests[into].deadline.min(requests[gone].deadline);
    }

    pub fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        let sorted = &self.all[requests[rq].queue_index as usize].sorted;
        match side {
            Side::Latter => sorted.successor(requests[rq].start, rq),
            Side::Former => sorted.predecessor(requests[rq].start, rq),
        }
    }

    /// Removes all requests, as if dispatched.
    pub fn drain(&mut self, out: &mut Vec<Rq>) {
        for queue in &mut self.all {
            let before = out.len();
            queue.sorted.drain(out);
            queue.fifo = Fifo::default();
            let count = (out.len() - before) as u32;
            queue.in_flight += count;
            self.in_flight += count;
            self.sync_in_flight += if queue.sync { count } else { 0 };
        }
        self.held = 0;
    }
}
