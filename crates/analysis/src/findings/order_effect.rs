//! A trial depends on which cell ran before it.

use super::{Change, Check, Evidence, Expectation, Found};
use crate::{ComparedCell, Estimate, Metric, Verdict, residuals::residuals};
use record::{Run, WorldKind};
use std::collections::BTreeMap;

/// The probability with which a run without an effect is said to have one.
const ALPHA: f64 = 0.01;
/// An effect below this share matters to nobody.
const CHANGE: f64 = 0.05;
/// Trials after the same cell, from which one can tell.
const TRIALS: usize = 6;

/// The cells after which trials differ, and by how much: a logarithm, the largest first.
fn effects(run: &Run) -> Vec<(usize, f64)> {
    // Each trial of the simulated world begins with a machine of its own.
    if run.environment.world == WorldKind::Simulated {
        return Vec::new();
    }
    let mut after: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for pair in residuals(run).windows(2) {
        // Within a round: between two, the program may look at the data.
        if pair[0].id.cell != pair[1].id.cell && pair[0].id.round == pair[1].id.round {
            after.entry(pair[0].id.cell).or_default().push(pair[1].value);
        }
    }
    let cells = after.len().max(1) as f64;
    let mut found: Vec<(usize, f64)> = after
        .into_iter()
        .filter(|(_, values)| values.len() >= TRIALS)
        .filter_map(|(cell, values)| {
            let estimate = Estimate::of(&values)?;
            let sure = estimate.mean.abs() > estimate.half_width(ALPHA / cells);
            (sure && estimate.mean.abs() > CHANGE).then_some((cell, estimate.mean))
        })
        .collect();
    found.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    found
}

/// Whether a cell is better than its baseline by less than trials differ by what ran before them: no trial follows one
/// of its own cell, so that what a cell leaves behind is counted against the others.
pub(crate) fn outweighs(run: &Run, cell: &ComparedCell, metric: Metric) -> bool {
    let better = cell.comparison(metric).filter(|it| it.verdict == Verdict::Better);
    let effects = effects(run);
    let largest = effects.first().map_or(0.0, |(_, change)| change.abs());
    better.is_some_and(|better| largest > better.ratio.ln().abs())
}

pub(super) fn find(run: &Run) -> Option<Found> {
    let found = effects(run);
    let (_, change) = *found.first()?;
    Some(Found {
        cells: found.into_iter().map(|(cell, _)| cell).collect(),
        evidence: Evidence::FollowersDiffer { change: change.exp_m1() },
        check: Check { change: Change::LongerWarmup, expect: Expectation::EvidenceVanishes },
    })
}
