//! bfq: shares of sectors instead of time, by weights, with budgets (B-WF2Q+, Valente and Checconi,
//! "High Throughput Disk Scheduling with Fair Bandwidth Distribution", 2010).

use super::process_queue::{Q, Queues, Settings};
use crate::bio::{Bio, Context, IoClass};
use crate::config::Resolved;
use crate::requests::{Requests, Rq};
use crate::scheduler::{Issue, Scheduler, Side, TagClass};
use std::collections::BTreeMap;
use units::Nanos;

/// Sectors of a budget before the device's rate is known.
const FIRST_BUDGET: u64 = 16_384;
/// The smallest budget is this part of the largest.
const BUDGET_PARTS: u64 = 32;
const ASYNC_CHARGE: u64 = 3;
const RAISE: u64 = 30;
/// A queue that did nothing for so long counts as an application that starts.
const RAISE_AFTER_IDLE: Nanos = Nanos::from_secs(2);
const RAISE_ROTATIONAL: Nanos = Nanos::from_millis(10_500);
const RAISE_OTHERS: Nanos = Nanos::from_millis(3750);
/// So many queues, each begun within such a time of the one before, are a burst: one application's,
/// which wants throughput, and is not raised.
const BURST: usize = 8;
const BURST_INTERVAL: Nanos = Nanos::from_millis(180);
/// A queue that begins within such a time of another is taken for the same application's, and joined
/// to it.
const JOINS_WITHIN: Nanos = Nanos::from_millis(600);
/// On a rotational device not before it is so old.
const JOINS_AFTER: Nanos = Nanos::from_millis(600);
const TIMEOUT_ASYNC: Nanos = Nanos::from_millis(40);
const SEEKY_JUMPS: u32 = 19;
/// A queue that lost the device for having nothing there goes on with what was left of its budget
/// if it comes back within so many times slice_idle of its last completion.
const IN_TIME: u64 = 3;
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);
/// More than this in flight at once within so many samples: the device queues by itself.
const TAGGED: u32 = 3;
const TAG_SAMPLES: u32 = 32;
/// A slice must last this long to say something about the device's rate, and its queue have had so
/// many requests: before, it is not known whether it is seeky.
const RATE_TIME: Nanos = Nanos::from_millis(20);
const RATE_REQUESTS: u64 = 32;
/// Asynchronous requests' part of the tags while somebody's weight is raised.
const LEAST_SIXTEENTHS: u32 = 3;
/// Tags lie in words, of which who has too many gets one in each.
const TAGS_A_WORD: u32 = 64;
const TAG_WORDS_LEAST: u32 = 4;
/// Virtual time in 2⁻²² sectors per weight.
const SHIFT: u32 = 22;

/// Why a queue lost the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Exhausted,
    Timeout,
    TooIdle,
    NoMore,
    Preempted,
}

/// A queue's place in the fair order.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    budget: u64,
    /// Sectors served since it got the device.
    served: u64,
    start: u64,
    finish: u64,
    waiting: bool,
    raised_until: Nanos,
    last_active: Option<Nanos>,
    in_burst: bool,
    /// Its next request, where that is not the nearest.
    next: Option<Rq>,
    /// What was left of its budget when it lost the device for having nothing there.
    left: Option<u64>,
}

/// Queues that began shortly after one another.
#[derive(Debug, Default)]
struct Burst {
    last: Option<Nanos>,
    queues: Vec<Q>,
    large: bool,
}

impl Burst {
    /// A queue begins: those of which it is known now that they are of a large burst.
    fn join(&mut self, q: Q, now: Nanos) -> Vec<Q> {
        if self.last.is_none_or(|last| last + BURST_INTERVAL < now) {
            *self = Burst::default();
        }
        self.last = Some(now);
        self.queues.push(q);
        self.large |= self.queues.len() >= BURST;
        if self.large { std::mem::take(&mut self.queues) } else { Vec::new() }
    }
}

/// The queue that those are joined to which begin soon after it.
#[derive(Debug)]
struct Source {
    q: Q,
    begun: Nanos,
    class: IoClass,
    level: u8,
}

/// What a process's queue will be joined to.
#[derive(Debug)]
struct Join {
    source: Q,
    begun: Nanos,
}

/// The scheduler as of 6.12, without injection, merging of cooperating queues and soft real-time
/// raising.
#[derive(Debug)]
pub(crate) struct Bfq {
    queues: Queues,
    shares: Vec<Share>,
    virtual_time: [u64; 3],
    active: Option<Q>,
    active_since: Nanos,
    idle_until: Option<Nanos>,
    burst: Burst,
    source: Option<Source>,
    joins: BTreeMap<u32, Join>,
    max_budget: u64,
    fixed_budget: bool,
    rate: Option<f64>,
    timeout_sync: Nanos,
    low_latency: bool,
    strict: bool,
    rotational: bool,
    tagged: bool,
    tag_samples: u32,
    tag_most: u32,
    nr_requests: u32,
    now: Nanos,
}

impl Bfq {
    pub fn new(config: &Resolved) -> Self {
        let tunables = &config.tunables;
        let fixed = tunables.get("max_budget");
        Bfq {
            queues: Queues::new(Settings { thinks_first: true, ..Settings::new(config) }),
            shares: Vec::new(),
            virtual_time: [0; 3],
            active: None,
            active_since: Nanos::ZERO,
            idle_until: None,
            burst: Burst::default(),
            source: None,
            joins: BTreeMap::new(),
            max_budget: if fixed == 0 { FIRST_BUDGET } else { fixed },
            fixed_budget: fixed != 0,
            rate: None,
            timeout_sync: Nanos::from_millis(tunables.get("timeout_sync")),
            low_latency: tunables.get("low_latency") == 1,
            strict: tunables.get("strict_guarantees") == 1,
            rotational: config.rotational,
            tagged: true,
            tag_samples: 0,
            tag_most: 0,
            nr_requests: config.nr_requests,
            now: Nanos::ZERO,
        }
    }

    fn is_raised(&self, q: Q) -> bool {
        self.shares[q].raised_until > self.now
    }

    /// (8 − level) · 10, thirty times that while raised.
    fn weight(&self, q: Q) -> u64 {
        let own = (8 - u64::from(self.queues[q].level.min(7))) * 10;
        if self.is_raised(q) { own * RAISE } else { own }
    }

    fn is_busy(&self, q: Q) -> bool {
        !self.queues[q].is_empty() || self.queues[q].in_flight > 0 || self.active == Some(q)
    }

    /// Whether the queues that want the device are not all alike: then a queue that is not waited
    /// for would lose its share.
    fn is_asymmetric(&self) -> bool {
        let busy = |q: &Q| self.is_busy(*q);
        let mut kinds =
            (0..self.shares.len()).filter(busy).map(|q| (self.weight(q), self.queues[q].class));
        let first = kinds.next();
        kinds.any(|kind| Some(kind) != first)
    }

    fn is_seeky(&self, q: Q) -> bool {
        self.queues[q].jumps.count_ones() > SEEKY_JUMPS
    }

    /// How long to wait for more from an empty queue; None: not at all.
    fn wait_for(&self, q: Q) -> Option<Nanos> {
        let (queue, idle) = (&self.queues[q], self.queues.settings.slice_idle);
        if !queue.sync || idle == Nanos::ZERO || queue.class == IoClass::Idle {
            return None;
        }
        let slow = self.is_slow(q);
        let seeky = self.is_seeky(q);
        let needed = self.strict || (!slow && self.is_asymmetric());
        let seeky_limit = seeky && !self.is_raised(q) && !self.strict;
        let wait = if seeky_limit { idle.min(SEEKY_IDLE) } else { idle };
        (needed || self.is_worth_a_wait(q)).then_some(wait)
    }

    /// It thinks for longer than half the time for which it would be waited for.
    fn is_slow(&self, q: Q) -> bool {
        let think = &self.queues[q].think;
        think.is_valid() && think.value() > self.queues.settings.slice_idle.0 / 2
    }

    /// The weights of who has requests, or was served beyond the present, in the class of `q`; and
    /// its own.
    fn weights_beside(&self, q: Q) -> u64 {
        let class = self.queues[q].class;
        let time = self.virtual_time[class as usize];
        let runs = |share: &Share| share.waiting || share.finish > time;
        (0..self.shares.len())
            .filter(|other| *other == q || runs(&self.shares[*other]))
            .filter(|other| self.queues[*other].class == class)
            .map(|other| self.weight(other))
            .sum()
    }

    /// Whether waiting for more from an empty queue serves the throughput.
    fn is_worth_a_wait(&self, q: Q) -> bool {
        // While a raised queue is busy, waiting for throughput would keep it from its due: seen on
        // 6.18, where sixteen new readers keep a disk's queue full with low_latency and not without.
        let anyone_raised =
            (0..self.shares.len()).any(|other| self.is_busy(other) && self.is_raised(other));
        let goes_on = !self.is_seeky(q) && !self.is_slow(q);
        !anyone_raised
            && ((self.rotational && !self.tagged) || (goes_on && (self.rotational || !self.tagged)))
    }

    /// A queue gets requests again: it enters at the virtual time, or where it ended if that is
    /// later.
    fn enter(&mut self, q: Q) {
        if self.shares[q].waiting || self.active == Some(q) {
            return;
        }
        self.shares[q].left = None;
        let weight = self.weight(q);
        let max_budget = self.max_budget;
        let class = self.queues[q].class as usize;
        let share = &mut self.shares[q];
        match (self.queues[q].sync, share.budget) {
            (false, _) => share.budget = max_budget,
            (true, 0) => share.budget = (max_budget * 2 / 3).max(1),
            _ => {}
        }
        share.start = share.finish.max(self.virtual_time[class]);
        share.finish = share.start + (share.budget << SHIFT) / weight;
        share.waiting = true;
    }

    /// Of the first class that has any: those whose service may have started, the earliest finish.
    fn next_queue(&mut self) -> Option<Q> {
        let waiting = |q: &Q| self.shares[*q].waiting;
        let class = (0..self.shares.len()).filter(waiting).map(|q| self.queues[q].class).min()?;
        let of_class: Vec<Q> = (0..self.shares.len())
            .filter(|q| self.shares[*q].waiting && self.queues[*q].class == class)
            .collect();
        let time = &mut self.virtual_time[class as usize];
        let earliest = of_class.iter().map(|q| self.shares[*q].start).min()?;
        *time = (*time).max(earliest);
        let eligible = of_class.into_iter().filter(|q| self.shares[*q].start <= *time);
        eligible.min_by_key(|q| (self.shares[*q].finish, *q))
    }

    fn activate(&mut self, q: Q, now: Nanos) {
        self.shares[q].waiting = false;
        self.shares[q].served = 0;
        self.queues[q].sent = 0;
        self.queues[q].fifo_seen = false;
        self.queues[q].in_service = true;
        self.active = Some(q);
        self.active_since = now;
        self.idle_until = None;
    }

    fn expire(&mut self, reason: Reason, now: Nanos) {
        self.idle_until = None;
        let Some(q) = self.active.take() else { return };
        self.queues[q].in_service = false;
        let sync = self.queues[q].sync;
        self.measure_rate(q, now);
        let weight = self.weight(q);
        let next = self.next_budget(q, reason);
        let share = &mut self.shares[q];
        let charge = if sync { share.served } else { share.served * ASYNC_CHARGE };
        share.finish = share.start + (charge << SHIFT) / weight;
        let left = share.budget.saturating_sub(share.served).min(next);
        share.budget = next;
        if !self.queues[q].is_empty() {
            self.enter(q);
        } else if sync && !matches!(reason, Reason::Timeout | Reason::Exhausted) {
            share.left = Some(left).filter(|left| *left > 0);
        }
    }

    /// A queue that lost the device for having nothing there is back soon: it goes on where it ended,
    /// with what was left of its budget, and ends the turn of who has the device now. Who is next then,
    /// the fair order says. (Seen in the kernel's own trace, 6.18.)
    fn returns(&mut self, q: Q, now: Nanos) -> bool {
        let Some(left) = self.shares[q].left.take() else { return false };
        let limit = self.queues.settings.slice_idle * IN_TIME;
        let in_time = self.queues[q].last_done.is_some_and(|done| now <= done + limit);
        let Some(active) = self.active.filter(|_| in_time) else { return false };
        let (new, old) = (&self.queues[q], &self.queues[active]);
        if new.class > old.class || self.is_raised(active) && !self.is_raised(q) {
            return false;
        }
        let weight = self.weight(q);
        let share = &mut self.shares[q];
        (share.budget, share.start) = (left, share.finish);
        share.finish = share.start + (left << SHIFT) / weight;
        share.waiting = true;
        true
    }

    fn next_budget(&self, q: Q, reason: Reason) -> u64 {
        let share = &self.shares[q];
        let least = (self.max_budget / BUDGET_PARTS).max(1);
        let in_flight = self.queues[q].in_flight > 0;
        let next = match reason {
            _ if !self.queues[q].sync => self.max_budget,
            // Small and always the same, so that others of its kind need not wait for long.
            _ if self.is_raised(q) => 2 * least,
            Reason::Exhausted => share.budget * 4,
            Reason::Timeout => share.budget * 2,
            Reason::TooIdle if !in_flight && share.budget > 5 * least => share.budget - 4 * least,
            Reason::TooIdle if !in_flight => least,
            Reason::NoMore => share.served,
            Reason::TooIdle | Reason::Preempted => share.budget,
        };
        next.clamp(least, self.max_budget)
    }

    /// The largest budget is what the device moves in timeout_sync at its best.
    fn measure_rate(&mut self, q: Q, now: Nanos) {
        let time = now.saturating_sub(self.active_since);
        let known = self.queues[q].requests >= RATE_REQUESTS;
        if self.fixed_budget || time < RATE_TIME || !known || self.is_seeky(q) {
            return;
        }
        let sample = self.shares[q].served as f64 / time.as_secs_f64();
        let rate = self.rate.map_or(sample, |rate| (rate * 7.0 + sample) / 8.0);
        self.rate = Some(rate);
        self.max_budget = ((rate * self.timeout_sync.as_secs_f64()) as u64).max(BUDGET_PARTS);
    }

    fn select(&mut self, requests: &Requests, now: Nanos) -> Result<(Q, Rq), Issue> {
        if let Some(q) = self.active {
            match self.go_on(q, requests, now) {
                Ok(rq) => return Ok((q, rq)),
                Err(Ok(wait)) => return Err(wait),
                Err(Err(reason)) => self.expire(reason, now),
            }
        }
        let Some(q) = self.next_queue() else { return Err(Issue::Nothing) };
        // The idle class has the device to itself or not at all.
        if self.queues[q].class == IoClass::Idle && self.queues.in_flight > 0 {
            return Err(Issue::Nothing);
        }
        self.activate(q, now);
        self.choose(q, requests).map(|rq| (q, rq)).ok_or(Issue::Nothing)
    }

    fn choose(&self, q: Q, requests: &Requests) -> Option<Rq> {
        self.shares[q].next.or_else(|| self.queues.nearest(q, requests))
    }

    /// Behind the first request that a queue sends in its turn goes its oldest, if that is over its
    /// time: unless one that is nearer comes before it is sent. (Seen in the kernel's own trace, 6.18:
    /// what was sent in place of the oldest was 3 ms old.)
    fn look_for_overdue(&mut self, q: Q, requests: &Requests, now: Nanos) {
        self.shares[q].next = None;
        let queue = &mut self.queues.all[q];
        if !std::mem::replace(&mut queue.fifo_seen, true) {
            let oldest = queue.fifo.head();
            self.shares[q].next = oldest.filter(|oldest| requests[*oldest].deadline <= now);
        }
    }

    /// The active queue's next request; or what to wait for; or why it must go.
    fn go_on(
        &mut self,
        q: Q,
        requests: &Requests,
        now: Nanos,
    ) -> Result<Rq, Result<Issue, Reason>> {
        let sync = self.queues[q].sync;
        let timeout = match (sync, self.is_raised(q)) {
            (false, _) => TIMEOUT_ASYNC,
            (true, false) => self.timeout_sync,
            (true, true) => self.timeout_sync * RAISE,
        };
        let end = self.active_since + timeout;
        if end <= now && self.shares[q].served > 0 {
            return Err(Err(Reason::Timeout));
        }
        if let Some(rq) = self.choose(q, requests) {
            let share = &self.shares[q];
            let fits = share.served + requests[rq].count <= share.budget || share.served == 0;
            self.idle_until = None;
            return if fits { Ok(rq) } else { Err(Err(Reason::Exhausted)) };
        }
        let Some(wait) = self.wait_for(q) else { return Err(Err(Reason::NoMore)) };
        if self.queues[q].in_flight > 0 {
            return Err(Ok(Issue::WaitUntil(end)));
        }
        let until = *self.idle_until.get_or_insert(now + wait);
        match now < until {
            true => Err(Ok(Issue::WaitUntil(until.min(end)))),
            false => Err(Err(Reason::TooIdle)),
        }
    }

    /// Queues that begin soon after one another are one application's, and need no protection from
    /// one another: before flash who begins later uses the first one's queue at once; before a
    /// rotational device after a while, unless it is worth a wait. (Paolo Valente, "block, bfq: merge
    /// bursts of newly-created queues", 2021; seen in the kernel's own trace, 6.18.)
    fn join(&mut self, context: &Context, now: Nanos) {
        let process = context.process;
        let Some(q) = self.queues.find(context, true) else {
            let kind = (context.class, context.level);
            let like = |source: &&Source| {
                now <= source.begun + JOINS_WITHIN && (source.class, source.level) == kind
            };
            match self.source.as_ref().filter(like).map(|source| source.q) {
                Some(source) if !self.rotational && self.tagged => {
                    self.queues.join(process, source);
                }
                Some(source) => {
                    self.joins.insert(process, Join { source, begun: now });
                }
                None => {
                    let (q, (class, level)) = (self.queues.all.len(), kind);
                    self.source = Some(Source { q, begun: now, class, level });
                }
            }
            return;
        };
        if self.joins.get(&process).is_some_and(|join| join.begun + JOINS_AFTER <= now)
            && !self.is_worth_a_wait(q)
            && let Some(Join { source, .. }) = self.joins.remove(&process)
        {
            self.queues.join(process, source);
            let raised = self.shares[q].raised_until;
            let until = &mut self.shares[source].raised_until;
            *until = raised.max(*until);
        }
    }

    fn preempts(&self, q: Q) -> bool {
        let Some(active) = self.active.filter(|active| *active != q) else { return false };
        let (new, old) = (&self.queues[q], &self.queues[active]);
        new.class < old.class
            || new.class == old.class && self.is_raised(q) && !self.is_raised(active)
    }

    /// A sync queue that starts, or was idle for long, is taken for an application that somebody
    /// waits for.
    fn consider_raising(&mut self, q: Q, now: Nanos) {
        let share = &mut self.shares[q];
        let idle = share.last_active.is_none_or(|last| last + RAISE_AFTER_IDLE <= now);
        share.last_active = Some(now);
        if !self.queues[q].sync {
            return;
        }
        if idle {
            share.in_burst = false;
            for of_it in self.burst.join(q, now) {
                self.shares[of_it].in_burst = true;
            }
        }
        // Who is found to be of a burst after it was raised loses that when it next comes from idleness.
        let (share, comes) = (&mut self.shares[q], self.queues[q].depth() == 1);
        if share.in_burst && comes {
            share.raised_until = Nanos::ZERO;
        } else if self.low_latency && idle {
            let time = if self.rotational { RAISE_ROTATIONAL } else { RAISE_OTHERS };
            share.raised_until = now + time;
        }
    }

    fn estimate_tags(&mut self) {
        let out = self.queues.in_flight;
        self.tag_most = self.tag_most.max(out);
        if self.queues.held + out as usize <= TAGGED as usize {
            return;
        }
        // While a shallow queue is waited for, little is sent: that says nothing of the device.
        if let Some(q) = self.active
            && self.wait_for(q).is_some()
            && self.queues[q].depth() < TAGGED
            && out < TAGGED
        {
            return;
        }
        self.tag_samples += 1;
        if self.tag_samples >= TAG_SAMPLES {
            self.tagged = self.tag_most > TAGGED;
            (self.tag_samples, self.tag_most) = (0, 0);
        }
    }
}

impl Scheduler for Bfq {
    fn insert(&mut self, rq: Rq, requests: &mut Requests, now: Nanos) {
        self.now = now;
        let sync = requests[rq].sync;
        if sync {
            self.join(&requests[rq].context, now);
        }
        let q = self.queues.insert(rq, sync, requests, now);
        self.shares.resize(self.queues.all.len(), Share::default());
        if let Some(next) = self.shares[q].next
            && self.queues.is_nearer(requests[rq].start, requests[next].start)
        {
            self.shares[q].next = Some(rq);
        }
        self.consider_raising(q, now);
        let preempts = self.returns(q, now) || self.preempts(q);
        self.enter(q);
        if preempts {
            self.expire(Reason::Preempted, now);
        }
    }

    fn dispatch(&mut self, requests: &mut Requests, now: Nanos) -> Issue {
        self.now = now;
        // blk-mq does not ask a scheduler that holds nothing: a queue's turn goes on while all that it
        // had is at the device.
        if self.queues.held == 0 && self.idle_until.is_none() {
            return Issue::Nothing;
        }
        match self.select(requests, now) {
            Ok((q, rq)) => {
                let count = requests[rq].count;
                let class = self.queues[q].class as usize;
                self.virtual_time[class] += (count << SHIFT) / self.weights_beside(q).max(1);
                self.shares[q].served += count;
                self.queues.send(rq, requests);
                self.look_for_overdue(q, requests, now);
                Issue::Send(rq)
            }
            Err(instead) => instead,
        }
    }

    fn complete(&mut self, rq: Rq, requests: &mut Requests, now: Nanos) {
        self.now = now;
        let q = self.queues.complete(rq, requests, now);
        self.shares[q].last_active = Some(now);
        self.estimate_tags();
        if self.active == Some(q) && self.queues[q].is_empty() {
            match self.wait_for(q) {
                None => self.expire(Reason::NoMore, now),
                Some(wait) if self.queues[q].in_flight == 0 => {
                    self.idle_until.get_or_insert(now + wait);
                }
                Some(_) => {}
            }
        }
    }

    fn len(&self) -> usize {
        self.queues.held
    }

    fn front(&self, _: &Requests, bio: &Bio) -> Option<Rq> {
        let q = self.queues.find(&bio.context, bio.is_sync())?;
        self.queues[q].sorted.at(bio.end())
    }

    fn neighbour(&self, requests: &Requests, rq: Rq, side: Side) -> Option<Rq> {
        self.queues.neighbour(requests, rq, side)
    }

    fn allows_merge(&self, requests: &Requests, rq: Rq, bio: &Bio) -> bool {
        self.queues.find(&bio.context, bio.is_sync()) == Some(requests[rq].word as usize)
    }

    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut Requests) {
        self.queues.moved(rq, old_start, requests);
    }

    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut Requests) {
        let next = &mut self.shares[requests[gone].word as usize].next;
        *next = next.filter(|next| *next != gone);
        self.queues.absorbed(into, gone, requests);
    }

    /// Async 50 %, sync writes 75 %; 18 and 37 % while somebody's weight is raised. Of these a queue
    /// has as its weight is to all; when it asks for more it gets next to nothing, and then sleeps
    /// with that.
    fn tag_limit(&self, class: TagClass, context: &Context, plugged: u32) -> u32 {
        let raised = (0..self.shares.len()).any(|q| self.is_busy(q) && self.is_raised(q));
        let sixteenths = match (class, raised) {
            (TagClass::Read, _) => 16,
            (TagClass::SyncWrite, false) => 12,
            (TagClass::SyncWrite, true) => 6,
            (TagClass::Async, false) => 8,
            (TagClass::Async, true) => LEAST_SIXTEENTHS,
        };
        let limit = (self.nr_requests * sixteenths / 16).max(1);
        let sync = class != TagClass::Async;
        let part = |q: Q| {
            let (weight, all) = (self.weight(q), self.weights_beside(q).max(1));
            ((u64::from(limit) * weight + all / 2) / all) as u32
        };
        let queue = self.queues.find(context, sync);
        let (its, most) = queue.map_or((0, limit), |q| (self.queues[q].depth(), part(q)));
        match its + plugged >= most {
            true => (self.nr_requests / TAGS_A_WORD).max(TAG_WORDS_LEAST).min(limit),
            false => limit,
        }
    }

    fn drain(&mut self, _: &mut Requests, out: &mut Vec<Rq>) {
        self.queues.drain(out);
        for share in &mut self.shares {
            (share.waiting, share.next) = (false, None);
        }
        if let Some(q) = self.active.take() {
            self.queues[q].in_service = false;
        }
        self.idle_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_that_begin_shortly_after_one_another_are_a_burst() {
        let mut burst = Burst::default();
        let at = |millis| Nanos::from_millis(millis);
        for q in 0..7 {
            assert!(burst.join(q, at(q as u64 * 180)).is_empty());
        }
        assert_eq!(burst.join(7, at(7 * 180)), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(burst.join(8, at(8 * 180)), [8]);
        // Who comes later begins another.
        assert!(burst.join(9, at(9 * 180 + 1)).is_empty());
    }
}
