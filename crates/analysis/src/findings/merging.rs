//! A cell merges requests that the baseline does not, or the other way round.

use super::{Change, Check, Evidence, Expectation, Found};
use crate::{Analysis, CellSummary, Metric, Verdict};

/// Merged requests as a share of all that came in; a change by more than this is worth telling.
const CHANGE: f64 = 0.05;

pub fn share(summary: &CellSummary) -> Option<f64> {
    let counter = |name: &str| summary.counters.get(name).copied();
    let merged = counter(counters::DEVICE_RRQM.id)? + counter(counters::DEVICE_WRQM.id)?;
    let issued = counter(counters::DEVICE_R.id)? + counter(counters::DEVICE_W.id)?;
    (merged + issued > 0.0).then(|| merged / (merged + issued))
}

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut largest: Option<(f64, f64)> = None;
    for group in &analysis.groups {
        let Some(before) = share(&group.baseline) else { continue };
        for cell in &group.cells {
            let Some(after) = share(&cell.summary) else { continue };
            let verdict = cell.comparison(Metric::Throughput).map(|c| c.verdict);
            let judged = matches!(verdict, Some(Verdict::Better | Verdict::Worse));
            if !judged || (after - before).abs() < CHANGE {
                continue;
            }
            cells.push(cell.summary.cell);
            if largest.is_none_or(|(b, a)| (a - b).abs() < (after - before).abs()) {
                largest = Some((before, after));
            }
        }
    }
    let (before, after) = largest?;
    Some(Found {
        cells,
        evidence: Evidence::Merged { cell: after, baseline: before },
        check: Check { change: Change::NoMerging, expect: Expectation::DifferenceVanishes },
    })
}
