//! How far two worlds agree.

use serde::Serialize;
use strum::{EnumIter, IntoEnumIterator};

/// A simulated figure within so much of the emulated one agrees with it.
pub const TOLERANCE: f64 = 0.1;

/// The figures of a cell that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Operations a second.
    Throughput,
    /// Median latency.
    Median,
    /// The 99th percentile of latency.
    P99,
}

impl Figure {
    /// In tables.
    pub fn title(self) -> &'static str {
        match self {
            Figure::Throughput => "throughput",
            Figure::Median => "median latency",
            Figure::P99 => "p99 latency",
        }
    }

    /// In CSV files.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Throughput => "throughput",
            Figure::Median => "median",
            Figure::P99 => "p99",
        }
    }

    /// All, in the order of [`crate::CellResult::ratios`].
    pub fn all() -> impl Iterator<Item = Figure> {
        Figure::iter()
    }
}

/// How far the worlds agree in one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The figure.
    pub figure: Figure,
    /// Cells compared.
    pub cells: usize,
    /// The median of the errors |ratio - 1|: 0.01 is 1 %.
    pub median_error: f64,
    /// The share of cells whose error is at most [`TOLERANCE`], 0 to 1.
    pub within: f64,
}

impl Agreement {
    /// Of each cell's ratios, simulated to emulated, in the order of [`Figure::all`].
    pub fn of(cells: impl Iterator<Item = [f64; 3]>) -> Vec<Agreement> {
        let cells: Vec<[f64; 3]> = cells.collect();
        Figure::all()
            .enumerate()
            .filter_map(|(nth, figure)| {
                let errors: Vec<f64> = cells.iter().map(|ratios| error(ratios[nth])).collect();
                let within = errors.iter().filter(|error| **error <= TOLERANCE).count();
                Some(Agreement {
                    figure,
                    cells: errors.len(),
                    median_error: median(&errors)?,
                    within: within as f64 / errors.len() as f64,
                })
            })
            .collect()
    }
}

/// How far a ratio is from 1.
pub(crate) fn error(ratio: f64) -> f64 {
    (ratio - 1.0).abs()
}

/// The middle value, or the mean of the two in the middle; none of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_median_errors_are_those_worked_by_hand() {
        // Errors of throughput: 0, 0.02, 0.04, 0.5: median 0.03, three of four within a tenth. Of the
        // median: 0.125, 0.25, 0.25, 0.5: median 0.25, none. Of p99: 0.0625, 0.09375, 0.125, 0.0: median
        // 0.078125, three.
        let cells =
            [[1.0, 1.25, 1.0625], [0.98, 0.75, 0.90625], [1.04, 0.875, 1.125], [1.5, 0.5, 1.0]];
        let all = Agreement::of(cells.into_iter());
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert_eq!(all.iter().map(|it| it.cells).collect::<Vec<_>>(), [4, 4, 4]);
        assert!(close(all[0].median_error, 0.03) && close(all[0].within, 0.75), "{all:?}");
        assert!(close(all[1].median_error, 0.25) && close(all[1].within, 0.0), "{all:?}");
        assert!(close(all[2].median_error, 0.078125) && close(all[2].within, 0.75), "{all:?}");
        assert_eq!(Agreement::of(std::iter::empty()), []);
    }

    #[test]
    fn a_median_of_an_odd_number_is_one_of_the_values() {
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
