//! deadline: sector-sorted batches, reads before writes, and a deadline for everyone.

use crate::bio::Bio;
use crate::config::Resolved;
use crate::order::{Fifo, Links, Sorted};
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, Scheduler, Side};
use device::Op;
use units::Nanos;

pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;

pub(super) fn direction(op: Op) -> usize {
    if op == Op::Read { READ } else { WRITE }
}

/// Per direction a tree by sector and a FIFO by arrival.
#[derive(Debug, Default)]
pub(super) struct Directions {
    pub trees: [Sorted; 2],
    pub fifos: [Fifo; 2],
}

impl Directions {
    pub fn insert(&mut self, rq: Rq, requests: &RequestTable, links: &mut Links) {
        let dir = direction(requests[rq].op);
        self.trees[dir].insert(requests[rq].start, rq);
        self.fifos[dir].push(links, rq);
    }

    pub fn remove(&mut self, rq: Rq, requests: &RequestTable, links: &mut Links) {
        let dir = direction(requests[rq].op);
        self.trees[dir].remove(requests[rq].start, rq);
        self.fifos[dir].remove(links, rq);
    }

    pub fn len(&self) -> usize {
        self.trees[READ].len() + self.trees[WRITE].len()
    }

    pub fn expired(&self, dir: usize, requests: &RequestTable, now: Nanos) -> bool {
        self.fifos[dir].head().is_some_and(|rq| requests[rq].deadline <= now)
    }

    pub fn moved(&mut self, rq: Rq, old_start: u64, requests: &RequestTable) {
        let tree = &mut self.trees[direction(requests[rq].op)];
        tree.remove(old_start, rq);
        tree.insert(requests[rq].start, rq);
    }

    /// `gone` leaves; `into` takes the earlier deadline and its place.
    pub fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable, links: &mut Links) {
        let dir = direction(requests[gone].op);
        self.trees[dir].remove(requests[gone].start, gone);
        if requests[gone].deadline < requests[into].deadline {
            requests[into].deadline = requests[gone].deadline;
            self.fifos[dir].replace(links, into, gone);
        } else {
            self.fifos[dir].remove(links, gone);
        }
    }

    pub fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        let tree = &self.trees[direction(requests[rq].op)];
        match side {
            Side::Latter => tree.successor(requests[rq].start, rq),
            Side::Former => tree.predecessor(requests[rq].start, rq),
        }
    }

    pub fn drain(&mut self, out: &mut Vec<Rq>) {
        for dir in [READ, WRITE] {
            self.trees[dir].drain(out);
            self.fifos[dir] = Fifo::default();
        }
    }
}

/// The scheduler of 2.6 to 4.20.
#[derive(Debug)]
pub(crate) struct Deadline {
    queues: Directions,
    links: Links,
    next: [Option<Rq>; 2],
    batching: u64,
    starved: u64,
    last_end: u64,
    expire: [Nanos; 2],
    fifo_batch: u64,
    writes_starved: u64,
    front_merges: bool,
    /// 2.6.18: only requests that follow each other without a gap are one batch.
    contiguous_batches: bool,
    sorting: bool,
}

impl Deadline {
    pub fn new(config: &Resolved) -> Self {
        let (kernel, tunables) = (config.kernel, &config.tunables);
        Deadline {
            sorting: config.sorting,
            queues: Directions::default(),
            links: Links::default(),
            next: [None; 2],
            batching: 0,
            starved: 0,
            last_end: 0,
            expire: ["read_expire", "write_expire"].map(|n| Nanos::from_millis(tunables.get(n))),
            fifo_batch: tunables.get("fifo_batch"),
            writes_starved: tunables.get("writes_starved"),
            front_merges: tunables.get("front_merges") == 1,
            contiguous_batches: kernel.is_2_6_18(),
        }
    }

    /// The next of the running batch, if the batch may go on.
    fn continued(&mut self, requests: &RequestTable) -> Option<Rq> {
        let rq = self.next[WRITE].or(self.next[READ])?;
        if self.contiguous_batches && requests[rq].start != self.last_end {
            return None;
        }
        (self.batching < self.fifo_batch).then_some(rq)
    }

    /// Reads, unless writes have been passed over often enough.
    fn choose_direction(&mut self) -> Option<usize> {
        let [reads, writes] = [READ, WRITE].map(|dir| !self.queues.trees[dir].is_empty());
        if reads {
            if writes {
                let starved = self.starved;
                self.starved += 1;
                if starved >= self.writes_starved {
                    self.starved = 0;
                    return Some(WRITE);
                }
            }
            return Some(READ);
        }
        self.starved = 0;
        writes.then_some(WRITE)
    }

    fn forget_next(&mut self, rq: Rq, requests: &RequestTable) {
        let dir = direction(requests[rq].op);
        if self.next[dir] == Some(rq) {
            self.next[dir] = self.queues.trees[dir].successor(requests[rq].start, rq);
        }
    }
}

impl Scheduler for Deadline {
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        requests[rq].deadline = now + self.expire[direction(requests[rq].op)];
        self.queues.insert(rq, requests, &mut self.links);
    }

    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue {
        let rq = match self.continued(requests) {
            Some(rq) => rq,
            None => {
                let Some(dir) = self.choose_direction() else { return Issue::Nothing };
                self.batching = 0;
                let head = self.queues.fifos[dir].head();
                let next = match self.queues.expired(dir, requests, now) {
                    true => None,
                    false => self.next[dir],
                };
                match next.or(head) {
                    Some(rq) => rq,
                    None => return Issue::Nothing,
                }
            }
        };
        let dir = direction(requests[rq].op);
        self.batching += 1;
        self.next = [None; 2];
        if self.sorting {
            self.next[dir] = self.queues.trees[dir].successor(requests[rq].start, rq);
        }
        self.last_end = requests[rq].end();
        self.queues.remove(rq, requests, &mut self.links);
        Issue::Send(rq)
    }

    fn complete(&mut self, _: Rq, _: &mut RequestTable, _: Nanos) {}

    fn len(&self) -> usize {
        self.queues.len()
    }

    fn wants_end_hash(&self) -> bool {
        false
    }

    fn back(&self, requests: &RequestTable, bio: &Bio) -> Option<Rq> {
        let queues = &self.queues;
        let before = queues.trees[direction(bio.op)].below(bio.start.0)?;
        (requests[before].end() == bio.start.0).then_some(before)
    }

    fn front(&self, _: &RequestTable, bio: &Bio) -> Option<Rq> {
        let tree = &self.queues.trees[direction(bio.op)];
        self.front_merges.then(|| tree.at(bio.end())).flatten()
    }

    fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        self.queues.neighbour(requests, rq, side)
    }

    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut RequestTable) {
        self.queues.moved(rq, old_start, requests);
    }

    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable) {
        self.forget_next(gone, requests);
        self.queues.absorbed(into, gone, requests, &mut self.links);
    }

    fn drain(&mut self, _: &mut RequestTable, out: &mut Vec<Rq>) {
        self.next = [None; 2];
        self.queues.drain(out);
    }
}
