//! The scheduler holds the device idle while requests wait.

use super::{Change, Check, Evidence, Expectation, Found, counter, summaries};
use crate::{Analysis, CellSummary, Metric};

/// Percent of the time, above which it costs what one would see.
const IDLE: f64 = 10.0;
/// Requests in flight at the block layer: with fewer, the device is idle because nobody asks.
const ASKED: f64 = 1.5;

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let Some(percent) = idle(summary).filter(|percent| *percent > IDLE) else { continue };
        most = most.max(percent);
        cells.push(summary.cell);
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::IdleWhileWaiting { percent: most },
        check: Check {
            change: Change::NoScheduler,
            expect: Expectation::Improves(Metric::Throughput),
        },
    })
}

/// How much of the time. The model counts it; on an emulated device the model's load is sampled each
/// second, beside what Linux says is in flight.
fn idle(summary: &CellSummary) -> Option<f64> {
    if let Some(percent) = counter(summary, &counters::SIM_IDLE_WHILE_WAITING) {
        return Some(percent);
    }
    let at_device = counter(summary, &counters::EMULATE_DEPTH)?;
    let asked = counter(summary, &counters::DEVICE_AQU_SZ)?;
    (asked > ASKED).then(|| 100.0 * (1.0 - at_device).max(0.0))
}
