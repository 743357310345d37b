//! cfq of 2.6.18: round robin. Its builds differ in what they take for async, and in how async requests are
//! queued: every write, in one queue a priority (mainline, RHEL 5.2); every write, in a queue for each process (RHEL
//! 5.5); only writes that nobody waits for, in one queue a priority (its erratum).

use super::super::process_queue::{Q, Queues, Settings};
use crate::bio::{Bio, Context, IoClass};
use crate::config::Resolved;
use crate::kernel::Kernel;
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, MayQueue, Scheduler, Side};
use device::Op;
use std::collections::{BTreeSet, VecDeque};
use units::Nanos;

/// A mean jump of more than this is seeky, in mainline and RHEL 5.2.
const SEEKY_SECTORS: u64 = 128 * 1024;
/// The same in RHEL 5.5.
const RHEL_5_5_SEEKY_SECTORS: u64 = 8 * 1024;
/// The longest idling for a seeky queue.
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);
/// More requests than this in the driver at once: the device is taken to queue commands.
const TAGGED: u32 = 4;

/// A queue in line, in the order in which queues have their turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    /// The idle class comes last.
    idle_class: bool,
    /// It has I/O at the device: served only when no other waits.
    parked: bool,
    class: IoClass,
    round: u64,
    level: u8,
    /// The order of arrival.
    sequence: u64,
    q: Q,
}

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
    seeky_sectors: u64,
    /// Writes that somebody waits for are sync.
    sync_writes: bool,
}

impl RoundRobinCfq {
    pub fn new(config: &Resolved) -> Self {
        let private_async = config.kernel == Kernel::V2_6_18Rhel5_5;
        let settings = Settings { private_async, ..Settings::new(config) };
        RoundRobinCfq {
            queues: Queues::new(settings),
            turns: BTreeSet::new(),
            turn_of: Vec::new(),
            served_round: Vec::new(),
            round: [1; 3],
            sequence: 0,
            active: None,
            idle_until: None,
            visit: VecDeque::new(),
            tagged: config.tags_seen,
            seeky_sectors: match config.kernel == Kernel::V2_6_18 {
                true => SEEKY_SECTORS,
                false => RHEL_5_5_SEEKY_SECTORS,
            },
            sync_writes: config.kernel == Kernel::V2_6_18Rhel5_5Erratum,
        }
    }

    fn is_sync(&self, op: Op, waited_for: bool) -> bool {
        op == Op::Read || self.sync_writes && waited_for
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
        let turn = Turn {
            idle_class: queue.class == IoClass::Idle,
            parked: queue.in_flight > 0 && !in_front,
            class: queue.class,
            round,
            level: queue.level,
            sequence: self.sequence,
            q,
        };
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
        let Turn { class, round, q, .. } = turn;
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
        self.queues[q].seek.is_valid() && self.queues[q].seek.value() > self.seeky_sectors
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

    /// Whether a queue that has I/O at the device and no more requests stays the active one. The window of
    /// an async queue is on to begin with, and nothing turns it off.
    fn keeps_the_device(&self, q: Q) -> bool {
        let settings = &self.queues.settings;
        settings.waiting && (!self.queues[q].sync || self.idle_window(q).is_some())
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
            if queue.in_flight > 0 && self.keeps_the_device(q) {
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
        // A queue that would not be waited for has one visit at a time.
        if self.queues[q].class == IoClass::Idle || !self.keeps_the_device(q) {
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
        let sync = self.is_sync(requests[rq].op, requests[rq].sync);
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
        let q = self.queues.complete(rq, requests, now);
        let back = self.queues[q].in_flight == 0;
        if let Some(turn) = self.turn_of[q].filter(|turn| back && turn.parked) {
            self.turns.remove(&turn);
            let turn = Turn { parked: false, ..turn };
            self.turns.insert(turn);
            self.turn_of[q] = Some(turn);
        }
    }

    fn len(&self) -> usize {
        self.queues.held + self.visit.len()
    }

    fn front(&self, _: &RequestTable, bio: &Bio) -> Option<Rq> {
        let sync = self.is_sync(bio.op, bio.is_sync());
        let q = self.queues.find(&bio.context, sync)?;
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

    fn may_queue(&self, context: &Context, op: Op, sync: bool) -> MayQueue {
        let waited = self.idle_until.is_some() && self.is_sync(op, sync);
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
