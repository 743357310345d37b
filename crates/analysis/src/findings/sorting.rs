//! Heads travel another distance than under the baseline, and merging is the same.

use super::{Change, Check, Evidence, Expectation, Found, counter, kept_together, merging};
use crate::{Analysis, CellSummary, Metric, Verdict};
use plan::Mechanism;
use record::{Run, WorldKind};

/// A change of the mean seek by more than this share is worth telling.
const CHANGE: f64 = 0.25;
/// Where seeks are shorter, the requests at the device are no more than elsewhere by this factor: else the device's own
/// order may be the cause.
const DEPTH: f64 = 1.5;
/// The shares of merged requests differ by less: else merging may be the cause.
const MERGED: f64 = 0.05;

/// The mean way from a request to the next.
fn seek(summary: &CellSummary) -> Option<f64> {
    counter(summary, &counters::SIM_SEEK).or_else(|| counter(summary, &counters::ORDER_SEEK))
}

/// Requests at the device, where that is known.
fn depth(summary: &CellSummary) -> f64 {
    counter(summary, &counters::SIM_DEPTH)
        .or_else(|| counter(summary, &counters::EMULATE_DEPTH))
        .unwrap_or(1.0)
}

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut largest: Option<(f64, f64)> = None;
    for group in &analysis.groups {
        let Some(before) = seek(&group.baseline) else { continue };
        for cell in &group.cells {
            let Some(after) = seek(&cell.summary) else { continue };
            let verdict = cell.comparison(Metric::Throughput).map(|it| it.verdict);
            // Shorter seeks explain a gain, longer ones a loss.
            let explains = match verdict {
                Some(Verdict::Better) => after < before * (1.0 - CHANGE),
                Some(Verdict::Worse) => after > before * (1.0 + CHANGE),
                _ => false,
            };
            let share = |summary| merging::share(summary).unwrap_or(0.0);
            let merged = (share(&cell.summary) - share(&group.baseline)).abs() < MERGED;
            // A device that has more to choose from does its own sorting.
            let (shorter, longer) = match after < before {
                true => (&cell.summary, &group.baseline),
                false => (&group.baseline, &cell.summary),
            };
            let by_device = depth(shorter) > depth(longer) * DEPTH;
            let together = kept_together::differ(&cell.summary, &group.baseline);
            if !explains || !merged || by_device || together {
                continue;
            }
            cells.push(cell.summary.cell);
            let size = |(before, after): (f64, f64)| (after / before).ln().abs();
            if largest.is_none_or(|it| size(it) < size((before, after))) {
                largest = Some((before, after));
            }
        }
    }
    let (baseline, cell) = largest?;
    Some(Found {
        cells,
        evidence: Evidence::Seeks { cell, baseline },
        check: Check {
            change: match run.environment.world {
                WorldKind::Simulated => Change::Without(Mechanism::Sorting),
                // A single client leaves nothing to sort.
                _ => Change::OneClient,
            },
            expect: Expectation::DifferenceVanishes,
        },
    })
}
