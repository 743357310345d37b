//! The noise floor: how far two trials of the same cell differ.

use crate::{Correction, Estimate, comparison::detectable};
use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// What the baseline against itself shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseFloor {
    /// Rounds in which both baseline trials counted.
    pub rounds: usize,
    /// One trial's noise: standard deviation of the figure's logarithm, about a share (0.02: 2 %).
    pub trial: f64,
    /// The difference (0.05: 5 %) that these trials could have shown in a cell as noisy as the
    /// baseline, four times in five.
    pub detectable: f64,
}

/// The noise is itself an estimate; the detectable difference is computed from the value that it
/// exceeds with this probability, so that the promise errs to the safe side.
const NOISE_ABOVE: f64 = 0.2;

impl NoiseFloor {
    /// From the difference of the two baselines' logarithms in each round, or block of so many rounds as
    /// `pooled` says; `None` with fewer than three. A trend in the differences is no noise of a single trial, but it is in here:
    /// the order within a round is random.
    pub fn of(differences: &[f64], pooled: f64, correction: Correction) -> Option<NoiseFloor> {
        let rounds = differences.len();
        if rounds < 3 {
            return None;
        }
        // Var(a − a') = 2σ²
        let of_one = |estimate: Estimate| {
            estimate.std_err * (rounds as f64).sqrt() / std::f64::consts::SQRT_2
        };
        let series = Estimate::of_series(differences)?;
        let (block, freedom) = (of_one(series), series.freedom);
        let quantile = ChiSquared::new(freedom).ok()?.inverse_cdf(NOISE_ABOVE);
        let cautious = block * (freedom / quantile).sqrt();
        // Var(cell − mean of two baselines) = σ²·(1 + 1/2)
        let std_err = cautious * (1.5 / rounds as f64).sqrt();
        let trial = of_one(Estimate::of(differences)?) * pooled.max(1.0).sqrt();
        Some(NoiseFloor { rounds, trial, detectable: detectable(std_err, freedom, correction) })
    }
}
