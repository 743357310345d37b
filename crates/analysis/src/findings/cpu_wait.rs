//! Clients waited for a processor.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::Analysis;
use record::{Measurement, Run};

/// As a share of the mean latency, or of the time from one operation of a client to its next where that is longer: above it the storage did not make the figures alone.
const SHARE: f64 = 0.1;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most = (0.0, 0.0);
    for summary in summaries(analysis) {
        let trials = run.trials.iter().filter(|trial| trial.id.cell == summary.cell);
        let means = trials.clone().filter_map(|trial| trial.measurement()?.job.latency().mean());
        let means: Vec<f64> = means.map(|mean| mean.as_micros_f64()).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        // A client also waits between its operations: what it waited is a share of the time from one to the next.
        let periods = trials.filter_map(|trial| period_us(trial.measurement()?));
        let periods: Vec<f64> = periods.collect();
        let mean = mean.max(periods.iter().sum::<f64>() / periods.len().max(1) as f64);
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
        evidence: Evidence::CpuWait { waited_us: most.0, period_us: most.1 },
        check: Check { change: Change::OneClient, expect: Expectation::EvidenceVanishes },
    })
}

/// The mean time from one operation of a client to its next.
fn period_us(measurement: &Measurement) -> Option<f64> {
    let clients = measurement.shares().len() as f64;
    let operations = measurement.operations() as f64;
    (operations > 0.0).then(|| measurement.span.as_micros_f64() * clients / operations)
}
