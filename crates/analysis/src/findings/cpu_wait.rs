//! Clients waited for a processor.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::Analysis;
use record::Run;

/// As a share of the mean latency, above which the storage did not make the figures alone.
const SHARE: f64 = 0.1;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most = (0.0, 0.0);
    for summary in summaries(analysis) {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == summary.cell);
        let means = of_cell.filter_map(|trial| trial.measurement()?.job.latency().mean());
        let means: Vec<f64> = means.map(|mean| mean.as_micros_f64()).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let waited = summary.counters.get(counters::CLIENTS_CPU_WAIT.id).copied().unwrap_or(0.0);
        if waited > mean * SHARE && waited > 1.0 {
            if waited > most.0 {
                most = (waited, mean);
            }
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::CpuWait { waited_us: most.0, mean_latency_us: most.1 },
        check: Check { change: Change::OneClient, expect: Expectation::EvidenceVanishes },
    })
}
