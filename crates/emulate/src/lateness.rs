//! How late completions were delivered, how long the model took, and when that matters.

use crate::clock::{Scheduling, WallInstant};
use device::Op;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use units::{Bytes, Nanos, Sectors};

/// What a pacer counted.
#[derive(Clone, Debug)]
pub struct Tally {
    /// RequestCounts that arrived, by kind.
    pub requests: RequestCounts,
    /// From a completion in the model's time to its delivery to the kernel.
    late: Histogram<u64>,
    late_sum: u128,
    /// From a request's arrival to its completion, in the model's time.
    response: Histogram<u64>,
    response_sum: u128,
    /// Time the pacing thread spent spinning.
    pub spun: Nanos,
    /// Of that, the time in which it was preempted.
    pub spun_preempted: Nanos,
    /// When it was last preempted, in its last spin.
    pub last_preempted: Range<WallInstant>,
    /// Lateness of completions that were not due while it was preempted.
    undisturbed: Histogram<u64>,
    /// How the pacing thread is scheduled.
    pub scheduling: Option<Scheduling>,
}

/// RequestCounts by kind, and what they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Read.
    pub read_bytes: Bytes,
    /// Written.
    pub written_bytes: Bytes,
}

/// Lateness beside the model's own times, in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Completions.
    pub completions: u64,
    /// Mean lateness.
    pub mean: Nanos,
    /// The median.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The latest.
    pub max: Nanos,
    /// The 99th percentile of those that were not due while the pacing thread was preempted.
    pub kept_p99: Nanos,
    /// Mean time at the model.
    pub response_mean: Nanos,
    /// 99th percentile of the time at the model.
    pub response_p99: Nanos,
}

impl Tally {
    /// Nothing counted.
    #[allow(clippy::expect_used)] // Constant bounds, which the library accepts: a test would fail.
    pub fn new() -> Tally {
        let empty =
            || Histogram::new_with_bounds(1, 1 << 40, 2).expect("constant bounds are valid");
        Tally {
            requests: RequestCounts::default(),
            late: empty(),
            late_sum: 0,
            response: empty(),
            response_sum: 0,
            spun: Nanos::ZERO,
            spun_preempted: Nanos::ZERO,
            last_preempted: WallInstant(0)..WallInstant(0),
            undisturbed: empty(),
            scheduling: None,
        }
    }

    /// A request came.
    pub fn arrived(&mut self, op: Op, count: Sectors) {
        let requests = &mut self.requests;
        match op {
            Op::Read => {
                requests.reads += 1;
                requests.read_bytes = requests.read_bytes + count.bytes();
            }
            Op::Write => {
                requests.writes += 1;
                requests.written_bytes = requests.written_bytes + count.bytes();
            }
            Op::Flush => requests.flushes += 1,
            Op::Discard => requests.discards += 1,
        }
    }

    /// A completion was delivered; `preempted`: it was due while the thread was preempted.
    pub fn delivered(&mut self, late: Nanos, response: Nanos, preempted: bool) {
        if !preempted {
            self.undisturbed.saturating_record(late.0);
        }
        self.late.saturating_record(late.0);
        self.late_sum += u128::from(late.0);
        self.response.saturating_record(response.0);
        self.response_sum += u128::from(response.0);
    }

    /// In figures.
    pub fn lateness(&self) -> Lateness {
        let count = self.late.len();
        let mean = |sum: u128| Nanos((sum / u128::from(count.max(1))) as u64);
        Lateness {
            completions: count,
            mean: mean(self.late_sum),
            p50: Nanos(self.late.value_at_quantile(0.5)),
            p99: Nanos(self.late.value_at_quantile(0.99)),
            max: Nanos(self.late.max()),
            kept_p99: Nanos(self.undisturbed.value_at_quantile(0.99)),
            response_mean: mean(self.response_sum),
            response_p99: Nanos(self.response.value_at_quantile(0.99)),
        }
    }
}

impl Default for Tally {
    fn default() -> Self {
        Tally::new()
    }
}

/// A mean lateness below this is the transport's usual cost, whatever the model's times.
pub const DEFAULT_MEAN: Nanos = Nanos::from_micros(20);
/// The same for the 99th percentile.
pub const DEFAULT_P99: Nanos = Nanos::from_micros(100);

impl Lateness {
    /// Which lateness makes figures wrong by more than `margin` (a share), if one does.
    ///
    /// In a closed loop, completions that come late by a share of the response time lower throughput
    /// and lengthen the mean latency by that share: more than the margin within which two cells are
    /// called equal is an error that matters. A tail is allowed three margins of the model's own
    /// 99th percentile, because one lateness falls on fast and on slow requests alike. What is below
    /// the usual cost of handing a completion over counts as part of the transport, which every cell
    /// pays and which is stated.
    pub fn too_late(&self, margin: f64) -> Option<TooLate> {
        if self.completions == 0 {
            return None;
        }
        let beyond = |statistic, late: Nanos, response: Nanos, least: Nanos, share: f64| {
            let too_late = late > least && late.0 as f64 / response.0.max(1) as f64 > share;
            too_late.then_some(TooLate { statistic, late, response })
        };
        beyond(LateStatistic::Mean, self.mean, self.response_mean, DEFAULT_MEAN, margin).or_else(
            || beyond(LateStatistic::P99, self.p99, self.response_p99, DEFAULT_P99, 3.0 * margin),
        )
    }
}

/// Of which statistic a lateness is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateStatistic {
    /// The mean.
    Mean,
    /// The 99th percentile.
    P99,
}

/// A lateness that matters beside the model's own response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLate {
    /// Of which statistic both are.
    pub statistic: LateStatistic,
    /// The lateness.
    pub late: Nanos,
    /// The model's response time.
    pub response: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(late_us: u64, response_us: u64) -> Lateness {
        let mut tally = Tally::new();
        for _ in 0..100 {
            tally.delivered(Nanos::from_micros(late_us), Nanos::from_micros(response_us), false);
        }
        tally.lateness()
    }

    #[test]
    fn what_is_small_beside_the_models_time_does_not_matter() {
        assert_eq!(of(80, 5000).too_late(0.03), None);
        assert_eq!(of(15, 30).too_late(0.03), None, "the transport's usual cost");
        assert_eq!(Tally::new().lateness().too_late(0.03), None);
    }

    #[test]
    fn what_was_due_while_the_thread_was_preempted_counts_apart() {
        let mut tally = Tally::new();
        for nth in 0..1000u64 {
            let taken = nth % 20 == 0;
            let late = if taken { 40 } else { 2 };
            tally.delivered(Nanos::from_micros(late), Nanos::from_micros(100), taken);
        }
        let lateness = tally.lateness();
        assert!(lateness.p99 >= Nanos::from_micros(39), "{lateness:?}");
        assert!(lateness.kept_p99 <= Nanos::from_micros(3), "{lateness:?}");
        assert_eq!(lateness.completions, 1000);
    }

    #[test]
    fn what_moves_a_mean_or_a_tail_beyond_the_margin_matters() {
        let mean = of(200, 5000).too_late(0.03).unwrap();
        assert_eq!(mean.statistic, LateStatistic::Mean);
        let mut tally = Tally::new();
        for nth in 0..1000u64 {
            let late = if nth % 50 == 0 { 2_000 } else { 10 };
            tally.delivered(Nanos::from_micros(late), Nanos::from_micros(5000), false);
        }
        let tail = tally.lateness().too_late(0.03).unwrap();
        assert_eq!(tail.statistic, LateStatistic::P99);
    }
}
