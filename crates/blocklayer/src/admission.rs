//! Who gets a request: the single-queue pool with its congestion and batching, or blk-mq's tags.

use crate::config::Resolved;
use crate::tags::Tags;
use random::Stream;
use std::collections::{BTreeMap, VecDeque};
use units::Nanos;

/// A freed tag that nobody has taken by then goes to a waiting task. Observed on 6.18: woken io_uring workers
/// had their tag 33 to 41 µs after the completion, in the median.
const LATE: Nanos = Nanos::from_micros(35);

/// A batcher may take this many requests …
const BATCH_REQUESTS: u32 = 32;
/// … within this time.
const BATCH_TIME: Nanos = Nanos::from_millis(20);

/// Counts allocated requests by class, and queues the tasks that wait for one.
#[derive(Debug)]
pub(crate) struct Admission {
    rule: Rule,
    count: [u32; 3],
    full: [bool; 2],
    congested: [bool; 2],
    batchers: BTreeMap<u32, Batch>,
    /// Waiting tasks: in the pool one queue for each class; for tags the first queue alone.
    waiters: [VecDeque<Asks>; 2],
    /// Woken, and not yet back.
    woken: Vec<Asks>,
    /// The share of freed tags that go to waiting tasks, while there are any.
    waiters_share: f64,
    race: Stream,
    /// When waiting tasks take the tags that nobody else took.
    late: Option<Nanos>,
}

#[derive(Debug)]
enum Rule {
    /// The request pool of the single-queue block layer: this many for each of two classes.
    Pool(u32),
    /// blk-mq.
    Tags(Tags),
}

/// A request's allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    class: u8,
    tag: u32,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    left: u32,
    until: Nanos,
}

/// A task that asks for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub class: u8,
    pub process: u32,
    /// The scheduler wants the request although the pool is full.
    pub must: bool,
    /// From how many tags it may choose (blk-mq).
    pub limit: u32,
    /// It waited for a request and was woken.
    pub woken: bool,
}

impl Admission {
    pub fn new(config: &Resolved) -> Self {
        let rule = match config.kernel.multi_queue() {
            false => Rule::Pool(config.nr_requests),
            true => Rule::Tags(Tags::of(config)),
        };
        Self::with(rule, config.tag_waiters_share, config.seed)
    }

    /// `waiters_share`: the share of freed tags that go to waiting tasks.
    fn with(rule: Rule, waiters_share: f64, seed: u64) -> Self {
        Admission {
            rule,
            count: [0; 3],
            full: [false; 2],
            congested: [false; 2],
            batchers: BTreeMap::new(),
            waiters: Default::default(),
            woken: Vec::new(),
            waiters_share,
            race: Stream::new(seed, "who gets a tag"),
            late: None,
        }
    }

    /// RequestTable allocated.
    pub fn allocated(&self) -> u32 {
        self.count.iter().sum()
    }

    /// Write-back asks this before it goes on.
    pub fn congested(&self, class: u8) -> bool {
        self.congested.get(class as usize).copied().unwrap_or(false)
    }

    /// What a woken process asked for when it began to wait; `None` if it was not woken. Its bio is not
    /// tried for merging again: its task waited inside the allocation.
    pub fn returns(&mut self, process: u32) -> Option<Asks> {
        let at = self.woken.iter().position(|asks| asks.process == process);
        at.map(|at| self.woken.remove(at))
    }

    /// Allocates a request, if there is one.
    pub fn take(&mut self, asks: Asks, now: Nanos) -> Option<Grant> {
        let tag = match &mut self.rule {
            Rule::Pool(n) => {
                let n = *n;
                self.take_from_pool(n, asks, now).then_some(0)
            }
            Rule::Tags(tags) => tags.take(asks.limit),
        }?;
        self.count[asks.class as usize] += 1;
        Some(Grant { class: asks.class, tag })
    }

    /// Queues a task that was refused.
    pub fn sleep(&mut self, asks: Asks) {
        self.queue(asks.class).push_back(asks);
    }

    fn queue(&mut self, class: u8) -> &mut VecDeque<Asks> {
        match self.rule {
            Rule::Pool(_) => &mut self.waiters[class as usize],
            Rule::Tags(_) => &mut self.waiters[0],
        }
    }

    fn take_from_pool(&mut self, n: u32, asks: Asks, now: Nanos) -> bool {
        let class = asks.class as usize;
        let count = self.count[class];
        if asks.woken {
            self.make_batcher(asks.process, now);
        }
        if count + 1 >= n {
            if !self.full[class] {
                self.full[class] = true;
                self.make_batcher(asks.process, now);
            } else if !asks.must && !self.may_batch(asks, now) {
                return false;
            }
        }
        if count >= n + n / 2 {
            return false;
        }
        // On at n − n/8 + 1: 113 of 128.
        if count + 1 > n - n / 8 {
            self.congested[class] = true;
        }
        if let Some(batch) = self.batchers.get_mut(&asks.process) {
            batch.left = batch.left.saturating_sub(1);
            if batch.left == 0 {
                self.batchers.remove(&asks.process);
            }
        }
        true
    }

    fn make_batcher(&mut self, process: u32, now: Nanos) {
        if self.batchers.len() > 1024 {
            self.batchers.retain(|_, batch| batch.until > now);
        }
        let batch = Batch { left: BATCH_REQUESTS, until: now + BATCH_TIME };
        self.batchers.insert(process, batch);
    }

    /// A batcher whose time has expired may still take its first.
    fn may_batch(&self, asks: Asks, now: Nanos) -> bool {
        asks.woken
            || self
                .batchers
                .get(&asks.process)
                .is_some_and(|b| b.left == BATCH_REQUESTS || (b.left > 0 && now < b.until))
    }

    /// Frees a request, and wakes who may try again.
    pub fn give_back(&mut self, grant: Grant, now: Nanos, woken: &mut Vec<u32>) {
        let class = usize::from(grant.class);
        self.count[class] -= 1;
        match &mut self.rule {
            Rule::Pool(n) => {
                let (n, count) = (*n, self.count[class]);
                // Off below n − n/8 − n/16: at 103 of 128.
                if count < (n - n / 8).saturating_sub(n / 16) {
                    self.congested[class] = false;
                }
                if count < n {
                    match self.waiters[class].is_empty() {
                        true => self.full[class] = false,
                        false => self.wake(class, 0, woken),
                    }
                }
            }
            Rule::Tags(tags) => {
                tags.give_back(grant.tag);
                self.race_for(grant.tag, now, woken);
            }
        }
    }

    /// A freed tag is contended: waiting tasks are woken, while on another processor the task whose request
    /// completed issues its next one. Chance decides. Of all tags, waiting tasks get their share; a task
    /// that may use few tags competes for fewer of them, and so wins each more often. What a share of the
    /// few cannot provide goes to the task at the head of the queue.
    fn race_for(&mut self, tag: u32, now: Nanos, woken: &mut Vec<u32>) {
        let (Rule::Tags(tags), Some(front)) = (&self.rule, self.waiters[0].front()) else { return };
        let first = self.waiters[0].iter().position(|asks| tags.may_have(tag, asks.limit));
        let limit = first.map_or(front.limit, |first| self.waiters[0][first].limit);
        let few = f64::from(limit) / f64::from(self.allocated() + 1);
        let chance = match (first, tags.is_few(limit)) {
            (Some(_), false) => self.waiters_share,
            (Some(_), true) => self.waiters_share / few,
            (None, _) => self.waiters_share - few,
        };
        let who = first.unwrap_or(0);
        if self.race.unit() >= chance {
            self.late = self.late.or(Some(now + LATE));
            // Woken too late: it waits again behind the others.
            let late_waiter = self.waiters[0].remove(who);
            self.waiters[0].extend(late_waiter);
            return;
        }
        self.wake(0, who, woken);
        if let (None, Some(asks)) = (first, self.woken.last_mut()) {
            asks.limit = u32::MAX;
        }
    }

    /// When [`wake_for_untaken`](Self::wake_for_untaken) has to be called.
    pub fn next_event(&self) -> Option<Nanos> {
        self.late
    }

    /// Wakes the tasks that get the tags nobody took, if it is time.
    pub fn wake_for_untaken(&mut self, now: Nanos, woken: &mut Vec<u32>) {
        if self.late.is_some_and(|late| late <= now)
            && let Rule::Tags(tags) = &self.rule
        {
            self.late = None;
            let left = tags.len() - self.allocated();
            (0..left).for_each(|_| self.wake(0, 0, woken));
        }
    }

    /// Whether tasks wait and none has been woken.
    pub fn waiters_need_a_wakeup(&self) -> bool {
        self.woken.is_empty() && self.waiters.iter().any(|waiting| !waiting.is_empty())
    }

    /// Wakes one where nobody else would: the task woken last may have merged its bio, and freed no tag.
    pub fn wake_one(&mut self, woken: &mut Vec<u32>) {
        for class in 0..self.waiters.len() {
            let room = match self.rule {
                Rule::Pool(n) => self.count[class] < n,
                Rule::Tags(_) => self.allocated() == 0 && self.late.is_none(),
            };
            if room && !self.waiters[class].is_empty() {
                self.wake(class, 0, woken);
            }
        }
    }

    fn wake(&mut self, class: usize, at: usize, woken: &mut Vec<u32>) {
        if let Some(asks) = self.waiters[class].remove(at) {
            woken.push(asks.process);
            self.woken.push(asks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn asks(process: u32) -> Asks {
        Asks { class: 1, process, must: false, limit: u32::MAX, woken: false }
    }

    /// What such an asker was given, of tags this one.
    fn had(tag: u32) -> Grant {
        Grant { class: 1, tag }
    }

    #[test]
    fn congestion_goes_on_at_113_and_off_at_103_of_128() {
        let mut pool = Admission::with(Rule::Pool(128), 0.0, 0);
        let mut woken = Vec::new();
        let mut on_at = None;
        for taken in 1..=120 {
            assert!(pool.take(asks(1), Nanos::ZERO).is_some());
            if pool.congested(1) && on_at.is_none() {
                on_at = Some(taken);
            }
        }
        assert_eq!(on_at, Some(113));
        let mut off_at = None;
        for left in (0..120).rev() {
            pool.give_back(had(0), Nanos::ZERO, &mut woken);
            if !pool.congested(1) && off_at.is_none() {
                off_at = Some(left);
            }
        }
        assert_eq!(off_at, Some(103));
    }

    #[test]
    fn the_first_at_a_full_pool_batches_and_others_sleep() {
        let mut pool = Admission::with(Rule::Pool(128), 0.0, 0);
        let now = Nanos::ZERO;
        for _ in 0..128 {
            assert!(pool.take(asks(1), now).is_some());
        }
        // Process 1 took the 128th, which made it the batcher: 31 more. Another must sleep.
        assert!(pool.take(asks(2), now).is_none());
        pool.sleep(asks(2));
        for _ in 0..31 {
            assert!(pool.take(asks(1), now).is_some());
        }
        assert!(pool.take(asks(1), now).is_none());
        pool.sleep(asks(1));
        assert_eq!(pool.allocated(), 159);
        let mut woken = Vec::new();
        for _ in 0..31 {
            pool.give_back(had(0), Nanos::ZERO, &mut woken);
        }
        assert!(woken.is_empty());
        pool.give_back(had(0), Nanos::ZERO, &mut woken);
        assert_eq!(woken, [2]);
        assert!(pool.returns(2).is_some() && pool.returns(2).is_none());
        assert!(pool.take(Asks { woken: true, ..asks(2) }, now).is_some());
    }

    /// Two tags, both taken, and tasks 10, 11 … that wait.
    fn full(waiters_share: f64) -> Admission {
        let mut tags = Admission::with(Rule::Tags(Tags::new(2, 2)), waiters_share, 0);
        assert!((0..2).all(|_| tags.take(asks(1), Nanos::ZERO).is_some()));
        for sleeper in 10..1010 {
            assert!(tags.take(asks(sleeper), Nanos::ZERO).is_none());
            tags.sleep(asks(sleeper));
        }
        tags
    }

    #[test]
    fn waiters_get_their_share_and_late_ones_wait_behind_the_others() {
        let mut tags = full(0.2);
        let mut woken = Vec::new();
        for _ in 0..2000 {
            let before = woken.len();
            tags.give_back(had(0), Nanos::ZERO, &mut woken);
            for sleeper in &woken[before..] {
                assert!(tags.returns(*sleeper).is_some());
            }
            assert!(tags.take(asks(1), Nanos::ZERO).is_some());
        }
        let part = woken.len() as f64 / 2000.0;
        assert!((part - 0.2).abs() < 0.04, "{part}");
        // A thousand had their turn, then the 800 who had lost, then who had lost again.
        let rounds = woken.chunk_by(|one, next| one < next).count();
        assert_eq!((rounds, woken.iter().collect::<BTreeSet<_>>().len()), (3, woken.len()));
    }

    #[test]
    fn tags_that_nobody_takes_go_to_waiters() {
        let mut tags = full(0.0);
        let mut woken = Vec::new();
        tags.give_back(had(0), Nanos::ZERO, &mut woken);
        tags.give_back(had(1), Nanos(5), &mut woken);
        assert_eq!((woken.len(), tags.next_event()), (0, Some(LATE)));
        assert!(tags.take(asks(1), Nanos(6)).is_some(), "a newcomer");
        tags.wake_for_untaken(Nanos(7), &mut woken);
        assert!(woken.is_empty(), "too early");
        tags.wake_for_untaken(LATE, &mut woken);
        assert_eq!(
            (woken, tags.next_event()),
            (vec![12], None),
            "10 and 11 had been woken, too late"
        );
    }

    #[test]
    fn a_waiter_for_few_tags_gets_no_other() {
        let limited = |process| Asks { limit: 1, ..asks(process) };
        let mut tags = Admission::with(Rule::Tags(Tags::new(256, 256)), 0.0, 0);
        for _ in 0..9 {
            assert!(tags.take(asks(1), Nanos::ZERO).is_some());
        }
        assert_eq!(tags.take(limited(2), Nanos::ZERO), None);
        tags.sleep(limited(2));
        let mut woken = Vec::new();
        tags.give_back(had(5), Nanos::ZERO, &mut woken);
        assert!(woken.is_empty(), "no race for another's tag");
        tags.wake_for_untaken(LATE, &mut woken);
        let again = tags.returns(2).expect("woken in vain");
        assert_eq!((again.limit, tags.take(again, LATE)), (1, None));
        tags.sleep(again);
        tags.give_back(had(0), LATE, &mut woken);
        tags.wake_for_untaken(LATE + LATE, &mut woken);
        assert_eq!(woken, [2, 2]);
        let again = tags.returns(2).expect("woken for its tag");
        assert_eq!(tags.take(again, LATE), Some(had(0)));
    }

    #[test]
    fn never_more_than_half_again() {
        let mut pool = Admission::with(Rule::Pool(4), 0.0, 0);
        let taken = (0..100)
            .filter_map(|p| pool.take(Asks { woken: true, ..asks(p) }, Nanos::ZERO))
            .count();
        assert_eq!(taken, 6);
    }
}
