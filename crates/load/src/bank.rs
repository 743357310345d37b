//! Latency counts that live in memory shared with the clients.
//!
//! A client adds with a plain store, the observer reads whenever it likes: one writer each, no lock,
//! and nothing is lost when a client process is killed. The buckets are those of
//! [`record::Histogram`] (128 to each doubling), so that turning one into the other rounds nothing.

use record::Histogram;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use units::Nanos;

/// Buckets to each doubling of the latency: a width under 1 % of the value.
const GROUP: usize = 128;
/// Groups up to 2^40 ns, the longest latency that the record tells apart.
const GROUPS: usize = 35;
const BUCKETS: usize = GROUP * GROUPS;
const LONGEST_NS: u64 = 1 << 40;

/// Latency counts of one kind of operation of one client. All-zero memory is an empty bank.
#[repr(C)]
pub(crate) struct Bank {
    /// Bit g: something in group g was counted; spares the observer the untouched pages.
    touched: AtomicU64,
    counts: [AtomicU64; BUCKETS],
}

/// The bucket of a latency: below 256 ns its value; above, 128 buckets a doubling.
#[inline]
fn bucket_of(latency: Nanos) -> usize {
    let ns = latency.0.min(LONGEST_NS);
    let shift = (56 - (ns | 255).leading_zeros()) as usize;
    (shift << 7) + (ns >> shift) as usize
}

/// The longest latency that falls into a bucket.
fn longest_in(bucket: usize) -> Nanos {
    if bucket < 2 * GROUP {
        return Nanos(bucket as u64);
    }
    let shift = bucket / GROUP - 1;
    let lowest = ((bucket - shift * GROUP) as u64) << shift;
    Nanos(lowest + (1 << shift) - 1)
}

impl Bank {
    /// Counts one latency. Only the client that owns the bank may call this.
    #[inline]
    pub fn record(&self, latency: Nanos) {
        let bucket = bucket_of(latency);
        let cell = &self.counts[bucket];
        cell.store(cell.load(Relaxed) + 1, Relaxed);
        let bit = 1 << (bucket / GROUP);
        let touched = self.touched.load(Relaxed);
        if touched & bit == 0 {
            self.touched.store(touched | bit, Relaxed);
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        let mut count = 0;
        self.each_touched(|_, n| count += n);
        count
    }

    fn each_touched(&self, mut each: impl FnMut(usize, u64)) {
        let mut touched = self.touched.load(Relaxed);
        while touched != 0 {
            let group = touched.trailing_zeros() as usize;
            touched &= touched - 1;
            for bucket in group * GROUP..(group + 1) * GROUP {
                let count = self.counts[bucket].load(Relaxed);
                if count > 0 {
                    each(bucket, count);
                }
            }
        }
    }
}

/// Latency counts of many banks at one moment.
#[derive(Clone)]
pub(crate) struct Tally {
    counts: Vec<u64>,
    total: u64,
}

impl Tally {
    pub fn new() -> Self {
        Tally { counts: vec![0; BUCKETS], total: 0 }
    }

    pub fn add(&mut self, bank: &Bank) {
        bank.each_touched(|bucket, count| {
            self.counts[bucket] += count;
            self.total += count;
        });
    }

    /// Counts `count` latencies of the same length.
    pub fn record_n(&mut self, latency: Nanos, count: u64) {
        self.counts[bucket_of(latency)] += count;
        self.total += count;
    }

    /// What was counted since `earlier`, a tally of the same banks.
    pub fn since(&self, earlier: &Tally) -> Tally {
        let counts: Vec<u64> = self
            .counts
            .iter()
            .zip(&earlier.counts)
            .map(|(now, before)| now.saturating_sub(*before))
            .collect();
        let total = counts.iter().sum();
        Tally { counts, total }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The latency that a share `quantile` does not exceed; zero when there is none.
    pub fn quantile(&self, quantile: f64) -> Nanos {
        let wanted = ((self.total as f64 * quantile).ceil() as u64).max(1);
        let mut passed = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= wanted {
                return longest_in(bucket);
            }
        }
        Nanos::ZERO
    }

    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            histogram.record_n(longest_in(bucket), *count);
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rounds_as_the_record_does(ns in prop::collection::vec(0..LONGEST_NS, 1..50)) {
            let (mut tally, mut histogram) = (Tally::new(), Histogram::new());
            for ns in ns {
                tally.record_n(Nanos(ns), 1);
                histogram.record(Nanos(ns));
            }
            prop_assert_eq!(tally.histogram(), histogram.clone());
            prop_assert_eq!(Some(tally.quantile(0.99)), histogram.quantile(0.99));
            prop_assert_eq!(Some(tally.quantile(0.5)), histogram.quantile(0.5));
        }
    }

    #[test]
    fn the_longest_latency_has_a_bucket() {
        assert!(bucket_of(Nanos::MAX) < BUCKETS);
        assert!(longest_in(bucket_of(Nanos(LONGEST_NS))).0 >= LONGEST_NS);
    }
}
