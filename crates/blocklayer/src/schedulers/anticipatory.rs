//! anticipatory: after a read it idles briefly for the same process's next read.

use super::mean::Mean;
use crate::bio::Bio;
use crate::config::Resolved;
use crate::order::{Fifo, Links, Sorted};
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, Scheduler, Side};
use std::collections::BTreeMap;
use units::Nanos;

const SYNC: usize = 0;
const ASYNC: usize = 1;

/// How far back a request may be chosen, at twice the cost.
const MAX_BACK_SECTORS: u64 = 1024 * 1024;
/// Another process's request within this distance is as good; the window doubles with each millisecond of
/// idling.
const CLOSE_SECTORS: u64 = 8192;
/// Think times count up to this; after idling for this long any request is near enough.
const MAX_THINK: Nanos = Nanos::from_millis(20);

/// Statistics of a process.
#[derive(Debug, Default)]
struct Process {
    queued: u32,
    in_flight: u32,
    think: Mean,
    seek: Mean,
    last_end: Option<u64>,
    last_done: Option<Nanos>,
}

/// The state of idling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// Not idling; idling may begin.
    Off,
    /// Idles for the process's next request, until then.
    Next(Nanos),
    /// Idling ended: it does not begin again before the next sync request is sent.
    Over,
}

/// The scheduler.
#[derive(Debug)]
pub(crate) struct Anticipatory {
    trees: [Sorted; 2],
    fifos: [Fifo; 2],
    links: Links,
    processes: BTreeMap<u32, Process>,
    /// Where the last request ended: of each class, and of both.
    position: [u64; 2],
    last_end: u64,
    in_flight: u32,
    batch: usize,
    /// `None`: the time of a sync batch starts at its first completion.
    batch_ends: Option<Nanos>,
    batch_began: Nanos,
    /// The direction changed: all outstanding requests must complete first.
    draining: bool,
    write_batch: u32,
    writes_left: u32,
    /// The write batch ran out of requests, so its time says nothing.
    idled: bool,
    fifo_checked: [Nanos; 2],
    sorting: bool,
    /// The process of the last sync request sent, and when that one completed.
    last: Option<(u32, Option<Nanos>)>,
    wait: Wait,
    expire: [Nanos; 2],
    batch_expire: [Nanos; 2],
    antic_expire: Nanos,
}

impl Anticipatory {
    pub fn new(config: &Resolved) -> Self {
        let tunables = &config.tunables;
        let ms = |name| Nanos::from_millis(tunables.get(name));
        let write_batch = (tunables.get("write_batch_expire") / 10).max(2) as u32;
        Anticipatory {
            trees: Default::default(),
            fifos: Default::default(),
            links: Links::default(),
            processes: BTreeMap::new(),
            position: [0; 2],
            last_end: 0,
            in_flight: 0,
            batch: SYNC,
            batch_ends: None,
            batch_began: Nanos::ZERO,
            draining: false,
            write_batch,
            writes_left: write_batch,
            idled: false,
            fifo_checked: [Nanos::ZERO; 2],
            sorting: config.sorting,
            last: None,
            wait: Wait::Off,
            expire: ["read_expire", "write_expire"].map(ms),
            batch_expire: ["read_batch_expire", "write_batch_expire"].map(ms),
            antic_expire: if config.waiting { ms("antic_expire") } else { Nanos::ZERO },
        }
    }

    /// Nearest ahead, or behind at twice the cost, or the lowest.
    fn nearest(&self, class: usize, requests: &RequestTable) -> Option<Rq> {
        if !self.sorting {
            return self.fifos[class].head();
        }
        let (tree, position) = (&self.trees[class], self.position[class]);
        let near = |rq: &Rq| position - requests[*rq].start <= MAX_BACK_SECTORS;
        match (tree.from(position), tree.below(position).filter(near)) {
            (Some(ahead), Some(behind)) => {
                let back = 2 * (position - requests[behind].start);
                Some(if requests[ahead].start.abs_diff(position) <= back { ahead } else { behind })
            }
            (ahead, behind) => ahead.or(behind).or(tree.first()),
        }
    }

    /// Checks the oldest request's deadline, at most once per expiry time.
    fn expired_head(&mut self, class: usize, requests: &RequestTable, now: Nanos) -> Option<Rq> {
        if now < self.fifo_checked[class] + self.expire[class] {
            return None;
        }
        self.fifo_checked[class] = now;
        self.fifos[class].head().filter(|rq| requests[*rq].deadline <= now)
    }

    /// Whether this request makes idling for the last process pointless.
    fn stops_waiting(&self, rq: Option<Rq>, requests: &RequestTable, now: Nanos) -> bool {
        let Some((process, done)) = self.last else { return true };
        let Some(p) = self.processes.get(&process) else { return true };
        if p.queued > 0 || p.in_flight > 0 {
            return true;
        }
        if p.think.is_valid() && p.think.value() > self.antic_expire.0 {
            return true;
        }
        let Some(request) = rq.map(|rq| &requests[rq]) else { return false };
        if request.context.process == process {
            return true;
        }
        let distance = request.start.abs_diff(self.last_end);
        self.is_close(request.start, done, now) || (p.seek.is_valid() && p.seek.value() > distance)
    }

    fn is_close(&self, start: u64, done: Option<Nanos>, now: Nanos) -> bool {
        let waited = done.map_or(Nanos::ZERO, |done| now.saturating_sub(done));
        if waited > MAX_THINK {
            return true;
        }
        let millis = waited.0 / 1_000_000;
        let window = if millis <= 1 { CLOSE_SECTORS } else { CLOSE_SECTORS << millis };
        start + window / 2 >= self.last_end && start <= self.last_end + window
    }

    /// Begins to idle, if that is worthwhile before sending `rq`; returns the answer meanwhile.
    fn begin_to_wait(
        &mut self,
        rq: Option<Rq>,
        requests: &RequestTable,
        now: Nanos,
    ) -> Option<Issue> {
        if self.wait == Wait::Over || self.antic_expire == Nanos::ZERO {
            return None;
        }
        if self.stops_waiting(rq, requests, now) {
            return None;
        }
        let (_, done) = self.last?;
        let until = done? + self.antic_expire;
        (until > now).then(|| {
            self.wait = Wait::Next(until);
            Issue::WaitUntil(until)
        })
    }

    fn batch_is_over(&self, now: Nanos) -> bool {
        let out_of_writes = self.batch == ASYNC && self.writes_left == 0;
        out_of_writes || self.batch_ends.is_some_and(|end| end <= now)
    }

    fn change_batch(&mut self, to: usize) {
        self.draining = true;
        self.batch = to;
        self.batch_ends = None;
    }

    /// All requests have completed: the new batch begins; after writes, their number adapts to their time.
    fn begin_batch(&mut self, now: Nanos) {
        self.draining = false;
        if self.batch == ASYNC {
            self.batch_ends = Some(now + self.batch_expire[ASYNC]);
            self.writes_left = self.write_batch;
            self.idled = false;
        } else {
            self.adapt_write_batch(now);
        }
        self.batch_began = now;
    }

    fn adapt_write_batch(&mut self, now: Nanos) {
        let (took, aim) = (now.saturating_sub(self.batch_began), self.batch_expire[ASYNC]);
        let count = &mut self.write_batch;
        if took > aim && !self.idled {
            *count = if took > aim * 3 { *count / 2 } else { *count - 1 };
        } else if took < aim && self.writes_left == 0 {
            *count = if took * 3 < aim { *count * 2 } else { *count + 1 };
        }
        *count = (*count).clamp(1, 1 << 20);
    }

    /// The next request of the present or a new batch, regardless of draining.
    fn choose(&mut self, requests: &RequestTable, now: Nanos) -> Result<Rq, Issue> {
        let [reads, writes] = [SYNC, ASYNC].map(|class| !self.trees[class].is_empty());
        if !(reads && writes && self.batch_is_over(now)) {
            let rq = self.nearest(self.batch, requests);
            if self.batch == SYNC {
                if let Some(head) = self.expired_head(SYNC, requests, now) {
                    return Ok(head);
                }
                if let Some(wait) = self.begin_to_wait(rq, requests, now) {
                    return Err(wait);
                }
            }
            if let Some(rq) = rq {
                return Ok(self.expired_head(self.batch, requests, now).unwrap_or(rq));
            }
        }
        match (reads, writes, self.batch) {
            (true, false, SYNC) | (true, _, ASYNC) => {
                if self.batch == ASYNC {
                    self.idled |= self.writes_left > 0 && !writes;
                    self.change_batch(SYNC);
                }
                self.fifo_checked[SYNC] = now;
                self.fifos[SYNC].head().ok_or(Issue::Nothing)
            }
            (_, true, _) => {
                if self.batch == SYNC {
                    self.change_batch(ASYNC);
                }
                self.nearest(ASYNC, requests).ok_or(Issue::Nothing)
            }
            _ => Err(Issue::Nothing),
        }
    }

    fn send(&mut self, rq: Rq, requests: &RequestTable) {
        let request = &requests[rq];
        let class = request.queue_index as usize;
        self.trees[class].remove(request.start, rq);
        self.fifos[class].remove(&mut self.links, rq);
        self.position[class] = request.end();
        self.last_end = request.end();
        self.in_flight += 1;
        let process = self.processes.entry(request.context.process).or_default();
        process.in_flight += 1;
        process.queued -= 1;
        self.wait = Wait::Off;
        if class == SYNC {
            self.last = Some((request.context.process, None));
        } else {
            self.last = None;
            self.writes_left = self.writes_left.saturating_sub(1);
        }
    }
}

impl Scheduler for Anticipatory {
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        let class = if requests[rq].sync { SYNC } else { ASYNC };
        let request = &mut requests[rq];
        request.queue_index = class as u32;
        request.deadline = now + self.expire[class];
        let process = self.processes.entry(request.context.process).or_default();
        if class == SYNC {
            if let Some(done) = process.last_done
                && process.queued + process.in_flight == 0
            {
                process.think.add(now.saturating_sub(done).min(MAX_THINK).0);
            }
            if let Some(end) = process.last_end {
                process.seek.add(end.abs_diff(request.start));
            }
            process.last_end = Some(request.end());
        }
        process.queued += 1;
        self.trees[class].insert(request.start, rq);
        self.fifos[class].push(&mut self.links, rq);
        let waiting = matches!(self.wait, Wait::Next(_));
        if waiting && class == SYNC && self.stops_waiting(Some(rq), requests, now) {
            self.wait = Wait::Over;
        }
    }

    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue {
        if self.draining {
            if self.in_flight > 0 {
                return Issue::Nothing;
            }
            self.begin_batch(now);
        }
        // While it may wait, reads go to the device one at a time.
        if self.batch == SYNC && self.antic_expire > Nanos::ZERO && self.in_flight > 0 {
            return Issue::Nothing;
        }
        match self.wait {
            Wait::Next(until) if now < until => return Issue::WaitUntil(until),
            Wait::Next(_) => self.wait = Wait::Over,
            _ => (),
        }
        let rq = match self.choose(requests, now) {
            Ok(rq) => rq,
            Err(instead) => return instead,
        };
        if self.draining {
            if self.in_flight > 0 {
                return Issue::Nothing;
            }
            self.begin_batch(now);
        }
        self.send(rq, requests);
        Issue::Send(rq)
    }

    fn complete(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        let request = &requests[rq];
        let name = request.context.process;
        self.in_flight -= 1;
        if let Some(process) = self.processes.get_mut(&name) {
            process.in_flight -= 1;
            process.last_done = Some(now);
        }
        if request.queue_index as usize != SYNC {
            return;
        }
        if self.batch == SYNC && !self.draining && self.batch_ends.is_none() {
            self.batch_ends = Some(now + self.batch_expire[SYNC]);
        }
        if let Some((process, done @ None)) = &mut self.last
            && *process == name
        {
            *done = Some(now);
        }
    }

    fn len(&self) -> usize {
        self.trees[SYNC].len() + self.trees[ASYNC].len()
    }

    fn front(&self, requests: &RequestTable, bio: &Bio) -> Option<Rq> {
        let class = if bio.is_sync() { SYNC } else { ASYNC };
        self.trees[class].at(bio.end()).filter(|rq| requests[*rq].op == bio.op)
    }

    fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        let tree = &self.trees[requests[rq].queue_index as usize];
        match side {
            Side::Latter => tree.successor(requests[rq].start, rq),
            Side::Former => tree.predecessor(requests[rq].start, rq),
        }
    }

    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut RequestTable) {
        let tree = &mut self.trees[requests[rq].queue_index as usize];
        tree.remove(old_start, rq);
        tree.insert(requests[rq].start, rq);
    }

    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable) {
        let class = requests[gone].queue_index as usize;
        self.trees[class].remove(requests[gone].start, gone);
        if requests[gone].deadline < requests[into].deadline {
            requests[into].deadline = requests[gone].deadline;
            self.fifos[class].replace(&mut self.links, into, gone);
        } else {
            self.fifos[class].remove(&mut self.links, gone);
        }
        if let Some(process) = self.processes.get_mut(&requests[gone].context.process) {
            process.queued -= 1;
        }
    }

    fn drain(&mut self, requests: &mut RequestTable, out: &mut Vec<Rq>) {
        let from = out.len();
        self.trees.iter_mut().for_each(|tree| tree.drain(out));
        self.fifos = Default::default();
        for rq in &out[from..] {
            if let Some(process) = self.processes.get_mut(&requests[*rq].context.process) {
                process.queued -= 1;
                process.in_flight += 1;
            }
        }
        self.in_flight += (out.len() - from) as u32;
        self.last = None;
        self.wait = Wait::Off;
    }
}
