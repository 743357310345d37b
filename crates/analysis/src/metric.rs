//! The figures that verdicts are given on.

use record::{Imported, Measurement, Quantity};
use serde::Serialize;

/// A figure of a trial on which cells are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Operations a second of the measured job, transactions a second of a database.
    Throughput,
    /// The 99th percentile of its latency: response time where a rate was offered, else service
    /// time.
    P99,
    /// Jain's index of the clients' operations: 1 when all get the same, 1/n when one gets all.
    Fairness,
}

/// Fewer operations than this have no 99th percentile worth the name.
pub const MIN_OPERATIONS_FOR_P99: u64 = 200;

impl Metric {
    /// All.
    pub const ALL: [Metric; 3] = [Metric::Throughput, Metric::P99, Metric::Fairness];

    /// Whether more of it is better.
    pub fn more_is_better(self) -> bool {
        match self {
            Metric::Throughput | Metric::Fairness => true,
            Metric::P99 => false,
        }
    }

    /// The logarithm of a trial's figure. A trial in which not one operation completed counts as one
    /// with half an operation, the usual correction for a count of zero before a logarithm: left
    /// out, a cell that starves its clients now and then would be judged by its good trials alone.
    pub(crate) fn log(self, measurement: &Measurement) -> Option<f64> {
        match self.of(measurement)? {
            value if value > 0.0 => Some(value.ln()),
            _ if self == Metric::Throughput => Some((0.5 / measurement.span.as_secs_f64()).ln()),
            _ => None,
        }
    }

    /// The figure as another program printed it.
    fn of_imported(self, imported: &Imported) -> Option<f64> {
        match self {
            Metric::Throughput => imported.rate.map(|rate| rate.value),
            Metric::P99 => {
                imported.latency(&Quantity::Percentile(99_000)).map(|latency| latency.0 as f64)
            }
            Metric::Fairness => None,
        }
    }

    /// A trial's figure; `None` where the trial has none.
    pub fn of(self, measurement: &Measurement) -> Option<f64> {
        if let Some(imported) = &measurement.imported {
            return self.of_imported(imported);
        }
        let seconds = measurement.span.as_secs_f64();
        match self {
            Metric::Throughput => {
                (seconds > 0.0).then(|| measurement.operations() as f64 / seconds)
            }
            Metric::P99 if measurement.operations() < MIN_OPERATIONS_FOR_P99 => None,
            Metric::P99 => measurement.latency().quantile(0.99).map(|p99| p99.0 as f64),
            Metric::Fairness => fairness(&measurement.shares()),
        }
    }
}

/// Jain's fairness index of the clients' operations, (Σx)² / (n·Σx²), of Jain, Chiu and Hawe 1984;
/// `None` with fewer than two clients.
pub fn fairness(shares: &[u64]) -> Option<f64> {
    let n = shares.len() as f64;
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    (n >= 2.0 && squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_runs_from_one_share_to_one() {
        assert_eq!(fairness(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(fairness(&[9, 0, 0, 0]), Some(0.25));
        assert_eq!(fairness(&[9]), None);
        assert_eq!(fairness(&[0, 0]), None);
    }
}
