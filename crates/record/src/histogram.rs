//! Latency histograms.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Counts of latencies in buckets whose width is under 1 % of their value (HdrHistogram with two
/// significant digits), from 1 ns to about 18 minutes; what is longer counts as that.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// The longest latency that is told apart from a longer one.
const LONGEST_NS: u64 = 1 << 40;

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// With no latencies in it. It grows to the longest that is counted: a run holds three for each trial,
    /// and most of what they could count never happens.
    #[allow(clippy::expect_used)] // A constant, which the library accepts: a test would fail.
    pub fn new() -> Self {
        Histogram(hdrhistogram::Histogram::new(2).expect("two digits are valid"))
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        // It grows, so that counting fails only where memory does.
        let _ = self.0.record(latency.0.min(LONGEST_NS));
    }

    /// Counts `count` latencies of the same length.
    pub fn record_n(&mut self, latency: Nanos, count: u64) {
        let _ = self.0.record_n(latency.0.min(LONGEST_NS), count);
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        // Both have the same digits, and this one grows.
        let _ = self.0.add(&other.0);
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latency that a share `quantile` (0 to 1) of all does not exceed; `None` when empty.
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.value_at_quantile(quantile)))
    }

    /// The mean, within a bucket's width; `None` when empty.
    pub fn mean(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.mean().round() as u64))
    }

    /// The longest, within a bucket's width; `None` when empty.
    pub fn max(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.0.max()))
    }

    /// Non-empty buckets: the highest latency that each holds, and how many are in it, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.0.iter_recorded().map(|step| {
            (Nanos(step.value_iterated_to().min(LONGEST_NS * 2)), step.count_at_value())
        })
    }

    /// From what [`Histogram::buckets`] gave.
    pub fn from_buckets(buckets: impl IntoIterator<Item = (Nanos, u64)>) -> Self {
        let mut histogram = Histogram::new();
        for (latency, count) in buckets {
            histogram.record_n(latency, count);
        }
        histogram
    }
}

/// As `[[nanoseconds, count], …]`, which SQLite's and everybody's JSON can read.
impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Histogram::from_buckets(Vec::<(Nanos, u64)>::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_has_no_quantiles() {
        let histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.99), None);
        assert_eq!(histogram.mean(), None);
        assert_eq!(histogram.max(), None);
    }

    proptest! {
        #[test]
        fn error_is_under_one_percent(ns in 1u64..LONGEST_NS) {
            let mut histogram = Histogram::new();
            histogram.record(Nanos(ns));
            let read = histogram.quantile(0.5).unwrap().0 as f64;
            prop_assert!((read / ns as f64 - 1.0).abs() <= 0.01);
        }

        #[test]
        fn reads_back_as_written(all in prop::collection::vec(0u64..LONGEST_NS * 4, 0..200)) {
            let mut histogram = Histogram::new();
            for ns in all {
                histogram.record(Nanos(ns));
            }
            let text = serde_json::to_string(&histogram).unwrap();
            let read: Histogram = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(serde_json::to_string(&read).unwrap(), text);
            prop_assert_eq!(read.quantile(0.99), histogram.quantile(0.99));
        }
    }
}
