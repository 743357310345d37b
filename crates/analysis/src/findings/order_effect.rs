//! A trial depends on which cell ran before it.

use super::{Change, Check, Evidence, Expectation, Found, Gain, LEFT};
use crate::{Estimate, Metric, residuals::residuals};
use record::{Run, WorldKind};
use std::collections::BTreeMap;

/// The probability with which a run without an effect is said to have one.
const ALPHA: f64 = 0.01;
/// An effect below this share matters to nobody.
const CHANGE: f64 = 0.05;
/// Trials after the same cell, from which one can tell.
const TRIALS: usize = 6;
/// Rounds from which one can tell how much of a gain is left without some of the baseline's trials.
const ROUNDS: usize = 3;

/// Whether nothing of a trial is left for the next: each trial of the simulated world has a machine of its own.
fn begins_anew(run: &Run) -> bool {
    run.environment.world == WorldKind::Simulated
}

/// The cells after which trials differ, and by how much: a logarithm, the largest first.
fn effects(run: &Run) -> Vec<(usize, f64)> {
    if begins_anew(run) {
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

/// Whether a gain is smaller than what trials differ by what ran before them, or comes mostly of the
/// baseline's trials that follow the cell: no trial follows one of its own cell, so that what a cell leaves behind is
/// counted against the others.
pub(crate) fn outweighs(run: &Run, gain: Gain) -> bool {
    let left = || without_followers(run, gain.baseline, gain.cell, gain.metric);
    effects(run).first().is_some_and(|(_, change)| change.abs() > gain.log.abs())
        || left().is_some_and(|left| left / gain.log < LEFT)
}

/// The logarithm of a cell's figure over its baseline's, round by round, without the baseline's trials that follow one
/// of the cell; `None` where none of them does, or too few do not.
fn without_followers(run: &Run, baseline: usize, cell: usize, metric: Metric) -> Option<f64> {
    if begins_anew(run) {
        return None;
    }
    let mut rounds: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    let (mut followers, mut before) = (0, None);
    for trial in &run.trials {
        let follows = before == Some(cell);
        before = Some(trial.id.cell);
        let figure = || metric.log(&[trial.measurement()?]);
        let (of_cell, of_baseline) = rounds.entry(trial.id.round).or_default();
        match trial.id.cell {
            it if it == cell => of_cell.extend(figure()),
            it if it == baseline && follows => followers += 1,
            it if it == baseline => of_baseline.extend(figure()),
            _ => {}
        }
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let paired: Vec<f64> = rounds
        .values()
        .filter(|(of_cell, of_baseline)| !of_cell.is_empty() && !of_baseline.is_empty())
        .map(|(of_cell, of_baseline)| mean(of_cell) - mean(of_baseline))
        .collect();
    (followers > 0 && paired.len() >= ROUNDS).then(|| mean(&paired))
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
