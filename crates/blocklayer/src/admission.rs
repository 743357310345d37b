//! Who gets a request: the single-queue pool with its congestion and batching, or blk-mq's tags.

use std::collections::{BTreeMap, VecDeque};
use units::Nanos;

/// A batcher may take this many requests …
const BATCH_REQUESTS: u32 = 32;
/// … within this time.
const BATCH_TIME: Nanos = Nanos::from_millis(20);

/// Counts what is allocated by class, and who sleeps for more.
#[derive(Debug)]
pub(crate) struct Admission {
    rule: Rule,
    n: u32,
    count: [u32; 3],
    full: [bool; 2],
    congested: [bool; 2],
    batchers: BTreeMap<u32, Batch>,
    waiters: [VecDeque<(u64, u32)>; 3],
    sequence: u64,
    /// Named in an outcome and not yet back.
    woken: BTreeMap<u32, u32>,
    woken_total: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The pool of the single-queue era, `n` for each of two classes.
    Pool,
    /// blk-mq: `n` tags for all.
    Tags,
}

#[derive(Clone, Copy, Debug)]
struct Batch {
    left: u32,
    until: Nanos,
}

/// Who asks for a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub class: u8,
    pub process: u32,
    /// The scheduler wants it although the pool is full.
    pub must: bool,
    /// How many of its class may be out (blk-mq).
    pub limit: u32,
}

impl Admission {
    pub fn new(rule: Rule, n: u32) -> Self {
        Admission {
            rule,
            n,
            count: [0; 3],
            full: [false; 2],
            congested: [false; 2],
            batchers: BTreeMap::new(),
            waiters: Default::default(),
            sequence: 0,
            woken: BTreeMap::new(),
            woken_total: 0,
        }
    }

    /// Requests allocated.
    pub fn allocated(&self) -> u32 {
        self.count.iter().sum()
    }

    /// Write-back asks this before it goes on.
    pub fn congested(&self, class: u8) -> bool {
        self.congested.get(class as usize).copied().unwrap_or(false)
    }

    /// Whether this process was named as woken and comes back now. Such a bio is not tried for
    /// merging again: its task slept inside the allocation.
    pub fn returns(&mut self, process: u32) -> bool {
        if self.woken_total == 0 {
            return false;
        }
        let Some(times) = self.woken.get_mut(&process) else { return false };
        *times -= 1;
        if *times == 0 {
            self.woken.remove(&process);
        }
        self.woken_total -= 1;
        true
    }

    /// Takes a request, or puts the process to sleep.
    pub fn take(&mut self, asks: Asks, woken: bool, now: Nanos) -> bool {
        let granted = match self.rule {
            Rule::Pool => self.take_from_pool(asks, woken, now),
            Rule::Tags => self.allocated() < self.n && self.of(asks.class) < asks.limit,
        };
        if granted {
            self.count[asks.class as usize] += 1;
        } else {
            self.sequence += 1;
            self.waiters[asks.class as usize].push_back((self.sequence, asks.process));
        }
        granted
    }

    fn of(&self, class: u8) -> u32 {
        self.count[class as usize]
    }

    fn take_from_pool(&mut self, asks: Asks, woken: bool, now: Nanos) -> bool {
        let class = asks.class as usize;
        let count = self.count[class];
        if woken {
            self.make_batcher(asks.process, now);
        }
        if count + 1 >= self.n {
            if !self.full[class] {
                self.full[class] = true;
                self.make_batcher(asks.process, now);
            } else if !asks.must && !self.may_batch(asks.process, woken, now) {
                return false;
            }
        }
        if count >= self.n + self.n / 2 {
            return false;
        }
        // On at n − n/8 + 1: 113 of 128.
        if count + 1 > self.n - self.n / 8 {
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

    /// A batcher whose time is over may still take its first.
    fn may_batch(&self, process: u32, woken: bool, now: Nanos) -> bool {
        woken
            || self
                .batchers
                .get(&process)
                .is_some_and(|b| b.left == BATCH_REQUESTS || (b.left > 0 && now < b.until))
    }

    /// Gives a request back, and names who may try again.
    pub fn give_back(&mut self, class: u8, limits: [u32; 3], woken: &mut Vec<u32>) {
        self.count[class as usize] -= 1;
        match self.rule {
            Rule::Pool => {
                let (count, c) = (self.count[class as usize], class as usize);
                // Off below n − n/8 − n/16: at 103 of 128.
                if count < (self.n - self.n / 8).saturating_sub(self.n / 16) {
                    self.congested[c] = false;
                }
                if count < self.n {
                    match self.waiters[c].is_empty() {
                        true => self.full[c] = false,
                        false => self.wake(c, woken),
                    }
                }
            }
            Rule::Tags => self.wake_oldest(limits, woken),
        }
    }

    /// Whether someone sleeps and nobody is on the way.
    pub fn sleepers_need_a_nudge(&self) -> bool {
        self.woken_total == 0 && self.waiters.iter().any(|waiting| !waiting.is_empty())
    }

    /// Wakes one, if there is room: a woken task may have found its place without a request.
    pub fn nudge(&mut self, limits: [u32; 3], woken: &mut Vec<u32>) {
        match self.rule {
            Rule::Pool => {
                for class in 0..2 {
                    if self.count[class] < self.n && !self.waiters[class].is_empty() {
                        self.wake(class, woken);
                    }
                }
            }
            Rule::Tags => self.wake_oldest(limits, woken),
        }
    }

    fn wake_oldest(&mut self, limits: [u32; 3], woken: &mut Vec<u32>) {
        if self.allocated() >= self.n {
            return;
        }
        let fits = |class: &usize| self.count[*class] < limits[*class];
        let oldest = |class: &usize| self.waiters[*class].front().map(|(sequence, _)| *sequence);
        let class = (0..3)
            .filter(fits)
            .filter(|class| oldest(class).is_some())
            .min_by_key(|class| oldest(class));
        if let Some(class) = class {
            self.wake(class, woken);
        }
    }

    fn wake(&mut self, class: usize, woken: &mut Vec<u32>) {
        if let Some((_, process)) = self.waiters[class].pop_front() {
            *self.woken.entry(process).or_default() += 1;
            self.woken_total += 1;
            woken.push(process);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(process: u32) -> Asks {
        Asks { class: 1, process, must: false, limit: u32::MAX }
    }

    #[test]
    fn congestion_goes_on_at_113_and_off_at_103_of_128() {
        let mut pool = Admission::new(Rule::Pool, 128);
        let mut woken = Vec::new();
        let mut on_at = None;
        for taken in 1..=120 {
            assert!(pool.take(asks(1), false, Nanos::ZERO));
            if pool.congested(1) && on_at.is_none() {
                on_at = Some(taken);
            }
        }
        assert_eq!(on_at, Some(113));
        let mut off_at = None;
        for left in (0..120).rev() {
            pool.give_back(1, [u32::MAX; 3], &mut woken);
            if !pool.congested(1) && off_at.is_none() {
                off_at = Some(left);
            }
        }
        assert_eq!(off_at, Some(103));
    }

    #[test]
    fn the_first_at_a_full_pool_batches_and_others_sleep() {
        let mut pool = Admission::new(Rule::Pool, 128);
        let now = Nanos::ZERO;
        for _ in 0..128 {
            assert!(pool.take(asks(1), false, now));
        }
        // Process 1 took the 128th, which made it the batcher: 31 more. Another must sleep.
        assert!(!pool.take(asks(2), false, now));
        for _ in 0..31 {
            assert!(pool.take(asks(1), false, now));
        }
        assert!(!pool.take(asks(1), false, now));
        assert_eq!(pool.allocated(), 159);
        let mut woken = Vec::new();
        for _ in 0..31 {
            pool.give_back(1, [u32::MAX; 3], &mut woken);
        }
        assert!(woken.is_empty());
        pool.give_back(1, [u32::MAX; 3], &mut woken);
        assert_eq!(woken, [2]);
        assert!(pool.returns(2));
        assert!(pool.take(asks(2), true, now));
    }

    #[test]
    fn never_more_than_half_again() {
        let mut pool = Admission::new(Rule::Pool, 4);
        let taken = (0..100).filter(|p| pool.take(asks(*p), true, Nanos::ZERO)).count();
        assert_eq!(taken, 6);
    }
}
