//! A limit that a user sets on a figure, and whether a cell keeps it.

use crate::{
    Correction, Estimate, MIN_OPERATIONS_FOR_P99, Metric, blocks::blocks, tail::log_quantile,
};
use record::{Measurement, Run};
use serde::Serialize;
use std::{fmt, str::FromStr};
use units::Nanos;
use workload::WordError;

/// A limit on a figure of each trial: `p99<20ms`, `throughput>1000/s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// The figure.
    pub figure: LimitFigure,
    /// Its bound: nanoseconds of a latency, operations a second of throughput.
    pub bound: f64,
}

/// The figures that can be limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitFigure {
    /// The median latency.
    P50,
    /// The 99th percentile.
    P99,
    /// The 99.9th percentile.
    P999,
    /// Operations or transactions a second.
    Throughput,
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeping {
    /// The whole interval of the figure is within the limit.
    Kept,
    /// The interval has the limit in it, or there are too few trials for one.
    Open,
    /// The whole interval is beyond the limit.
    Missed,
}

/// Trials below this many say nothing about a limit, as with verdicts.
const MIN_TRIALS: usize = 3;

impl LimitFigure {
    /// The metric that says the same; none for those on which cells are not compared.
    pub fn metric(self) -> Option<Metric> {
        match self {
            LimitFigure::P99 => Some(Metric::P99),
            LimitFigure::Throughput => Some(Metric::Throughput),
            LimitFigure::P50 | LimitFigure::P999 => None,
        }
    }

    /// Fewer operations than this do not have the figure.
    fn least_operations(self) -> u64 {
        match self {
            LimitFigure::P50 => 1,
            LimitFigure::P99 => MIN_OPERATIONS_FOR_P99,
            LimitFigure::P999 => 10 * MIN_OPERATIONS_FOR_P99,
            LimitFigure::Throughput => 0,
        }
    }

    /// The logarithm of the figure, of trials together.
    fn log(self, measured: &[&Measurement]) -> Option<f64> {
        let quantile = |quantile: f64| {
            let pooled = Metric::pooled(measured);
            let enough = pooled.count() >= self.least_operations();
            enough.then(|| log_quantile(&pooled, quantile))?
        };
        match self {
            LimitFigure::P50 => quantile(0.5),
            LimitFigure::P99 => Metric::P99.log(measured),
            LimitFigure::P999 => quantile(0.999),
            LimitFigure::Throughput => Metric::Throughput.log(measured),
        }
    }
}

impl Limit {
    /// Whether the cell's trials keep it, with an interval as wide as those of verdicts.
    pub fn keeping(&self, run: &Run, cell: usize, correction: Correction) -> Keeping {
        let logs: Vec<f64> = blocks(run, cell, self.figure.least_operations())
            .values()
            .filter_map(|measured| self.figure.log(measured))
            .collect();
        let Some(estimate) = Estimate::of_series(&logs).filter(|it| it.n >= MIN_TRIALS) else {
            return Keeping::Open;
        };
        let half = estimate.half_width(correction.alpha());
        let (low, high) = (estimate.mean - half, estimate.mean + half);
        let bound = self.bound.ln();
        match self.figure {
            LimitFigure::Throughput if low > bound => Keeping::Kept,
            LimitFigure::Throughput if high < bound => Keeping::Missed,
            LimitFigure::Throughput => Keeping::Open,
            _ if high < bound => Keeping::Kept,
            _ if low > bound => Keeping::Missed,
            _ => Keeping::Open,
        }
    }
}

impl FromStr for Limit {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let wrong = |why: &str| {
            WordError::new(format!(
                "limit '{text}': {why}; write it like p99<20ms or throughput>1000/s (figures: p50, p99, \
                 p99.9, throughput)"
            ))
        };
        let (name, bound) = text
            .split_once(['<', '>'])
            .map(|(name, bound)| (name.trim(), bound.trim_start_matches('=').trim()))
            .ok_or_else(|| wrong("it has neither < nor >"))?;
        let below = text.contains('<');
        let figure = match name {
            "p50" => LimitFigure::P50,
            "p99" => LimitFigure::P99,
            "p99.9" | "p999" => LimitFigure::P999,
            "throughput" => LimitFigure::Throughput,
            _ => return Err(wrong("the figure is not known")),
        };
        if below == (figure == LimitFigure::Throughput) {
            return Err(wrong("a latency has an upper bound (<), throughput a lower one (>)"));
        }
        let bound = match figure {
            LimitFigure::Throughput => {
                let number = bound.strip_suffix("/s").unwrap_or(bound).trim();
                number.parse::<f64>().map_err(|_| wrong("the bound is no number a second"))?
            }
            _ => bound.parse::<Nanos>().map_err(|error| wrong(&error.to_string()))?.0 as f64,
        };
        match bound > 0.0 && bound.is_finite() {
            true => Ok(Limit { figure, bound }),
            false => Err(wrong("the bound is not above zero")),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = || Nanos(self.bound as u64).to_string().replace(' ', "");
        f.pad(&match self.figure {
            LimitFigure::P50 => format!("p50<{}", time()),
            LimitFigure::P99 => format!("p99<{}", time()),
            LimitFigure::P999 => format!("p99.9<{}", time()),
            LimitFigure::Throughput => format!("throughput>{}/s", self.bound),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_written() {
        for (text, written) in [
            ("p99<20ms", "p99<20.0ms"),
            ("p99.9 <= 1s", "p99.9<1.00s"),
            ("throughput>1000/s", "throughput>1000/s"),
            ("throughput > 1000", "throughput>1000/s"),
        ] {
            assert_eq!(text.parse::<Limit>().unwrap().to_string(), written);
        }
        for text in ["p99", "p99>20ms", "throughput<5/s", "p42<1ms", "p99<20", "p99<0ms", "p99<"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
    }
}
