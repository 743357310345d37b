//! Trials that had not settled: their second half differs from the first.

use super::{Change, Check, Evidence, Expectation, Found, Gain, LEFT, summaries};
use crate::{Analysis, Estimate, Metric};
use record::{Measurement, Run};
use units::Nanos;

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
    if is_replay(run) {
        return None;
    }
    Estimate::of(&changes(run, cell)).filter(|it| is_sure(*it)).map(|it| it.mean)
}

/// A trace is what it is, from its beginning to its end.
fn is_replay(run: &Run) -> bool {
    run.plan.workload.replay.is_some()
}

/// Whether a change within trials is shown, and is more than [`CHANGE`].
fn is_sure(change: Estimate) -> bool {
    let shown = change.n >= 3 && change.mean.abs() > change.half_width(ALPHA);
    shown && change.mean.abs() > CHANGE
}

/// The mean logarithms of a trial's 99th percentiles second by second, in its first half and in its second.
fn tails(measurement: &Measurement) -> Option<(f64, f64)> {
    let logs: Vec<f64> = measurement
        .seconds
        .iter()
        .filter(|second| second.at > 0.0 && second.p99 > Nanos::ZERO)
        .map(|second| second.p99.as_secs_f64().ln())
        .collect();
    let half = logs.len() / 2;
    let mean = |some: &[f64]| some.iter().sum::<f64>() / half as f64;
    (half >= 2).then(|| (mean(&logs[..half]), mean(&logs[logs.len() - half..])))
}

/// Whether a cell's tail is shorter than its baseline's at the beginning of trials only: the tail of either changes
/// within its trials, and less than half of the gain is left in their second halves.
fn tail_settles(run: &Run, baseline: usize, cell: usize, gain: f64) -> bool {
    let of = |cell: usize| -> Vec<(f64, f64)> {
        let trials = run.trials.iter().filter(|trial| trial.id.cell == cell);
        trials.filter_map(|trial| tails(trial.measurement()?)).collect()
    };
    let changes = |all: &[(f64, f64)]| {
        let changes: Vec<f64> = all.iter().map(|(first, second)| second - first).collect();
        Estimate::of(&changes).is_some_and(is_sure)
    };
    let late =
        |all: &[(f64, f64)]| all.iter().map(|(_, second)| second).sum::<f64>() / all.len() as f64;
    let (of_cell, of_baseline) = (of(cell), of(baseline));
    !is_replay(run)
        && (changes(&of_cell) || changes(&of_baseline))
        && (late(&of_cell) - late(&of_baseline)) / gain < LEFT
}

/// Whether a gain is smaller than what throughput changed within the trials of the cell or of its
/// baseline, or is one in the tail that is there at the beginning of trials only.
pub(crate) fn outweighs(run: &Run, gain: Gain) -> bool {
    let changes = [gain.cell, gain.baseline].into_iter().filter_map(|cell| of_cell(run, cell));
    changes.map(f64::abs).any(|change| change > gain.log.abs())
        || (gain.metric == Metric::P99 && tail_settles(run, gain.baseline, gain.cell, gain.log))
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
