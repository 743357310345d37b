//! At one moment all cells fall to one and the same rate: a limit of the host or the cloud began to hold.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::{Analysis, Metric};
use record::Run;

/// The rate before must be higher by this factor.
const FALL: f64 = 1.3;
/// Trials at a limit differ by less than this share, whichever their cell.
const SPREAD: f64 = 0.03;
/// So many trials must lie on either side.
const TRIALS: usize = 4;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let rate = |trial: &record::Trial| Some((trial.id.cell, rate(trial.measurement()?)?));
    let rates: Vec<(usize, f64)> = run.trials.iter().filter_map(rate).collect();
    let limit = (TRIALS..rates.len().saturating_sub(TRIALS) + 1).find_map(|at| {
        let (before, after) = rates.split_at(at);
        let mean = |part: &[(usize, f64)]| {
            part.iter().map(|(_, rate)| rate).sum::<f64>() / part.len() as f64
        };
        let level = mean(after);
        let flat = after.iter().all(|(_, rate)| (rate / level - 1.0).abs() < SPREAD);
        let least = before.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min);
        // All before lay above it, or this is not where it begins.
        (flat && several_cells(after) && mean(before) > level * FALL && least > level)
            .then_some((mean(before), level))
    });
    let (before, limit) = limit?;
    Some(Found {
        cells: summaries(analysis).map(|summary| summary.cell).collect(),
        evidence: Evidence::FellToLimit { before, limit },
        check: Check { change: Change::QuieterMachine, expect: Expectation::EvidenceVanishes },
    })
}

fn rate(measurement: &record::Measurement) -> Option<f64> {
    Metric::Throughput.of(measurement)
}

/// One cell alone is as fast as it is; several that are alike are held.
fn several_cells(trials: &[(usize, f64)]) -> bool {
    trials.iter().any(|(cell, _)| *cell != trials[0].0)
}
