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

    /// Half the width of the interval that misses the true mean with probability `alpha`.
    pub fn half_width(&self, alpha: f64) -> f64 {
        if self.n < 2 {
            return f64::INFINITY;
        }
        t_quantile(1.0 - alpha / 2.0, self.n - 1) * self.std_err
    }
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
    fn one_observation_has_no_error_bar() {
        let one = Estimate::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.half_width(0.05)), (3.0, f64::INFINITY));
        assert_eq!(Estimate::of(&[]), None);
    }
}
