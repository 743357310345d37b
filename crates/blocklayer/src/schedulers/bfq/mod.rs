//! bfq: shares of sectors instead of time, by weights, with budgets (B-WF2Q+, Valente and Checconi,
//! "High Throughput Disk Scheduling with Fair Bandwidth Distribution", 2010).

mod weight_raising;

use self::weight_raising::{Arrival, Burst, WeightRaising};
use super::process_queue::{Q, Queues, Settings};
use crate::bio::{Bio, Context, IoClass};
use crate::config::Resolved;
use crate::kernel::Kernel;
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, Scheduler, Side, TagClass};
use crate::tags::Tags;
use std::collections::BTreeMap;
use units::Nanos;

/// The largest budget, in sectors, before the device's rate is known.
const FIRST_BUDGET: u64 = 16_384;
/// The smallest budget is the largest divided by this.
const BUDGET_PARTS: u64 = 32;
const ASYNC_CHARGE: u64 = 3;
/// A raised queue is idled for while others have this many requests more at the device.
const OTHERS_SENT: u32 = 4;
/// A queue created within this time of another is taken for one of the same application, and merged into
/// it.
const MERGES_WITHIN: Nanos = Nanos::from_millis(600);
/// On a rotational device, not before it has this age.
const MERGES_AFTER: Nanos = Nanos::from_millis(600);
const TIMEOUT_ASYNC: Nanos = Nanos::from_millis(40);
const SEEKY_JUMPS: u32 = 19;
/// A queue that lost the device while empty keeps the rest of its budget if it returns within this many
/// times slice_idle of its last completion.
const IN_TIME: u64 = 3;
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);
/// More requests than this in flight at once, within [`TAG_SAMPLES`] samples: the device queues commands.
const TAGGED: u32 = 3;
const TAG_SAMPLES: u32 = 32;
/// A slice must last this long, and its queue have had [`RATE_REQUESTS`] requests, to say something about
/// the device's rate: before, it is not known whether the queue is seeky.
const RATE_TIME: Nanos = Nanos::from_millis(20);
const RATE_REQUESTS: u64 = 32;
/// The share of tags, in sixteenths, that asynchronous requests may use while a weight is raised.
const MIN_SIXTEENTHS: u32 = 3;
/// Virtual time is in 2⁻²² sectors per weight.
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
    /// The budget of its next turn, unless a rest is left.
    default: u64,
    /// Sectors served in this turn.
    served: u64,
    start: u64,
    finish: u64,
    waiting: bool,
    raising: WeightRaising,
    /// It lost the device with requests in flight: whether it is soft real-time is judged when they
    /// complete.
    empties: bool,
    /// Its next request, if that is not the nearest.
    next: Option<Rq>,
    /// The rest of its budget when it lost the device while empty.
    left: Option<u64>,
}

/// The queue into which queues created soon after it are merged.
#[derive(Debug)]
struct Source {
    q: Q,
    begun: Nanos,
    class: IoClass,
    level: u8,
}

/// The queue into which a process's queue will be merged.
#[derive(Debug)]
struct Join {
    source: Q,
    begun: Nanos,
}

/// The scheduler as of 6.12, without injection and merging of cooperating queues.
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
    tag_max: u32,
    nr_requests: u32,
    /// From how many tags a queue may choose that has used up its share.
    one_more: u32,
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
            tag_max: 0,
            nr_requests: config.nr_requests,
            one_more: one_more(config),
            now: Nanos::ZERO,
        }
    }

    fn is_raised(&self, q: Q) -> bool {
        self.factor(q) > 1
    }

    fn factor(&self, q: Q) -> u64 {
        self.shares[q].raising.factor(self.now)
    }

    /// (8 − level) · 10, times the factor of weight raising.
    fn weight(&self, q: Q) -> u64 {
        (8 - u64::from(self.queues[q].level.min(7))) * 10 * self.factor(q)
    }

    fn is_busy(&self, q: Q) -> bool {
        !self.queues[q].is_empty() || self.queues[q].in_flight > 0 || self.active == Some(q)
    }

    /// Whether the busy queues differ in class or weight: a queue that is not idled for would lose its
    /// share. Raised weights do not count: raised queues have a rule of their own.
    fn is_asymmetric(&self) -> bool {
        let busy = || (0..self.shares.len()).filter(|q| self.is_busy(*q));
        let plain = || busy().filter(|q| !self.is_raised(*q));
        !all_alike(busy().map(|q| self.queues[q].class))
            || !all_alike(plain().map(|q| self.weight(q)))
    }

    /// The queues that have the device or wait for it.
    fn contenders(&self) -> impl Iterator<Item = Q> {
        (0..self.shares.len()).filter(|q| self.shares[*q].waiting || self.active == Some(*q))
    }

    /// Whether an empty raised queue needs idling, because others would take its advantage: queues that are
    /// not raised, or many requests at the device. Observed: block tracepoints on 6.18.
    fn needs_idling_for_raised_weight(&self, q: Q) -> bool {
        self.is_raised(q)
            && (self.queues.in_flight >= self.queues[q].in_flight + OTHERS_SENT
                || self.contenders().any(|other| !self.is_raised(other)))
    }

    fn is_seeky(&self, q: Q) -> bool {
        self.queues[q].jumps.count_ones() > SEEKY_JUMPS
    }

    /// How long to idle for an empty queue; `None`: not at all.
    fn wait_for(&self, q: Q) -> Option<Nanos> {
        let (queue, idle) = (&self.queues[q], self.queues.settings.slice_idle);
        if !queue.sync || idle == Nanos::ZERO || queue.class == IoClass::Idle {
            return None;
        }
        let slow = self.is_slow(q);
        let seeky = self.is_seeky(q);
        // Idling for the only queue costs no other. Observed: block tracepoints on 6.18.
        let alone = self.contenders().all(|other| other == q);
        let needed = self.strict
            || alone
            || self.needs_idling_for_raised_weight(q)
            || (!slow && self.is_asymmetric());
        let seeky_limit = seeky && !self.is_raised(q) && !self.strict;
        let wait = if seeky_limit { idle.min(SEEKY_IDLE) } else { idle };
        (needed || self.is_worth_a_wait(q)).then_some(wait)
    }

    /// Its think time is longer than half of slice_idle.
    fn is_slow(&self, q: Q) -> bool {
        let think = &self.queues[q].think;
        think.is_valid() && think.value() > self.queues.settings.slice_idle.0 / 2
    }

    /// The sum of the weights of `q` and of the queues of its class that have requests or a finish time in
    /// the future.
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

    /// Whether idling for an empty queue increases throughput.
    fn is_worth_a_wait(&self, q: Q) -> bool {
        // Idling for throughput would delay a raised queue. Observed on 6.18: sixteen new readers keep a
        // disk's queue full with low_latency and not without.
        let anyone_raised = self.contenders().any(|other| self.is_raised(other));
        let goes_on = !self.is_seeky(q) && !self.is_slow(q);
        !anyone_raised
            && ((self.rotational && !self.tagged) || (goes_on && (self.rotational || !self.tagged)))
    }

    /// A queue becomes busy: it starts at the virtual time, or at its finish time if that is later; at its
    /// finish time in any case if it returns in time. Observed: block tracepoints on 6.18.
    fn enter(&mut self, q: Q, returns: bool) {
        if self.shares[q].waiting || self.active == Some(q) {
            return;
        }
        let weight = self.weight(q);
        let max_budget = self.max_budget;
        let raised = self.is_raised(q).then(|| self.raised_budget());
        let class = self.queues[q].class as usize;
        let share = &mut self.shares[q];
        match (self.queues[q].sync, share.default) {
            (false, _) => share.default = max_budget,
            (true, 0) => share.default = (max_budget * 2 / 3).max(1),
            _ => {}
        }
        let left = share.left.take().filter(|_| returns);
        share.budget = left.unwrap_or(share.default).min(raised.unwrap_or(max_budget));
        let earliest = if returns { 0 } else { self.virtual_time[class] };
        share.start = share.finish.max(earliest);
        share.finish = share.start + (share.budget << SHIFT) / weight;
        share.waiting = true;
    }

    /// The next request of a waiting queue changes: its budget becomes the default. Observed: the 1024
    /// sectors of a new raised queue apply to its first request alone.
    fn has_another_next(&mut self, q: Q) {
        let weight = self.weight(q);
        let share = &mut self.shares[q];
        share.budget = share.default;
        share.finish = share.start + (share.budget << SHIFT) / weight;
    }

    /// In the first class that has any: the eligible queue with the earliest finish time.
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
        share.default = next;
        if !self.queues[q].is_empty() {
            self.enter(q, false);
        } else if sync {
            let ran_out = matches!(reason, Reason::Timeout | Reason::Exhausted);
            share.left = Some(left).filter(|left| *left > 0 && !ran_out);
            share.empties = true;
            self.note_empty(q, now);
        }
    }

    /// A queue that lost the device may have no request in flight either.
    fn note_empty(&mut self, q: Q, now: Nanos) {
        let (queue, share) = (&self.queues[q], &mut self.shares[q]);
        if share.empties && queue.is_empty() && queue.in_flight == 0 {
            share.empties = false;
            share.raising.empties(self.queues.settings.slice_idle, now);
        }
    }

    /// Whether a queue that lost the device for having nothing there is back soon: then it goes on with
    /// what was left of its budget. (Seen in the kernel's own trace, 6.18.)
    fn returns(&self, q: Q, now: Nanos) -> bool {
        let limit = self.queues.settings.slice_idle * IN_TIME;
        self.shares[q].left.is_some()
            && self.queues[q].last_done.is_some_and(|done| now <= done + limit)
    }

    /// The budget of a raised queue: small and constant, so that other raised queues do not wait long.
    fn raised_budget(&self) -> u64 {
        2 * self.least_budget()
    }

    fn least_budget(&self) -> u64 {
        (self.max_budget / BUDGET_PARTS).max(1)
    }

    fn next_budget(&self, q: Q, reason: Reason) -> u64 {
        let share = &self.shares[q];
        let least = self.least_budget();
        let in_flight = self.queues[q].in_flight > 0;
        let next = match reason {
            _ if !self.queues[q].sync => self.max_budget,
            _ if self.is_raised(q) => self.raised_budget(),
            Reason::Exhausted => share.default * 4,
            Reason::Timeout => share.default * 2,
            Reason::TooIdle if !in_flight && share.default > 5 * least => share.default - 4 * least,
            Reason::TooIdle if !in_flight => least,
            Reason::NoMore => share.served,
            Reason::TooIdle | Reason::Preempted => share.default,
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

    fn select(&mut self, requests: &RequestTable, now: Nanos) -> Result<(Q, Rq), Issue> {
        if let Some(q) = self.active {
            match self.resume(q, requests, now) {
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

    fn choose(&self, q: Q, requests: &RequestTable) -> Option<Rq> {
        self.shares[q].next.or_else(|| self.queues.nearest(q, requests))
    }

    /// Behind the first request that a queue sends in its turn goes its oldest, if that is over its
    /// time: unless one that is nearer comes before it is sent. (Seen in the kernel's own trace, 6.18:
    /// what was sent in place of the oldest was 3 ms old.)
    fn look_for_overdue(&mut self, q: Q, requests: &RequestTable, now: Nanos) {
        self.shares[q].next = None;
        let queue = &mut self.queues.all[q];
        if !std::mem::replace(&mut queue.fifo_seen, true) {
            let oldest = queue.fifo.head();
            self.shares[q].next = oldest.filter(|oldest| requests[*oldest].deadline <= now);
        }
    }

    /// The active queue's next request; or what to wait for; or why it must go.
    fn resume(
        &mut self,
        q: Q,
        requests: &RequestTable,
        now: Nanos,
    ) -> Result<Rq, Result<Issue, Reason>> {
        let sync = self.queues[q].sync;
        let timeout = match (sync, self.factor(q)) {
            (false, _) => TIMEOUT_ASYNC,
            (true, weight_raising::INTERACTIVE) => self.timeout_sync * weight_raising::INTERACTIVE,
            (true, _) => self.timeout_sync,
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
                now <= source.begun + MERGES_WITHIN && (source.class, source.level) == kind
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
        if self.joins.get(&process).is_some_and(|join| join.begun + MERGES_AFTER <= now)
            && !self.is_worth_a_wait(q)
            && let Some(Join { source, .. }) = self.joins.remove(&process)
        {
            self.queues.join(process, source);
            let joins = self.shares[q].raising;
            self.shares[source].raising.join(&joins, now);
        }
    }

    /// Whether who gets requests again ends the turn of the queue that has the device: because it has
    /// more weight, because it is back in time and not raised less, or because that one is not worth a
    /// wait. Who is next then, the fair order says. (Seen in the kernel's own trace, 6.18.)
    fn preempts(&self, q: Q, returns: bool) -> bool {
        let Some(active) = self.active.filter(|active| *active != q) else { return false };
        let (new, old) = (self.queues[q].class, self.queues[active].class);
        new < old
            || new == old
                && (returns && self.factor(q) >= self.factor(active)
                    || self.weight(q) > self.weight(active)
                    || self.wait_for(active).is_none())
    }

    /// A sync queue that starts, or was idle for long, is taken for an application that somebody
    /// waits for; one whose requests come slowly and apart, for one that plays something.
    fn consider_raising(&mut self, q: Q, fills: bool, now: Nanos) {
        let (queue, share) = (&self.queues[q], &mut self.shares[q]);
        if !queue.sync {
            return;
        }
        let starts = share.raising.starts(now);
        if starts {
            share.raising.set_in_burst(false);
            for of_it in self.burst.join(q, now) {
                self.shares[of_it].raising.set_in_burst(true);
            }
        }
        let lasts =
            if self.rotational { weight_raising::ROTATIONAL } else { weight_raising::OTHERS };
        let arrival = Arrival {
            fills,
            alone: queue.depth() == 1,
            level: queue.level,
            lasts: self.low_latency.then_some(lasts),
        };
        self.shares[q].raising.arrive(arrival, starts, now);
    }

    fn estimate_tags(&mut self) {
        let out = self.queues.in_flight;
        self.tag_max = self.tag_max.max(out);
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
            self.tagged = self.tag_max > TAGGED;
            (self.tag_samples, self.tag_max) = (0, 0);
        }
    }
}

impl Scheduler for Bfq {
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
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
        let fills = self.queues[q].sorted.len() == 1 && self.active != Some(q);
        self.consider_raising(q, fills, now);
        if fills {
            self.shares[q].empties = false;
            let returns = self.returns(q, now);
            self.enter(q, returns);
            if self.preempts(q, returns) {
                self.expire(Reason::Preempted, now);
            }
        } else if self.shares[q].waiting && self.queues.nearest(q, requests) == Some(rq) {
            self.has_another_next(q);
        }
    }

    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue {
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
                self.shares[q].raising.serve(count);
                self.queues.send(rq, requests);
                self.look_for_overdue(q, requests, now);
                Issue::Send(rq)
            }
            Err(instead) => instead,
        }
    }

    fn complete(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        self.now = now;
        let q = self.queues.complete(rq, requests, now);
        self.shares[q].raising.touch(now);
        self.note_empty(q, now);
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

    fn front(&self, _: &RequestTable, bio: &Bio) -> Option<Rq> {
        let q = self.queues.find(&bio.context, bio.is_sync())?;
        self.queues[q].sorted.at(bio.end())
    }

    fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq> {
        self.queues.neighbour(requests, rq, side)
    }

    fn allows_merge(&self, requests: &RequestTable, rq: Rq, bio: &Bio) -> bool {
        self.queues.find(&bio.context, bio.is_sync()) == Some(requests[rq].queue_index as usize)
    }

    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut RequestTable) {
        self.queues.moved(rq, old_start, requests);
    }

    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable) {
        let next = &mut self.shares[requests[gone].queue_index as usize].next;
        *next = next.filter(|next| *next != gone);
        self.queues.absorbed(into, gone, requests);
    }

    /// Async 50 %, sync writes 75 %; 18 and 37 % while somebody's weight is raised. Of these a queue
    /// has as its weight is to all; when it asks for more it gets next to nothing, and then sleeps
    /// with that.
    fn tag_limit(&self, class: TagClass, context: &Context, plugged: u32) -> u32 {
        let raised = self.contenders().any(|q| self.is_raised(q));
        let sixteenths = match (class, raised) {
            (TagClass::Read, _) => 16,
            (TagClass::SyncWrite, false) => 12,
            (TagClass::SyncWrite, true) => 6,
            (TagClass::Async, false) => 8,
            (TagClass::Async, true) => MIN_SIXTEENTHS,
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
            true => self.one_more.min(limit),
            false => limit,
        }
    }

    fn drain(&mut self, _: &mut RequestTable, out: &mut Vec<Rq>) {
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

/// One tag; before 6.17 one in each word of their map. (Yu Kuai, "lib/sbitmap: convert shallow_depth from
/// one word to the whole sbitmap", 2025.)
fn one_more(config: &Resolved) -> u32 {
    match config.kernel < Kernel::V6_18 {
        true => Tags::of(config).words(),
        false => 1,
    }
}

fn all_alike<T: PartialEq>(mut all: impl Iterator<Item = T>) -> bool {
    let first = all.next();
    all.all(|one| Some(one) == first)
}
