//! cfq since 2.6.32: queues ordered by the time their service is due; since 3.10 three trees per class.

use super::super::process_queue::{Q, Queues, Settings};
use crate::bio::{Bio, Context, IoClass};
use crate::config::Resolved;
use crate::kernel::Kernel;
use crate::requests::{RequestTable, Rq};
use crate::scheduler::{Issue, MayQueue, Scheduler, Side};
use device::Op;
use std::collections::BTreeSet;
use units::Nanos;

/// 2.6.32: a mean jump of more than this is seeky.
const SEEKY_SECTORS: u64 = 8 * 1024;
/// 3.10: more jumps than this among the last 32 are seeky.
const SEEKY_JUMPS: u32 = 4;
/// The longest idling for a seeky queue.
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);
/// The device is taken to queue commands: this many at once, within this many samples.
const TAGGED: u32 = 5;
const TAG_SAMPLES: u32 = 50;

/// A preempting queue is due this long before the first one, and no earlier, so that others age past it.
const IN_FRONT: i64 = 1_000_000_000;

/// Which tree of its class a queue is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Workload {
    /// Queues that are idled for individually.
    SyncIdle = 0,
    /// Seeky queues, idled for together.
    SyncNoIdle = 1,
    Async = 2,
}
const WORKLOADS: [Workload; 3] = [Workload::SyncIdle, Workload::SyncNoIdle, Workload::Async];

/// Why a queue enters its tree.
#[derive(Clone, Copy, Debug)]
enum Entrance {
    InTurn,
    /// It lost the device with this much of its slice left.
    WithLeft(Nanos),
    InFront,
}

/// The effect of a new request on the active queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Preempts {
    No,
    /// Preempts it.
    Takes,
    /// Ends the idling for another queue of its tree.
    EndsWaiting,
}

/// The sort key of a queue: class, tree, time its service is due, order of arrival.
type Entry = (IoClass, Workload, i64, u64, Q);

/// The scheduler.
#[derive(Debug)]
pub(crate) struct TreeCfq {
    queues: Queues,
    trees: BTreeSet<Entry>,
    entry_of: Vec<Option<Entry>>,
    counts: [[u32; 3]; 3],
    sequence: u64,
    active: Option<(Q, Workload)>,
    idle_until: Option<Nanos>,
    /// The tree being served, and until when (since 3.10).
    serving: Option<(IoClass, Workload, Nanos)>,
    three_trees: bool,
    low_latency: bool,
    target_latency: Nanos,
    rotational: bool,
    tagged: bool,
    tag_samples: u32,
    tag_max: u32,
    last_sync_done: Nanos,
}

impl TreeCfq {
    pub fn new(config: &Resolved) -> Self {
        TreeCfq {
            queues: Queues::new(Settings::new(config)),
            trees: BTreeSet::new(),
            entry_of: Vec::new(),
            counts: [[0; 3]; 3],
            sequence: 0,
            active: None,
            idle_until: None,
            serving: None,
            three_trees: config.kernel >= Kernel::V3_10,
            low_latency: config.tunables.get("low_latency") == 1,
            target_latency: Nanos::from_millis(config.tunables.get("target_latency")),
            rotational: config.rotational,
            // Before it has measured, it takes the device to queue commands.
            tagged: true,
            tag_samples: 0,
            tag_max: 0,
            last_sync_done: Nanos::ZERO,
        }
    }

    fn is_seeky(&self, q: Q) -> bool {
        let queue = &self.queues[q];
        match self.three_trees {
            true => queue.jumps.count_ones() > SEEKY_JUMPS,
            false => queue.seek.is_valid() && queue.seek.value() > SEEKY_SECTORS,
        }
    }

    /// Whether the queue on its own is worth idling for.
    fn idle_window(&self, q: Q) -> bool {
        let (queue, idle) = (&self.queues[q], self.queues.settings.slice_idle);
        let slow = queue.think.is_valid() && queue.think.value() > idle.0;
        let seeky = match self.three_trees {
            true => self.is_seeky(q) && !queue.deep,
            false => self.is_seeky(q) && self.tagged && !self.low_latency,
        };
        queue.sync && idle > Nanos::ZERO && queue.class != IoClass::Idle && !slow && !seeky
    }

    fn workload(&self, q: Q) -> Workload {
        match (self.three_trees, self.queues[q].sync) {
            (false, _) => Workload::SyncIdle,
            (true, false) => Workload::Async,
            (true, true) if self.idle_window(q) => Workload::SyncIdle,
            (true, true) => Workload::SyncNoIdle,
        }
    }

    /// Queues with requests, including the active one.
    fn busy(&self) -> u64 {
        let active = self.active.is_some_and(|(q, _)| !self.queues[q].is_empty());
        self.trees.len() as u64 + u64::from(active)
    }

    /// Adds a queue that has requests: due later with lower priority, earlier by the rest of its last slice.
    fn enter(&mut self, q: Q, entrance: Entrance, now: Nanos) {
        if self.entry_of.len() <= q {
            self.entry_of.resize(q + 1, None);
        }
        let is_active = self.active.is_some_and(|(active, _)| active == q);
        if self.entry_of[q].is_some() || is_active {
            return;
        }
        let queue = &self.queues[q];
        let settings = &self.queues.settings;
        let longest = settings.slice(true, 0).0;
        let own = settings.slice(queue.sync, queue.level).0.min(longest);
        let due = (now.0 + self.busy() * (longest - own)) as i64;
        let (class, workload) = (queue.class, self.workload(q));
        let first = self.first_of(class, workload).map_or(now.0 as i64, |entry| entry.2);
        let key = match entrance {
            Entrance::InTurn => due,
            Entrance::WithLeft(left) => due - left.0 as i64,
            Entrance::InFront => first - IN_FRONT,
        };
        self.sequence += 1;
        let entry = (class, workload, key, self.sequence, q);
        self.counts[entry.0 as usize][entry.1 as usize] += 1;
        self.trees.insert(entry);
        self.entry_of[q] = Some(entry);
    }

    fn first_of(&self, class: IoClass, workload: Workload) -> Option<Entry> {
        let from = (class, workload, i64::MIN, 0, 0);
        let entry = *self.trees.range(from..).next()?;
        (entry.0 == class && entry.1 == workload).then_some(entry)
    }

    /// The tree to serve, in the first class that has any: the present one while its time lasts, otherwise
    /// the one whose first queue is due earliest.
    fn next_entry(&mut self, now: Nanos) -> Option<Entry> {
        let class = self.trees.first()?.0;
        if let Some((serving, workload, until)) = self.serving
            && serving == class
            && now < until
            && let Some(entry) = self.first_of(class, workload)
        {
            return Some(entry);
        }
        let firsts = WORKLOADS.into_iter().filter_map(|w| self.first_of(class, w));
        let entry = firsts.min_by_key(|entry| (entry.2, entry.3))?;
        let counts = self.counts[class as usize];
        let share = u64::from(counts[entry.1 as usize]);
        let all = u64::from(counts.iter().sum::<u32>().max(1));
        let settings = &self.queues.settings;
        let mut time = Nanos(self.target_latency.0 * share / all);
        if entry.1 == Workload::Async {
            time = Nanos(time.0 * settings.slice_async.0 / settings.slice_sync.0.max(1));
        } else {
            time = time.max(settings.slice_idle * 2);
        }
        self.serving = Some((class, entry.1, now + time.max(Nanos::from_millis(2))));
        Some(entry)
    }

    /// The length of a slice, reduced if all sync queues together would exceed target_latency.
    fn slice(&self, q: Q) -> Nanos {
        let (queue, settings) = (&self.queues[q], &self.queues.settings);
        let slice = settings.slice(queue.sync, queue.level);
        if !self.three_trees || !self.low_latency || !queue.sync {
            return slice;
        }
        let counts = self.counts[queue.class as usize];
        let sync_queues = u64::from(counts[0] + counts[1]) + 1;
        let expected = settings.slice_sync * sync_queues;
        if expected <= self.target_latency || expected == Nanos::ZERO {
            return slice;
        }
        let least = Nanos(2 * settings.slice_idle.0 * slice.0 / settings.slice_sync.0.max(1));
        let scaled =
            u128::from(slice.0) * u128::from(self.target_latency.0) / u128::from(expected.0);
        Nanos(scaled as u64).max(least.min(slice))
    }

    fn activate_next(&mut self, now: Nanos) -> Option<Q> {
        let entry = self.next_entry(now)?;
        let q = entry.4;
        self.trees.remove(&entry);
        self.entry_of[q] = None;
        self.counts[entry.0 as usize][entry.1 as usize] -= 1;
        let end = now + self.slice(q);
        let queue = &mut self.queues[q];
        queue.sent = 0;
        queue.fifo_seen = false;
        queue.slice_end = Some(end);
        queue.deep = queue.sorted.len() >= 4;
        self.active = Some((q, entry.1));
        self.idle_until = None;
        Some(q)
    }

    fn expire_active(&mut self, now: Nanos) {
        self.idle_until = None;
        if let Some((q, _)) = self.active.take()
            && !self.queues[q].is_empty()
        {
            let end = self.queues[q].slice_end.unwrap_or(now);
            self.enter(q, Entrance::WithLeft(end.saturating_sub(now)), now);
        }
    }

    /// How long to idle for this empty queue, or for its tree if it is the tree's last queue.
    fn wait_for(&self, q: Q, workload: Workload) -> Option<Nanos> {
        if !self.queues[q].sync || (!self.rotational && self.tagged) {
            return None;
        }
        let idle = self.queues.settings.slice_idle;
        if workload == Workload::SyncNoIdle {
            let class = self.queues[q].class;
            let last = self.counts[class as usize][workload as usize] == 0;
            return (last && idle > Nanos::ZERO && class != IoClass::Idle).then_some(idle);
        }
        let seeky = self.is_seeky(q) && !self.three_trees;
        self.idle_window(q).then_some(if seeky { idle.min(SEEKY_IDLE) } else { idle })
    }

    fn select(&mut self, now: Nanos) -> Result<Q, Issue> {
        if let Some((q, workload)) = self.active {
            let queue = &self.queues[q];
            let end = queue.slice_end.unwrap_or(now);
            let settings = &self.queues.settings;
            let spent = self.busy() > 1
                && (queue.class == IoClass::Idle && queue.sent > 0
                    || !queue.sync && queue.sent >= settings.async_requests(queue.level));
            if now < end && !spent {
                if !queue.is_empty() {
                    self.idle_until = None;
                    return Ok(q);
                }
                if let Some(wait) = self.wait_for(q, workload) {
                    if queue.in_flight > 0 {
                        return Err(Issue::WaitUntil(end));
                    }
                    let until = *self.idle_until.get_or_insert(now + wait);
                    if now < until {
                        return Err(Issue::WaitUntil(until.min(end)));
                    }
                }
            }
            self.expire_active(now);
        }
        self.activate_next(now).ok_or(Issue::Nothing)
    }

    /// Whether this queue may dispatch another request now.
    fn may_send(&self, q: Q, now: Nanos) -> bool {
        let (queue, queues) = (&self.queues[q], &self.queues);
        let async_in_flight = queues.in_flight - queues.sync_in_flight;
        if queue.sync && self.idle_window(q) && async_in_flight > 0 {
            return false;
        }
        if !queue.sync && queues.sync_in_flight > 0 {
            return false;
        }
        let quantum = queues.settings.quantum;
        let alone = self.busy() <= 1;
        let mut most = match (queue.class, self.three_trees, alone) {
            (IoClass::Idle, ..) => 1,
            (_, false, false) => quantum,
            (_, false, true) => 4 * quantum,
            (_, true, true) => u32::MAX,
            (_, true, false) => {
                // Beyond half of the quantum only while outstanding requests leave time in the slice.
                let out = queues.settings.slice_idle * u64::from(queue.in_flight);
                let soon = queue.slice_end.is_none_or(|end| end.saturating_sub(now) < out);
                if soon { (quantum / 2).max(1) } else { quantum }
            }
        };
        if !queue.sync && self.low_latency {
            let since = now.saturating_sub(self.last_sync_done);
            let depth = since.0 / queues.settings.slice_sync.0.max(1);
            most = most.min(u32::try_from(depth).unwrap_or(u32::MAX).max(1));
        }
        queue.in_flight < most
    }

    fn preempts(&self, q: Q) -> Preempts {
        let Some((active, workload)) = self.active.filter(|(active, _)| *active != q) else {
            return Preempts::No;
        };
        let (new, old) = (&self.queues[q], &self.queues[active]);
        let takes = match new.class == old.class {
            true => new.sync && !old.sync,
            false => {
                new.class < old.class
                    && (new.class == IoClass::RealTime || old.class == IoClass::Idle)
            }
        };
        // Seeky queues are idled for together: the first request of any of them is served.
        let together = new.class == old.class
            && workload == Workload::SyncNoIdle
            && old.is_empty()
            && self.workload(q) == Workload::SyncNoIdle;
        match (takes, together) {
            (true, _) => Preempts::Takes,
            (false, true) => Preempts::EndsWaiting,
            (false, false) => Preempts::No,
        }
    }

    fn estimate_tags(&mut self) {
        let out = self.queues.in_flight;
        self.tag_max = self.tag_max.max(out);
        if self.queues.held <= 4 && out <= 4 {
            return;
        }
        // While a shallow queue is idled for, few requests are sent, which says nothing about the device.
        if let Some((q, _)) = self.active
            && self.idle_window(q)
            && self.queues[q].depth() < TAGGED
            && out < TAGGED
        {
            return;
        }
        self.tag_samples += 1;
        if self.tag_samples >= TAG_SAMPLES {
            self.tagged = self.tag_max >= TAGGED;
            (self.tag_samples, self.tag_max) = (0, 0);
        }
    }
}

impl Scheduler for TreeCfq {
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        let sync = requests[rq].sync;
        let q = self.queues.insert(rq, sync, requests, now);
        match self.preempts(q) {
            Preempts::Takes => {
                self.expire_active(now);
                self.enter(q, Entrance::InFront, now);
                self.serving = None;
            }
            Preempts::EndsWaiting => {
                self.expire_active(now);
                self.enter(q, Entrance::InTurn, now);
            }
            Preempts::No => self.enter(q, Entrance::InTurn, now),
        }
    }

    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue {
        let q = match self.select(now) {
            Ok(q) => q,
            Err(instead) => return instead,
        };
        if !self.may_send(q, now) {
            // Outstanding requests will complete and dispatch again; the slice may end before.
            return self.queues[q].slice_end.map_or(Issue::Nothing, Issue::WaitUntil);
        }
        let Some(rq) = self.queues.choose(q, requests, now) else { return Issue::Nothing };
        self.queues.send(rq, requests);
        Issue::Send(rq)
    }

    fn complete(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos) {
        let q = self.queues.complete(rq, requests, now);
        if self.queues[q].sync {
            self.last_sync_done = now;
        }
        self.estimate_tags();
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
        let own = self.queues.find(&bio.context, bio.is_sync());
        own == Some(requests[rq].queue_index as usize)
    }

    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut RequestTable) {
        self.queues.moved(rq, old_start, requests);
    }

    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable) {
        self.queues.absorbed(into, gone, requests);
    }

    fn may_queue(&self, context: &Context, _: Op, sync: bool) -> MayQueue {
        let active = self.active.map(|(q, _)| q);
        let waited = self.idle_until.is_some() && sync;
        match waited && active == self.queues.find(context, true) {
            true => MayQueue::Must,
            false => MayQueue::Normal,
        }
    }

    fn drain(&mut self, _: &mut RequestTable, out: &mut Vec<Rq>) {
        self.queues.drain(out);
        self.trees.clear();
        self.entry_of.fill(None);
        self.counts = [[0; 3]; 3];
        self.active = None;
        self.idle_until = None;
    }
}
