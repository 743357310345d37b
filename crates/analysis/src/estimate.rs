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
}

/// The estimate of a correlation from fewer observations is mostly chance: its standard error is one over
/// the root of their number.
const MIN_FOR_CORRELATION: usize = 16;

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
        Some(Estimate { n, mean, std_err })
    }

    /// Of observations in the order in which they were made, whose neighbours may be alike. Where they
    /// are, the mean is less certain than their number says: for a correlation *r* of neighbours that
    /// fades as *rᵏ*, the variance of the mean is (1 + r)/(1 − r) times that of independent ones (Wilks,
    /// Statistical Methods in the Atmospheric Sciences, 5.2.4). Few observations cannot tell *r*, and a
    /// negative one is not believed.
    pub fn of_series(values: &[f64]) -> Option<Estimate> {
        let estimate = Estimate::of(values)?;
        if estimate.n < MIN_FOR_CORRELATION {
            return Some(estimate);
        }
        let from_mean: Vec<f64> = values.iter().map(|value| value - estimate.mean).collect();
        let squares: f64 = from_mean.iter().map(|it| it * it).sum();
        let products: f64 = from_mean.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let r = if squares > 0.0 { (products / squares).clamp(0.0, 0.9) } else { 0.0 };
        let std_err = estimate.std_err * ((1.0 + r) / (1.0 - r)).sqrt();
        Some(Estimate { std_err, ..estimate })
    }

    /// Half the width of the interval that misses the true mean with probability `alpha`.
    pub fn half_width(&self, alpha: f64) -> f64 {
        if self.n < 2 {
            return f64::INFINITY;
        }
        t_quantile(1.0 - alpha / 2.0, self.n - 1) * self.std_err
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
pub fn t_quantile(probability: f64, freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2.
        for (freedom, table) in [(1, 12.706), (4, 2.776), (9, 2.262), (29, 2.045)] {
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
        // Neighbours differ 7 times in 39: r is 25/40.
        assert!((wider(&blocks) - (1.625f64 / 0.375).sqrt()).abs() < 0.01, "{}", wider(&blocks));
        assert_eq!(wider(&turns), 1.0);
        assert_eq!(wider(&blocks[..15]), 1.0);
    }

    #[test]
    fn one_observation_has_no_error_bar() {
        let one = Estimate::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.half_width(0.05)), (3.0, f64::INFINITY));
        assert_eq!(Estimate::of(&[]), None);
    }
}
