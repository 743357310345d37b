//! The figures that verdicts are given on.

use crate::tail::log_quantile;
use record::{Histogram, Imported, Measurement, Quantity};
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

/// Cells with fewer operations in all rounds are not compared in it: each of the three rounds that a verdict takes
/// at the least would have fewer than [`MIN_OPERATIONS_FOR_P99`].
pub const MIN_OPERATIONS_TO_COMPARE_P99: u64 = 3 * MIN_OPERATIONS_FOR_P99;

/// Fewer operations a client say little of shares: of *N* that *n* clients make at random, Jain's index is by
/// chance (*n* − 1)/*N* below 1, here 2 %.
const MIN_OPERATIONS_A_CLIENT: u64 = 50;

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

    /// Fewer operations than this do not have the figure, where so many clients make them.
    pub(crate) fn least_operations(self, clients: usize) -> u64 {
        match self {
            Metric::P99 => MIN_OPERATIONS_FOR_P99,
            Metric::Fairness => MIN_OPERATIONS_A_CLIENT * clients as u64,
            Metric::Throughput => 0,
        }
    }

    /// The logarithm of the figure of one trial or, where rounds are pooled, of several. A trial in which
    /// not one operation completed counts as one with half an operation, the usual correction for a count
    /// of zero before a logarithm: left out, a cell that starves its clients now and then would be judged
    /// by its good trials alone.
    pub(crate) fn log(self, measured: &[&Measurement]) -> Option<f64> {
        let printed = measured.iter().any(|it| it.imported.is_some());
        match self.of_all(measured)? {
            _ if self == Metric::P99 && !printed => log_quantile(&Metric::pooled(measured), 0.99),
            value if value > 0.0 => Some(value.ln()),
            _ if self == Metric::Throughput => Some((0.5 / seconds(measured)).ln()),
            _ => None,
        }
    }

    /// The figure of several trials together.
    pub(crate) fn of_all(self, measured: &[&Measurement]) -> Option<f64> {
        if let [one] = measured {
            return self.of(one);
        }
        let operations: u64 = measured.iter().map(|measurement| measurement.operations()).sum();
        match self {
            Metric::Throughput => {
                let seconds = seconds(measured);
                (seconds > 0.0).then(|| operations as f64 / seconds)
            }
            Metric::P99 if operations < MIN_OPERATIONS_FOR_P99 => None,
            Metric::P99 => Metric::pooled(measured).quantile(0.99).map(|p99| p99.0 as f64),
            Metric::Fairness => {
                let mut pooled: Vec<u64> = Vec::new();
                for shares in measured.iter().map(|measurement| measurement.shares()) {
                    pooled.resize(pooled.len().max(shares.len()), 0);
                    pooled.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share);
                }
                fairness(&pooled)
            }
        }
    }

    /// The latencies of several trials together.
    pub(crate) fn pooled(measured: &[&Measurement]) -> Histogram {
        let mut pooled = Histogram::new();
        measured.iter().for_each(|measurement| pooled.merge(&measurement.latency()));
        pooled
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

fn seconds(measured: &[&Measurement]) -> f64 {
    measured.iter().map(|measurement| measurement.span.as_secs_f64()).sum()
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
