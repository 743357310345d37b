//! How a database workload draws the keys of the rows that it touches.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// How keys are drawn; the names and the figures are sysbench's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Every row as likely as any other.
    #[default]
    Uniform,
    /// A share of the draws falls on few rows in the middle, the rest anywhere.
    Special {
        /// Rows that are drawn most, in percent of all.
        rows_percent: f64,
        /// Draws that fall on them, in percent of all.
        draws_percent: f64,
    },
    /// The sum of twelve uniform draws.
    Gaussian,
    /// A self-similar law: a share `h` of the rows gets `1 − h` of the draws, and so on within it.
    Pareto {
        /// The share.
        h: f64,
    },
    /// Row of rank r in proportion to r^−exponent.
    Zipfian {
        /// The exponent.
        exponent: f64,
    },
}

/// `uniform`, `special` or `special:1:75`, `gaussian`, `pareto` or `pareto:0.2`, `zipfian` or
/// `zipfian:0.8`.
impl FromStr for Distribution {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let wrong = || {
            WordError::new(format!(
                "distribution '{text}' is not known: write uniform, special (special:1:75: 75 % of \
                 the draws on 1 % of the rows), gaussian, pareto (pareto:0.2) or zipfian \
                 (zipfian:0.8)"
            ))
        };
        let mut parts = text.split(':');
        let word = parts.next().unwrap_or("");
        let figures: Vec<f64> =
            parts.map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let within = |value: f64, low: f64, high: f64| value > low && value < high;
        match (word, figures.as_slice()) {
            ("uniform", []) => Ok(Distribution::Uniform),
            ("gaussian", []) => Ok(Distribution::Gaussian),
            ("special", []) => Ok(Distribution::Special { rows_percent: 1.0, draws_percent: 75.0 }),
            ("special", [rows, draws])
                if within(*rows, 0.0, 100.0) && within(*draws, 0.0, 100.0) =>
            {
                Ok(Distribution::Special { rows_percent: *rows, draws_percent: *draws })
            }
            ("pareto", []) => Ok(Distribution::Pareto { h: 0.2 }),
            ("pareto", [h]) if within(*h, 0.0, 1.0) => Ok(Distribution::Pareto { h: *h }),
            ("zipfian", []) => Ok(Distribution::Zipfian { exponent: 0.8 }),
            ("zipfian", [exponent]) if within(*exponent, 0.0, 10.0) => {
                Ok(Distribution::Zipfian { exponent: *exponent })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.pad("uniform"),
            Distribution::Special { rows_percent, draws_percent } => {
                f.pad(&format!("special:{rows_percent}:{draws_percent}"))
            }
            Distribution::Gaussian => f.pad("gaussian"),
            Distribution::Pareto { h } => f.pad(&format!("pareto:{h}")),
            Distribution::Zipfian { exponent } => f.pad(&format!("zipfian:{exponent}")),
        }
    }
}

word_serde!(Distribution);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_read_back_as_written() {
        for text in ["uniform", "special:1:75", "gaussian", "pareto:0.2", "zipfian:0.8"] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        assert_eq!("special".parse::<Distribution>().unwrap().to_string(), "special:1:75");
        for text in
            ["", "normal", "zipfian:-1", "special:0:75", "pareto:2", "uniform:3", "pareto:x"]
        {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
