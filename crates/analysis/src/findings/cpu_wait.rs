//! Clients waited for a processor.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::Analysis;
use record::{Run, Trial};

/// As a share of the mean latency, above which the storage did not make the figures alone.
const SHARE: f64 = 0.1;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most = (0.0, 0.0);
    for summary in summaries(analysis) {
        let trials = run.trials.iter().filter(|trial| trial.id.cell == summary.cell);
        let means = trials.clone().filter_map(|trial| trial.measurement()?.job.latency().mean());
        let means: Vec<f64> = means.map(|mean| mean.as_micros_f64()).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let waited = summary.counters.get(counters::CLIENTS_CPU_WAIT.id).copied().unwrap_or(0.0);
        // What is longer than the latency is not within it: the client waited between its operations.
        let of = if waited > mean { period_us(trials).unwrap_or(mean).max(mean) } else { mean };
        if waited > of * SHARE && waited > 1.0 {
            if waited > most.0 {
                most = (waited, of);
            }
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::CpuWait { waited_us: most.0, period_us: most.1 },
        check: Check { change: Change::OneClient, expect: Expectation::EvidenceVanishes },
    })
}

/// The mean time from one operation of a client to its next, over some trials.
fn period_us<'a>(trials: impl Iterator<Item = &'a Trial>) -> Option<f64> {
    let (mut time, mut operations) = (0.0, 0.0);
    for measurement in trials.filter_map(Trial::measurement) {
        time += measurement.span.as_micros_f64() * measurement.shares().len() as f64;
        operations += measurement.operations() as f64;
    }
    (operations > 0.0).then(|| time / operations)
}
