//! More was outstanding than the queue has requests.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::{Analysis, Metric};
use record::Run;

/// Of the bytes, above which those who waited show in a 99th percentile.
const SHARE: f64 = 0.01;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        // The counter does not say whose bytes these are.
        let workload = run.plan.workload_of(&run.plan.cells[summary.cell]);
        if workload.is_err() || workload.is_ok_and(|(workload, _)| workload.background.is_some()) {
            continue;
        }
        let waited = summary.counters.get(counters::URING_PUNTED.id).copied().unwrap_or(0.0);
        let share = waited / summary.bytes_per_second.max(1.0);
        if share > SHARE {
            most = most.max(share);
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::Punted { share: most.min(1.0) },
        check: Check { change: Change::LongerQueue, expect: Expectation::Improves(Metric::P99) },
    })
}
