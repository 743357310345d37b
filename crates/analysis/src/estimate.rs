//! An estimate never travels without its error.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Observations.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// The mean's standard error; infinite with fewer than two observations.
    pub std_err: f64,
    /// Its degrees of freedom: fewer than the observations where neighbours are alike.
    #[serde(skip)]
    pub freedom: f64,
}

/// The estimate of a correlation from fewer observations is mostly chance: its standard error is one over
/// the root of their number.
const MIN_FOR_CORRELATION: usize = 10;

/// What is believed of a correlation at the most: of a higher one hardly anything is known from tens of rounds.
const MAX_CORRELATION: f64 = 0.8;

impl Estimate {
    /// Of independent observations; `None` when there are none.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let std_err = if n < 2 {
            f64::INFINITY
        } else {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (n - 1) as f64 / n as f64).sqrt()
        };
        Some(Estimate { n, mean, std_err, freedom: n.saturating_sub(1) as f64 })
    }

    /// Of observations in the order in which they were made, whose neighbours may be alike. Where they
    /// are, the mean is less certain than their number says, and their scatter too small: for a correlation *r* of
    /// neighbours that fades as *rᵏ*, *n* observations are worth *n*/*g* independent ones, with
    /// *g* = 1 + 2 Σ (1 − *k*/*n*) *rᵏ* (Wilks, Statistical Methods in the Atmospheric Sciences, 5.2.4). The sample's
    /// own *r* is low by (1 + 3*r*)/*n* on the average (Kendall 1954, Biometrika 41, 403–404). Few observations cannot
    /// tell it, and a negative one is not believed.
    pub fn of_series(values: &[f64]) -> Option<Estimate> {
        let estimate = Estimate::of(values)?;
        if estimate.n < MIN_FOR_CORRELATION {
            return Some(estimate);
        }
        let from_mean: Vec<f64> = values.iter().map(|value| value - estimate.mean).collect();
        let squares: f64 = from_mean.iter().map(|it| it * it).sum();
        let products: f64 = from_mean.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let n = estimate.n as f64;
        let seen = if squares > 0.0 { products / squares } else { 0.0 };
        let r = (seen + (1.0 + 3.0 * seen) / n).clamp(0.0, MAX_CORRELATION);
        let alike: f64 =
            (1..estimate.n).map(|lag| (1.0 - lag as f64 / n) * r.powi(lag as i32)).sum();
        let g = 1.0 + 2.0 * alike;
        let std_err = (squares / (n - g).max(1.0) / n * g).sqrt();
        Some(Estimate { std_err, freedom: (n / g - 1.0).max(1.0), ..estimate })
    }

    /// Half the width of the interval that misses the true mean with probability `alpha`.
    pub fn half_width(&self, alpha: f64) -> f64 {
        if self.n < 2 {
            return f64::INFINITY;
        }
        t_quantile(1.0 - alpha / 2.0, self.freedom) * self.std_err
    }
}

/// The mean; of no values it is not a number.
pub(crate) fn mean<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    let (count, sum) = values.into_iter().fold((0.0, 0.0), |(n, sum), it| (n + 1.0, sum + it));
    sum / count
}

/// The sum of squared deviations from the mean.
pub(crate) fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// The quantile of Student's t with `freedom` degrees of freedom; infinite with none.
pub fn t_quantile(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
        for (freedom, table) in [(1.0, 12.706), (4.0, 2.776), (9.0, 2.262), (29.0, 2.045)] {
            let ours = t_quantile(0.975, freedom);
            assert!((ours - table).abs() < 0.001, "{freedom}: {ours}");
        }
    }

    #[test]
    fn neighbours_that_are_alike_count_for_less() {
        let blocks: Vec<f64> = (0..40).map(|at| f64::from(at / 5 % 2)).collect();
        let turns: Vec<f64> = (0..40).map(|at| f64::from(at % 2)).collect();
        let wider = |values: &[f64]| {
            Estimate::of_series(values).unwrap().std_err / Estimate::of(values).unwrap().std_err
        };
        // Neighbours differ 7 times in 39: r is 25/40, and 0.697 with (1 + 3r)/n more. By the formula g is 5.22.
        let found = Estimate::of_series(&blocks).unwrap();
        assert!((found.freedom - (40.0 / 5.22 - 1.0)).abs() < 0.05, "{found:?}");
        assert!((wider(&blocks) - (5.22f64 * 39.0 / 34.78).sqrt()).abs() < 0.01, "{found:?}");
        assert_eq!(wider(&turns), 1.0);
        assert_eq!(wider(&blocks[..9]), 1.0);
    }

    #[test]
    fn one_observation_has_no_error_bar() {
        let one = Estimate::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.half_width(0.05)), (3.0, f64::INFINITY));
        assert_eq!(Estimate::of(&[]), None);
    }
}
