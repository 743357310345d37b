//! cfq as 2.6.18 of RHEL 5.2 to 5.4 had it: round robin, and every write is async.

use super::super::process_queue::{Q, Queues, Settings};
use crate::bio::{Bio, Context, IoClass};
use crate::config::Resolved;
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, MayQueue, Scheduler, Side};
use device::Op;
use std::collections::{BTreeSet, VecDeque};
use units::Nanos;

/// A mean jump of more than this is seeky.
const SEEKY_SECTORS: u64 = 128 * 1024;
/// The longest idling for a seeky queue.
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);
/// More requests than this in the driver at once: the device is taken to queue commands.
const TAGGED: u32 = 4;

/// The sort key of a queue: class, round, level, order of arrival.
type Turn = (IoClass, u64, u8, u64, Q);

/// The scheduler.
#[derive(Debug)]
pub(crate) struct RoundRobinCfq {
    queues: Queues,
    /// Queues with requests, in the order of their turns.
    turns: BTreeSet<Turn>,
    turn_of: Vec<Option<Turn>>,
    served_round: Vec<u64>,
    round: [u64; 3],
    sequence: u64,
    active: Option<Q>,
    /// The active queue is empty, and idled for until then.
    idle_until: Option<Nanos>,
    /// The requests chosen in the current visit, in order of dispatch.
    visit: VecDeque<Rq>,
    tagged: bool,
}

impl RoundRobinCfq {
    pub fn new(config: &Resolved) -> Self {
        RoundRobinCfq {
            queues: Queues::new(Settings::new(config)),
            turns: BTreeSet::new(),
            turn_of: Vec::new(),
            served_round: Vec::new(),
            round: [1; 3],
            sequence: 0,
            active: None,
            idle_until: None,
            visit: VecDeque::new(),
            tagged: false,
        }
    }

    /// Adds a queue to this round or, if it was served in it, to the next.
    fn line_up(&mut self, q: Q, in_front: bool) {
        if self.turn_of.len() <= q {
            self.turn_of.resize(q + 1, None);
            self.served_round.resize(q + 1, 0);
        }
        if self.turn_of[q].is_some() || self.active == Some(q) {
            return;
        }
        let queue = &self.queues[q];
        let current = self.round[queue.class as usize];
        let round = match (in_front, self.served_round[q] >= current) {
            (true, _) => 0,
            (false, true) => current + 1,
            (false, false) => current,
        };
        self.sequence += 1;
        let turn = (queue.class, round, queue.level, self.sequence, q);
        self.turns.insert(turn);
        self.turn_of[q] = Some(turn);
    }

    fn expire_active(&mut self) {
        self.idle_until = None;
        if let Some(q) = self.active.take()
            && !self.queues[q].is_empty()
        {
            self.line_up(q, false);
        }
    }

    fn activate_next(&mut self) -> Option<Q> {
        let turn = *self.turns.first()?;
        let (class, round, _, _, q) = turn;
        if class == IoClass::Idle && self.queues.in_flight > 0 {
            return None;
        }
        self.turns.remove(&turn);
        self.turn_of[q] = None;
        let current = &mut self.round[class as usize];
        *current = (*current).max(round);
        self.served_round[q] = *current;
        let queue = &mut self.queues[q];
        queue.sent = 0;
        queue.slice_end = None;
        queue.fifo_seen = false;
        self.active = Some(q);
        Some(q)
    }

    fn is_seeky(&self, q: Q) -> bool {
        self.queues[q].seek.is_valid() && self.queues[q].seek.value() > SEEKY_SECTORS
    }

    /// How long to idle for an empty queue; `None`: not at all.
    fn idle_window(&self, q: Q) -> Option<Nanos> {
        let (queue, idle) = (&self.queues[q], self.queues.settings.slice_idle);
        let slow = queue.think.is_valid() && queue.think.value() > idle.0;
        let seeky = self.is_seeky(q);
        if !queue.sync || idle == Nanos::ZERO || slow || (self.tagged && seeky) {
            return None;
        }
        Some(if seeky { idle.min(SEEKY_IDLE) } else { idle })
    }

    /// The queue to dispatch from, or what to do instead.
    fn select(&mut self, now: Nanos) -> Result<Q, Issue> {
        let Some(q) = self.active else { return self.activate_next().ok_or(Issue::Nothing) };
        let queue = &self.queues[q];
        let over = queue.slice_end.is_some_and(|end| end <= now);
        let level = queue.level;
        let spent = !queue.sync && queue.sent >= self.queues.settings.async_requests(level);
        if !over && !spent {
            if !queue.is_empty() {
                self.idle_until = None;
                return Ok(q);
            }
            if queue.in_flight > 0 && self.queues.settings.waiting {
                return Err(queue.slice_end.map_or(Issue::Nothing, Issue::WaitUntil));
            }
            let until = self.idle_until.or_else(|| self.idle_window(q).map(|idle| now + idle));
            if let Some(until) = until.filter(|until| *until > now) {
                self.idle_until = Some(until);
                return Err(Issue::WaitUntil(until));
            }
        }
        self.expire_active();
        self.activate_next().ok_or(Issue::Nothing)
    }

    /// Takes up to `quantum` requests of the queue, and sorts them by sector.
    fn pay_visit(&mut self, q: Q, requests: &RequestTable, now: Nanos) {
        let from = self.queues.position;
        let settings = self.queues.settings;
        let most = match self.queues[q].class {
            IoClass::Idle => 1,
            _ => settings.quantum,
        };
        let queue = &mut self.queues[q];
        if queue.slice_end.is_none() {
            queue.slice_end = Some(now + settings.slice(queue.sync, queue.level));
        }
        for _ in 0..most {
            let Some(rq) = self.queues.choose(q, requests, now) else { break };
            self.queues.send(rq, requests);
            self.visit.push_back(rq);
        }
        if settings.sorting {
            let order = |rq: &Rq| (requests[*rq].start < from, requests[*rq].start);
            self.visit.make_contiguous().sort_by_key(order);
        }
        if let Some(last) = self.visit.back() {
            self.queues.position = requests[*last].end();
        }
        if self.queues[q].class == IoClass::Idle {
            self.expire_active();
        }
    }

    /// Whether a request of `q` preempts the active queue.
    fn preempts(&self, q: Q) -> bool {
        let Some(active) = self.active.filter(|active| *active != q) else { return false };
        let (new, old) = (&self.queues[q], &self.queues[active]);
        // At most once a round, so that async requests are served, too.
        let served = self.served_round.get(q).copied() >= Some(self.round[new.class as usize]);
        new.class < old.class && (new.class == IoClass::RealTime || old.class == IoClass::Idle)
            || new.class == old.class && new.sync && !old.sync && !served
    }
}

impl Scheduler for RoundRobinCfq {
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        let sync = requests[rq].op == Op::Read;
        let q = self.queues.insert(rq, sync, requests, now);
        let preempts = self.preempts(q);
        if preempts {
            self.expire_active();
        }
        self.line_up(q, preempts);
    }

    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue {
        if self.visit.is_empty() {
            match self.select(now) {
                Ok(q) => self.pay_visit(q, requests, now),
                Err(instead) => return instead,
            }
        }
        match self.visit.pop_front() {
            Some(rq) => {
                self.tagged |= self.queues.in_flight - self.visit.len() as u32 > TAGGED;
                Issue::Send(rq)
            }
            None => Issue::Nothing,
        }
    }

    fn complete(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        self.queues.complete(rq, requests, now);
    }

    fn len(&self) -> usize {
        self.queues.held + self.visit.len()
    }

    fn front(&self, _: &RequestTable, bio: &Bio) -> Option<Rq> {
        let q = self.queues.find(&bio.context, bio.op == Op::Read)?;
        self.queues[q].sorted.at(bio.end())
    }

    fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        self.queues.neighbour(requests, rq, side)
    }

    fn allows_merge(&self, _: &RequestTable, rq: Rq, _: &Bio) -> bool {
        !self.visit.contains(&rq)
    }

    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut RequestTable) {
        self.queues.moved(rq, old_start, requests);
    }

    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable) {
        self.queues.absorbed(into, gone, requests);
    }

    fn may_queue(&self, context: &Context, op: Op, _: bool) -> MayQueue {
        let waited = self.idle_until.is_some() && op == Op::Read;
        match waited && self.active == self.queues.find(context, true) {
            true => MayQueue::Must,
            false => MayQueue::Normal,
        }
    }

    fn drain(&mut self, _: &mut RequestTable, out: &mut Vec<Rq>) {
        out.extend(self.visit.drain(..));
        self.queues.drain(out);
        self.turns.clear();
        self.turn_of.fill(None);
        self.active = None;
        self.idle_until = None;
    }
}
