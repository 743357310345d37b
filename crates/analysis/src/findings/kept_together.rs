//! A scheduler that keeps the requests of a stream together: heads stay where they are.

use super::{Change, Check, Evidence, Expectation, Found, counter};
use crate::{Analysis, CellSummary, Metric, Verdict};

/// The shares of requests that follow the one before differ by more than so many percentage points.
const MORE: f64 = 20.0;

/// Percent of the requests that begin where the one before ended, as they go to the device.
pub fn sequential(summary: &CellSummary) -> Option<f64> {
    counter(summary, &counters::SIM_SEQUENTIAL)
        .or_else(|| counter(summary, &counters::ORDER_SEQUENTIAL))
}

/// Whether the one keeps streams together and the other does not.
pub fn differ(one: &CellSummary, other: &CellSummary) -> bool {
    let shares = sequential(one).zip(sequential(other));
    shares.is_some_and(|(one, other)| (one - other).abs() > MORE)
}

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut largest: Option<(f64, f64)> = None;
    for group in &analysis.groups {
        let Some(baseline) = sequential(&group.baseline) else { continue };
        for cell in &group.cells {
            let Some(here) = sequential(&cell.summary) else { continue };
            let explains = match cell.comparison(Metric::Throughput).map(|it| it.verdict) {
                Some(Verdict::Better) => here > baseline + MORE,
                Some(Verdict::Worse) => here < baseline - MORE,
                _ => false,
            };
            if !explains {
                continue;
            }
            cells.push(cell.summary.cell);
            let size = |(here, baseline): (f64, f64)| (here - baseline).abs();
            if largest.is_none_or(|it| size(it) < size((here, baseline))) {
                largest = Some((here, baseline));
            }
        }
    }
    let (cell, baseline) = largest?;
    Some(Found {
        cells,
        evidence: Evidence::Sequential { cell, baseline },
        // A single client is alone at the device under every scheduler.
        check: Check { change: Change::OneClient, expect: Expectation::DifferenceVanishes },
    })
}
