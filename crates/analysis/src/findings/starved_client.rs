//! One of several like clients gets next to nothing.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::Analysis;
use record::Run;

/// Of the mean client's operations: below this a client starves.
const SHARE: f64 = 0.1;
/// With fewer operations a client, chance may leave one with none.
const OPERATIONS: f64 = 30.0;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    // The processes of a trace are not alike: what each gets is what it asked for.
    if run.plan.workload.replay.is_some() {
        return None;
    }
    let mut cells = Vec::new();
    let mut worst: Option<(f64, f64)> = None;
    for summary in summaries(analysis) {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == summary.cell);
        let least: Vec<f64> =
            of_cell.filter_map(|it| least_share(&it.measurement()?.shares())).collect();
        let starved = least.iter().filter(|share| **share < SHARE).count();
        // In one trial of several it may be an accident.
        if least.is_empty() || starved * 2 <= least.len() {
            continue;
        }
        cells.push(summary.cell);
        let mean = least.iter().sum::<f64>() / least.len() as f64;
        if worst.is_none_or(|(share, _)| mean < share) {
            worst = Some((mean, summary.fairness.unwrap_or(1.0)));
        }
    }
    let (share, fairness) = worst?;
    Some(Found {
        cells,
        evidence: Evidence::LeastServed { share, fairness },
        check: Check { change: Change::LongerTrials, expect: Expectation::EvidenceStays },
    })
}

/// What the client with the fewest operations has of the mean client's.
fn least_share(shares: &[u64]) -> Option<f64> {
    let mean = shares.iter().sum::<u64>() as f64 / shares.len().max(1) as f64;
    let least = *shares.iter().min()?;
    (shares.len() > 1 && mean >= OPERATIONS).then(|| least as f64 / mean)
}
