//! The hypervisor took CPU time away.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::Analysis;

/// Percent of CPU time stolen, above which figures suffer.
const STOLEN: f64 = 5.0;

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let stolen = summary.counters.get(counters::CPU_STEAL.id).copied().unwrap_or(0.0);
        if stolen > STOLEN {
            most = most.max(stolen);
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::Stolen { percent: most },
        check: Check { change: Change::QuieterMachine, expect: Expectation::EvidenceVanishes },
    })
}
