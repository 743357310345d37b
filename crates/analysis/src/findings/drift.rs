//! The storage becomes slower or faster while the run goes on.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::{Analysis, Estimate, residuals::residuals};
use record::Run;
use std::collections::BTreeMap;

/// The probability with which a run without a drift is said to have one.
const ALPHA: f64 = 0.01;
/// A change from the first third of the rounds to the last below this share matters to nobody: rounds
/// pair trials, so that a drift costs width and no truth.
const CHANGE: f64 = 0.1;
/// Fewer rounds have no course.
const ROUNDS: usize = 6;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for residual in residuals(run) {
        rounds.entry(residual.id.round).or_default().push(residual.value);
    }
    let means: Vec<f64> =
        rounds.values().map(|all| all.iter().sum::<f64>() / all.len() as f64).collect();
    if means.len() < ROUNDS {
        return None;
    }
    let third = means.len() / 3;
    // Each round of the last third against one of the first.
    let pairs = means[..third].iter().zip(&means[means.len() - third..]);
    let estimate = Estimate::of(&pairs.map(|(first, last)| last - first).collect::<Vec<_>>())?;
    let sure = estimate.mean.abs() > estimate.half_width(ALPHA);
    (sure && estimate.mean.exp_m1().abs() > CHANGE && has_direction(&means)).then(|| Found {
        cells: summaries(analysis).map(|summary| summary.cell).collect(),
        evidence: Evidence::RoundsDiffer { change: estimate.mean.exp_m1() },
        check: Check { change: Change::LongerWarmup, expect: Expectation::EvidenceVanishes },
    })
}

/// Whether rounds follow a direction: Kendall's tau beyond one half. A single jump of a noisy host has a
/// smaller one.
fn has_direction(means: &[f64]) -> bool {
    let mut sum = 0.0;
    for (place, a) in means.iter().enumerate() {
        for b in &means[place + 1..] {
            sum += if b > a { 1.0 } else { -1.0 };
        }
    }
    let pairs = means.len() * (means.len() - 1) / 2;
    (sum / pairs as f64).abs() > 0.5
}
