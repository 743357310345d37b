//! Writers wait for the device's flush more than for anything else.

use super::{Change, Check, Evidence, Expectation, Found, counter, summaries};
use crate::{Analysis, Metric};

/// Share of the time with a flush at the device, above which it sets the pace.
const SHARE: f64 = 0.5;

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let (Some(flushes), Some(each_ms)) =
            (counter(summary, &counters::DEVICE_F), counter(summary, &counters::DEVICE_F_AWAIT))
        else {
            continue;
        };
        // Linux has one flush at the device at a time, and counts what waits for the next one too.
        let share = (flushes * each_ms / 1000.0).min(1.0);
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
