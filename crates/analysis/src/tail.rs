//! Percentiles that few operations tell.
//!
//! The 99th percentile of a trial is the third longest of two hundred latencies. By itself it lies lower, on the
//! average, than that of twenty thousand from the same distribution, and jumps where two hundred have now two,
//! now four slow ones. What all rounds together tell is steadier. A trial's latencies are taken as a *level*, which is
//! the trial's own, and a *shape* about it, which all trials of a cell have in common: the logarithm of the
//! percentile is the mean of the levels and the percentile of the shape. Each round is left out in turn (the
//! jackknife: Miller 1974, Biometrika 61, 1–15), which gives an observation for each, with bursts within a trial and
//! whatever else differs between rounds in it, and takes most of the bias of few operations away. It needs an
//! estimator that is smooth: that of Harrell and Davis (1982, Biometrika 69, 635–640), the mean of all order statistics,
//! weighted with the probability that each is the percentile.

use record::Histogram;
use statrs::function::beta::beta_reg;
use std::collections::BTreeMap;

/// Fewer operations of a trial have no level.
pub(crate) const MIN_FOR_LEVEL: u64 = 20;

/// The percentiles that may be a trial's level; the one that differs least from round to round is taken. Where a cache
/// answers half of all operations, the median is now a hit, now a miss, and the quartiles are not.
const LEVELS: [f64; 3] = [0.25, 0.5, 0.75];

/// Logarithms of the shape are told apart by so much, 0.4 %.
const WIDTH: f64 = 1.0 / 256.0;

/// More observations than these narrow an interval hardly: Student's t has come close to the normal distribution.
const MAX_OBSERVATIONS: usize = 20;

/// Weights below this are left out.
const NEGLIGIBLE: f64 = 1e-9;

/// The logarithm of a percentile: of a rank between two latencies, the mean of their logarithms, weighted. The rank
/// is *qn* + ½ (Hazen 1914): where the tail falls exponentially, the figure is then within 1 % of the true one's
/// logarithm from two longer operations on, where the rank *qn* is 5 % below.
pub(crate) fn log_quantile(all: &Histogram, quantile: f64) -> Option<f64> {
    let count = all.count();
    let rank = (quantile * count as f64 + 0.5).clamp(1.0, count.max(1) as f64);
    let (mut below, mut passed) = (None, 0u64);
    for (latency, count) in all.buckets() {
        passed += count;
        let log = log(latency);
        if below.is_none() && passed as f64 >= rank.floor() {
            below = Some(log);
        }
        if passed as f64 >= rank.ceil() {
            let weight = rank - rank.floor();
            return below.map(|below| below + weight * (log - below));
        }
    }
    None
}

fn log(latency: units::Nanos) -> f64 {
    (latency.0.max(1) as f64).ln()
}

/// A round of two sides: the trials of each.
pub(crate) type Round = [Vec<Histogram>; 2];

/// One observation a round: the logarithm of a percentile on one side less that on the other. Each side has a trial
/// at least in every round, and a trial [`MIN_FOR_LEVEL`] operations.
pub(crate) fn log_ratios(rounds: Vec<Round>, quantile: f64) -> Vec<f64> {
    let rounds = &together(rounds);
    let Some(level) = steadiest(rounds) else { return Vec::new() };
    let sides = [0, 1].map(|side| Side::of(rounds, side, level));
    let all = |without: Option<usize>| {
        let [one, other] = sides.each_ref().map(|side| side.log_quantile(quantile, without));
        one - other
    };
    let whole = all(None);
    let count = rounds.len() as f64;
    if rounds.len() == 1 {
        return vec![whole];
    }
    let left_out: Vec<f64> = (0..rounds.len()).map(|round| all(Some(round))).collect();
    left_out.into_iter().map(|log| count * whole - (count - 1.0) * log).collect()
}

/// Many rounds as fewer, each of consecutive ones, whose trials stay apart.
fn together(rounds: Vec<Round>) -> Vec<Round> {
    let length = rounds.len().div_ceil(MAX_OBSERVATIONS).max(1);
    let last = (rounds.len() / length).max(1) - 1;
    let mut all: Vec<Round> = Vec::new();
    for (at, round) in rounds.into_iter().enumerate() {
        // What is left over at the end belongs to the last whole one.
        match all.get_mut((at / length).min(last)) {
            Some(earlier) => {
                earlier.iter_mut().zip(round).for_each(|(trials, more)| trials.extend(more));
            }
            None => all.push(round),
        }
    }
    all
}

/// The level by which the two sides differ most alike in all rounds.
fn steadiest(rounds: &[Round]) -> Option<f64> {
    let scatter = |level: &f64| {
        let mean = |side: &[Histogram]| {
            let levels: Vec<f64> = side.iter().filter_map(|it| log_quantile(it, *level)).collect();
            crate::estimate::mean(&levels)
        };
        let apart: Vec<f64> = rounds.iter().map(|[a, b]| mean(a) - mean(b)).collect();
        crate::estimate::squares(&apart)
    };
    let scatters = LEVELS.iter().map(|level| (*level, scatter(level)));
    scatters.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(level, _)| level)
}

/// The trials of one side.
struct Side {
    /// Of each round, the mean level of its trials.
    levels: Vec<f64>,
    /// Of each round, operations by how far they are from their trial's level, in steps of [`WIDTH`].
    shapes: Vec<BTreeMap<i64, u64>>,
    /// Of all.
    shape: BTreeMap<i64, u64>,
}

impl Side {
    fn of(rounds: &[Round], side: usize, level: f64) -> Side {
        let mut all = Side { levels: Vec::new(), shapes: Vec::new(), shape: BTreeMap::new() };
        for round in rounds {
            let (mut levels, mut shape) = (Vec::new(), BTreeMap::new());
            for trial in &round[side] {
                let Some(level) = log_quantile(trial, level) else { continue };
                levels.push(level);
                for (latency, count) in trial.buckets() {
                    let step = ((log(latency) - level) / WIDTH).round() as i64;
                    *shape.entry(step).or_default() += count;
                    *all.shape.entry(step).or_default() += count;
                }
            }
            all.levels.push(crate::estimate::mean(&levels));
            all.shapes.push(shape);
        }
        all
    }

    /// The logarithm of a percentile, of all rounds but one.
    fn log_quantile(&self, quantile: f64, without: Option<usize>) -> f64 {
        let levels: Vec<f64> = (0..self.levels.len())
            .filter(|round| Some(*round) != without)
            .map(|round| self.levels[round])
            .collect();
        let left_out = without.map(|round| &self.shapes[round]);
        let counts = self.shape.iter().rev().map(|(step, count)| {
            (*step, count - left_out.and_then(|shape| shape.get(step)).unwrap_or(&0))
        });
        crate::estimate::mean(&levels) + WIDTH * harrell_davis(counts, quantile)
    }
}

/// The percentile of values and their counts, the largest first.
fn harrell_davis(counts: impl Iterator<Item = (i64, u64)> + Clone, quantile: f64) -> f64 {
    let count: u64 = counts.clone().map(|(_, count)| count).sum();
    let (a, b) = ((count + 1) as f64 * quantile, (count + 1) as f64 * (1.0 - quantile));
    let (mut above, mut within, mut sum) = (0, 1.0, 0.0);
    for (value, in_bucket) in counts.filter(|(_, count)| *count > 0) {
        above += in_bucket;
        let below =
            if above < count { beta_reg(a, b, 1.0 - above as f64 / count as f64) } else { 0.0 };
        sum += (within - below) * value as f64;
        within = below;
        if within < NEGLIGIBLE {
            break;
        }
    }
    // What was left out lies at the last value that was looked at.
    sum / (1.0 - within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::Stream;
    use units::Nanos;

    fn exponential(count: usize, stream: &mut Stream) -> Histogram {
        let mut all = Histogram::new();
        for _ in 0..count {
            all.record(Nanos::from_secs_f64(1e-4 * stream.exponential(1.0).exp()));
        }
        all
    }

    #[test]
    fn few_operations_have_the_percentile_of_many() {
        let mut stream = Stream::new(3, "exponential");
        let truth = 1e5f64.ln() + 100f64.ln();
        let mut of = || log_quantile(&exponential(200, &mut stream), 0.99).unwrap();
        let mean = (0..2000).map(|_| of()).sum::<f64>() / 2000.0;
        assert!((mean - truth).abs() < 0.01 * 100f64.ln(), "{mean} is not {truth}");
        assert_eq!(log_quantile(&Histogram::new(), 0.99), None);
        let one = Histogram::from_buckets([(Nanos(7), 1)]);
        assert_eq!(log_quantile(&one, 0.99), Some(7f64.ln()));
    }

    /// Of 1, 2, 3 with q = ½ the weights are those of a beta distribution with 2 and 2: 7/27, 13/27, 7/27.
    #[test]
    fn the_weights_are_those_of_the_paper() {
        let found = harrell_davis([(9, 1), (2, 1), (1, 1)].into_iter(), 0.5);
        assert!((found - (7.0 + 26.0 + 63.0) / 27.0).abs() < 1e-9, "{found}");
        assert_eq!(harrell_davis([(4, 300)].into_iter(), 0.99), 4.0);
    }

    /// Every round is twice as slow as the one before, on both sides: the level is a round's own.
    #[test]
    fn what_a_round_has_in_common_cancels() {
        let mut stream = Stream::new(3, "rounds");
        let shape = exponential(1000, &mut stream);
        let times = |factor: f64| {
            let scaled = |it: (Nanos, u64)| (Nanos((it.0.0 as f64 * factor) as u64), it.1);
            Histogram::from_buckets(shape.buckets().map(scaled))
        };
        let rounds: Vec<Round> = (0..6)
            .map(|round| {
                let slow = 2f64.powi(round);
                [vec![times(slow * 1.5)], vec![times(slow), times(slow)]]
            })
            .collect();
        for log in log_ratios(rounds, 0.99) {
            assert!((log - 1.5f64.ln()).abs() < 0.03, "{log}");
        }
    }
}
