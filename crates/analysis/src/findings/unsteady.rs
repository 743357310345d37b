//! Trials that had not settled: their second half differs from the first.

use super::{Finding, cells, list};
use crate::{Analysis, Estimate};
use record::{Measurement, Run};

pub const ID: &str = "unsteady";

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

pub fn find(run: &Run, analysis: &Analysis) -> Option<Finding> {
    // A trace is what it is, from its beginning to its end.
    if run.plan.workload.replay.is_some() {
        return None;
    }
    let mut names = Vec::new();
    let mut largest: f64 = 0.0;
    for (name, summary) in cells(analysis) {
        let changes: Vec<f64> = run
            .trials
            .iter()
            .filter(|trial| trial.cell == summary.cell)
            .filter_map(|trial| change(trial.measurement()?))
            .collect();
        let Some(estimate) = Estimate::of(&changes) else { continue };
        let sure = estimate.n >= 3 && estimate.mean.abs() > estimate.half_width(ALPHA);
        if sure && estimate.mean.abs() > CHANGE {
            if estimate.mean.abs() > largest.abs() {
                largest = estimate.mean;
            }
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Finding {
        id: ID,
        statement: format!(
            "Under {} the trials had not settled when measuring began: the figures depend on how long \
             one measures.",
            list(&names)
        ),
        evidence: format!(
            "operations a second change by {:+.0} % from a trial's first half to its second",
            largest.exp_m1() * 100.0
        ),
        test: "repeat with a longer --warmup: the change must shrink".to_owned(),
        cells: names,
    })
}
