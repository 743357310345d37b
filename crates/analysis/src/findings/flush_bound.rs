//! Writers wait for the device's flush more than for anything else.

use super::{Change, Check, Evidence, Expectation, Found, counter, summaries};
use crate::{Analysis, CellSummary, Metric};

/// Share of the time with a flush at the device, above which it sets the pace.
const SHARE: f64 = 0.5;

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        // Linux has one flush at the device at a time, and counts what waits for the next one too.
        let share = flushes_in_flight(summary).unwrap_or_default().min(1.0);
        if share > SHARE {
            most = most.max(share);
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::Flushing { share: most },
        check: Check { change: Change::NoFlush, expect: Expectation::Improves(Metric::Throughput) },
    })
}

/// How many flushes are in flight, those that wait for the one at the device included.
pub(super) fn flushes_in_flight(summary: &CellSummary) -> Option<f64> {
    let flushes = counter(summary, &counters::DEVICE_F)?;
    Some(flushes * counter(summary, &counters::DEVICE_F_AWAIT)? / 1000.0)
}
