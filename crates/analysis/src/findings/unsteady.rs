//! Trials that had not settled: their second half differs from the first.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::{Analysis, ComparedCell, Estimate, Metric, Verdict};
use record::{Measurement, Run};

/// A change from the first half to the second below this share matters to nobody.
const CHANGE: f64 = 0.05;

/// The probability with which one cell is called unsteady by accident.
const ALPHA: f64 = 0.01;

/// The logarithm of the second half's operations over the first half's.
fn change(measurement: &Measurement) -> Option<f64> {
    let seconds: Vec<f64> = measurement
        .seconds
        .iter()
        .filter(|second| second.at > 0.0)
        .map(|second| second.operations() as f64)
        .collect();
    let half = seconds.len() / 2;
    if half < 2 {
        return None;
    }
    let first: f64 = seconds[..half].iter().sum();
    let second: f64 = seconds[seconds.len() - half..].iter().sum();
    (first > 0.0 && second > 0.0).then(|| (second / first).ln())
}

/// Of each trial of a cell that is long enough to have halves.
pub(crate) fn changes(run: &Run, cell: usize) -> Vec<f64> {
    let trials = run.trials.iter().filter(|trial| trial.id.cell == cell);
    trials.filter_map(|trial| change(trial.measurement()?)).collect()
}

/// The mean logarithm of a cell's second halves over its first, where that is shown to be more than
/// [`CHANGE`].
pub(crate) fn of_cell(run: &Run, cell: usize) -> Option<f64> {
    // A trace is what it is, from its beginning to its end.
    if run.plan.workload.replay.is_some() {
        return None;
    }
    let estimate = Estimate::of(&changes(run, cell))?;
    let sure = estimate.n >= 3 && estimate.mean.abs() > estimate.half_width(ALPHA);
    (sure && estimate.mean.abs() > CHANGE).then_some(estimate.mean)
}

/// Whether a cell is better than its baseline by less than throughput changed within the trials of either.
pub(crate) fn outweighs(run: &Run, baseline: usize, cell: &ComparedCell, metric: Metric) -> bool {
    let better = cell.comparison(metric).filter(|it| it.verdict == Verdict::Better);
    better.is_some_and(|better| {
        [cell.summary.cell, baseline]
            .into_iter()
            .filter_map(|cell| of_cell(run, cell))
            .any(|change| change.abs() > better.ratio.ln().abs())
    })
}

pub(super) fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut largest: f64 = 0.0;
    for summary in summaries(analysis) {
        let Some(change) = of_cell(run, summary.cell) else { continue };
        if change.abs() > largest.abs() {
            largest = change;
        }
        cells.push(summary.cell);
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::HalvesDiffer { change: largest.exp_m1() },
        check: Check { change: Change::LongerWarmup, expect: Expectation::EvidenceVanishes },
    })
}
