//! A cell against its baseline: a ratio with an interval, and a verdict.

use crate::{Estimate, Metric, t_quantile};
use serde::{Deserialize, Serialize};

/// What may be said of a cell against its baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is on the good side, and not all of it within the margin.
    Better,
    /// The whole interval is on the bad side, and not all of it within the margin.
    Worse,
    /// The whole interval is within the margin: a difference that is there is too small to matter.
    NoDifference,
    /// The interval is too wide to say.
    NotSettled,
}

/// How much an interval is widened because several are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correction {
    /// Cells that are compared with a baseline.
    pub cells: usize,
    /// The share of the 5 % that this look at the data may spend: the shares of all looks add up to 1.
    pub share: f64,
    /// The share of the rounds' degrees of freedom that count: less than 1 where rounds were added until the noise
    /// allowed a difference to be found. Noise that seems small ends such a run sooner, so that it is known only as well
    /// as from the rounds before any was added (Stein, Annals of Mathematical Statistics 16, 1945).
    #[serde(skip)]
    pub freedom: f64,
}

impl Correction {
    /// Of one cell that is looked at once.
    pub const ALONE: Correction = Correction { cells: 1, share: 1.0, freedom: 1.0 };

    /// The probability with which one interval may miss, so that all together miss with at most
    /// 5 %.
    pub fn alpha(self) -> f64 {
        0.05 * self.share / self.cells.max(1) as f64
    }
}

/// A cell against its baseline, in one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The figure.
    pub metric: Metric,
    /// Rounds in which both could be measured.
    pub rounds: usize,
    /// The cell's figure over the baseline's.
    pub ratio: f64,
    /// The interval's lower end, corrected for cells and looks; of fewer than three rounds 0, and the upper end
    /// infinite.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The smallest true difference (0.05: 5 %) that such trials would show four times in five.
    pub detectable: f64,
    /// What may be said.
    pub verdict: Verdict,
    /// What could be said if neighbouring rounds were alike, where there are too few to see it.
    #[serde(skip)]
    pub verdict_if_alike: Verdict,
}

/// With a correlation of a half between neighbours, the interval of three to fifteen independent observations has to be so
/// much wider to hold at 95 %: the root of *g*(*n* − 1)/(*n* − *g*), with *g* as in [`Estimate::of_series`], is 1.76 to
/// 1.79.
pub const WIDER_IF_ALIKE: f64 = 1.8;

/// Fewer observations hardly show whether neighbours are alike: the correlation that they show is off by a quarter.
pub const MIN_TO_SEE_ALIKE: usize = 16;

/// Fewer rounds have an interval in name only: no verdict is given.
pub const MIN_VERDICT_ROUNDS: u32 = 3;

/// The same, of observations.
pub(crate) const MIN_ROUNDS: usize = MIN_VERDICT_ROUNDS as usize;

/// The probability with which a difference of the detectable size is seen.
const POWER: f64 = 0.8;

/// Compares by rounds (or blocks of them), in their order. `logs` holds, for each in which both could be
/// measured, the logarithm
/// of the cell's figure less the mean logarithm of the baseline's. `None` without any round.
pub fn compare(
    metric: Metric,
    logs: &[f64],
    correction: Correction,
    margin: f64,
) -> Option<Comparison> {
    let estimate = Estimate::of_series(logs)?;
    let freedom = (estimate.freedom * correction.freedom).max(1.0);
    let estimate = Estimate { freedom, ..estimate };
    // Two rounds that happen to be alike would have an interval without a width.
    let (half_width, detectable) = if estimate.n < MIN_ROUNDS {
        (f64::INFINITY, f64::INFINITY)
    } else {
        let detectable = detectable(estimate.std_err, estimate.freedom, correction);
        (estimate.half_width(correction.alpha()), detectable)
    };
    let (low, high) = (estimate.mean - half_width, estimate.mean + half_width);
    let mut alike = half_width;
    if estimate.n < MIN_TO_SEE_ALIKE {
        let independent = Estimate::of(logs)?.half_width(correction.alpha());
        alike = alike.max(WIDER_IF_ALIKE * independent);
    }
    let verdict_if_alike = verdict(metric, estimate.mean - alike, estimate.mean + alike, margin);
    let verdict = verdict(metric, low, high, margin);
    Some(Comparison {
        metric,
        rounds: estimate.n,
        ratio: estimate.mean.exp(),
        low: low.exp(),
        high: high.exp(),
        detectable,
        verdict,
        verdict_if_alike,
    })
}

pub(crate) fn verdict(metric: Metric, low: f64, high: f64, margin: f64) -> Verdict {
    let width = (1.0 + margin).ln();
    if low >= -width && high <= width {
        return Verdict::NoDifference;
    }
    match (low > 0.0, high < 0.0) {
        (true, _) if metric.more_is_better() => Verdict::Better,
        (true, _) => Verdict::Worse,
        (_, true) if metric.more_is_better() => Verdict::Worse,
        (_, true) => Verdict::Better,
        _ => Verdict::NotSettled,
    }
}

/// The difference that a comparison with this standard error and degrees of freedom finds with probability
/// [`POWER`], as a share.
pub(crate) fn detectable(std_err: f64, freedom: f64, correction: Correction) -> f64 {
    let reach = t_quantile(1.0 - correction.alpha() / 2.0, freedom) + t_quantile(POWER, freedom);
    (reach * std_err).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(metric: Metric, logs: &[f64]) -> Verdict {
        compare(metric, logs, Correction::ALONE, 0.03).unwrap().verdict
    }

    #[test]
    fn verdicts_follow_the_interval() {
        let around =
            |center: f64, noise: f64| [-1.0, 0.5, 1.0, -0.5, 0.0].map(|x| center + noise * x);
        assert_eq!(verdict_of(Metric::Throughput, &around(0.2, 0.01)), Verdict::Better);
        assert_eq!(verdict_of(Metric::Throughput, &around(-0.2, 0.01)), Verdict::Worse);
        assert_eq!(verdict_of(Metric::P99, &around(0.2, 0.01)), Verdict::Worse);
        assert_eq!(verdict_of(Metric::P99, &around(-0.2, 0.01)), Verdict::Better);
        assert_eq!(verdict_of(Metric::Throughput, &around(0.002, 0.005)), Verdict::NoDifference);
        assert_eq!(verdict_of(Metric::Throughput, &around(0.05, 0.2)), Verdict::NotSettled);
    }

    #[test]
    fn a_real_but_small_difference_is_none_to_the_user() {
        // Certainly above zero, certainly below the margin.
        let logs = [0.010, 0.011, 0.0105, 0.0095, 0.010];
        assert_eq!(verdict_of(Metric::Throughput, &logs), Verdict::NoDifference);
    }

    #[test]
    fn no_verdict_without_repeats() {
        assert_eq!(verdict_of(Metric::Throughput, &[3.0]), Verdict::NotSettled);
        assert_eq!(verdict_of(Metric::Throughput, &[3.0, 3.0]), Verdict::NotSettled);
        assert_eq!(compare(Metric::Throughput, &[], Correction::ALONE, 0.03), None);
    }

    #[test]
    fn more_cells_and_looks_widen() {
        let logs = [0.1, 0.2, 0.15, 0.12, 0.18];
        let width = |cells, share| {
            let correction = Correction { cells, share, freedom: 1.0 };
            let c = compare(Metric::P99, &logs, correction, 0.03).unwrap();
            c.high / c.low
        };
        assert!(width(1, 1.0) < width(4, 1.0) && width(4, 1.0) < width(4, 0.8));
    }
}
