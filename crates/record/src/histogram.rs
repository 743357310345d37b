//! Latency histograms.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Counts of latencies in buckets whose width is under 1 % of their value (HdrHistogram with two
/// significant digits), from 1 ns to about 18 minutes; what is longer counts as that.
#[derive(Clone, Debug)]
pub struct Histogram(Counts);

/// How the counts are held. Both say the same.
#[derive(Clone, Debug)]
enum Counts {
    /// One number for every bucket up to the longest latency: for counting. Tens of kilobytes.
    Dense(Box<hdrhistogram::Histogram<u64>>),
    /// The buckets that hold something: for keeping. About five bytes for each.
    Packed(Packed),
}

/// The longest latency that is told apart from a longer one.
const LONGEST_NS: u64 = 1 << 40;

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// With no latencies in it. It grows to the longest that is counted, and takes no memory before the
    /// first: most of what a trial could count never happens.
    pub fn new() -> Self {
        Histogram(Counts::Packed(Packed::default()))
    }

    /// The same, to be kept rather than counted with.
    pub fn packed(self) -> Self {
        match &self.0 {
            Counts::Packed(_) => self,
            Counts::Dense(_) => Histogram(Counts::Packed(Packed::of(self.buckets()))),
        }
    }

    fn dense(&mut self) -> &mut hdrhistogram::Histogram<u64> {
        if let Counts::Packed(packed) = &self.0 {
            self.0 = Counts::Dense(Box::new(packed.unpacked()));
        }
        match &mut self.0 {
            Counts::Dense(dense) => dense,
            Counts::Packed(_) => unreachable!("it was unpacked"),
        }
    }

    /// What the library says of the counts.
    fn ask<T>(&self, question: impl Fn(&hdrhistogram::Histogram<u64>) -> T) -> T {
        match &self.0 {
            Counts::Dense(dense) => question(dense),
            Counts::Packed(packed) => question(&packed.unpacked()),
        }
    }

    /// Counts one latency.
    #[inline]
    pub fn record(&mut self, latency: Nanos) {
        // It grows, so that counting fails only where memory does.
        let _ = self.dense().record(latency.0.min(LONGEST_NS));
    }

    /// Counts `count` latencies of the same length.
    pub fn record_n(&mut self, latency: Nanos, count: u64) {
        let _ = self.dense().record_n(latency.0.min(LONGEST_NS), count);
    }

    /// Adds all that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        match &other.0 {
            _ if other.is_empty() => {}
            // Both have the same digits, and this one grows.
            Counts::Dense(dense) => drop(self.dense().add(&**dense)),
            Counts::Packed(packed) => {
                packed.buckets().for_each(|(latency, count)| self.record_n(latency, count));
            }
        }
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Counts::Dense(dense) => dense.reset(),
            Counts::Packed(packed) => *packed = Packed::default(),
        }
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Counts::Dense(dense) => dense.len(),
            Counts::Packed(packed) => packed.buckets().map(|(_, count)| count).sum(),
        }
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Counts::Dense(dense) => dense.is_empty(),
            Counts::Packed(packed) => packed.0.is_empty(),
        }
    }

    /// The latency that a share `quantile` (0 to 1) of all does not exceed; `None` when empty.
    pub fn quantile(&self, quantile: f64) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.ask(|dense| dense.value_at_quantile(quantile))))
    }

    /// The mean, within a bucket's width; `None` when empty.
    pub fn mean(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.ask(|dense| dense.mean()).round() as u64))
    }

    /// The longest, within a bucket's width; `None` when empty.
    pub fn max(&self) -> Option<Nanos> {
        (!self.is_empty()).then(|| Nanos(self.ask(|dense| dense.max())))
    }

    /// Non-empty buckets: the highest latency that each holds, and how many are in it, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let (dense, packed) = match &self.0 {
            Counts::Dense(dense) => (Some(dense), None),
            Counts::Packed(packed) => (None, Some(packed)),
        };
        let dense = dense.into_iter().flat_map(|dense| dense.iter_recorded()).map(|step| {
            (Nanos(step.value_iterated_to().min(LONGEST_NS * 2)), step.count_at_value())
        });
        dense.chain(packed.into_iter().flat_map(Packed::buckets))
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

/// The same counts, however they are held.
impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.buckets().eq(other.buckets())
    }
}

/// Non-empty buckets in ascending order: for each what its highest latency is above the one before, and its
/// count, both as numbers of seven bits a byte, the lowest first, of which all but the last have the
/// eighth bit set.
#[derive(Clone, Debug, Default)]
struct Packed(Box<[u8]>);

impl Packed {
    fn of(buckets: impl Iterator<Item = (Nanos, u64)>) -> Packed {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for (latency, count) in buckets {
            for mut number in [latency.0 - last, count] {
                while number > 0x7f {
                    bytes.push(number as u8 | 0x80);
                    number >>= 7;
                }
                bytes.push(number as u8);
            }
            last = latency.0;
        }
        Packed(bytes.into())
    }

    fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        let mut bytes = self.0.iter();
        let mut number = move || -> Option<u64> {
            let (mut sum, mut shift) = (0, 0);
            for byte in bytes.by_ref() {
                sum |= u64::from(byte & 0x7f) << shift;
                if byte & 0x80 == 0 {
                    return Some(sum);
                }
                shift += 7;
            }
            None
        };
        let mut latency = 0;
        std::iter::from_fn(move || {
            latency += number()?;
            Some((Nanos(latency), number()?))
        })
    }

    #[allow(clippy::expect_used)] // A constant, which the library accepts: a test would fail.
    fn unpacked(&self) -> hdrhistogram::Histogram<u64> {
        let mut dense = hdrhistogram::Histogram::new(2).expect("two digits are valid");
        for (latency, count) in self.buckets() {
            // It grows, so that counting fails only where memory does.
            let _ = dense.record_n(latency.0.min(LONGEST_NS), count);
        }
        dense
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
        Ok(Histogram::from_buckets(Vec::<(Nanos, u64)>::deserialize(deserializer)?).packed())
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

        #[test]
        fn packed_says_the_same(
            all in prop::collection::vec((0u64..LONGEST_NS * 4, 1u64..1 << 40), 0..200),
            more in prop::collection::vec(0u64..LONGEST_NS, 0..20),
        ) {
            let dense = Histogram::from_buckets(all.into_iter().map(|(ns, n)| (Nanos(ns), n)));
            let packed = dense.clone().packed();
            prop_assert_eq!(&packed, &dense);
            prop_assert_eq!(packed.count(), dense.count());
            prop_assert_eq!((packed.mean(), packed.max()), (dense.mean(), dense.max()));
            for quantile in [0.0, 0.5, 0.99, 0.999, 1.0] {
                prop_assert_eq!(packed.quantile(quantile), dense.quantile(quantile));
            }
            let mut added = Histogram::from_buckets(more.into_iter().map(|ns| (Nanos(ns), 1)));
            let mut other = added.clone();
            added.merge(&packed);
            other.merge(&dense);
            prop_assert_eq!(&added, &other);
            let (mut packed, mut dense) = (packed, dense);
            packed.record(Nanos(77));
            dense.record(Nanos(77));
            prop_assert_eq!(packed, dense);
        }
    }
}
