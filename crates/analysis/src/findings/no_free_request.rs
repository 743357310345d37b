//! More was outstanding than the queue has requests.

use super::{Change, Check, Evidence, Expectation, Found, counter, summaries};
use crate::{Analysis, CellSummary, Metric};
use record::Run;

/// Of the bytes, or of the mean latency, above which those who waited show in a 99th percentile.
const SHARE: f64 = 0.01;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut worst: Option<(f64, Evidence)> = None;
    for summary in summaries(analysis) {
        // The counters do not say whose waits these are.
        let workload = run.plan.workload_of(&run.plan.cells[summary.cell]);
        if !workload.is_ok_and(|(workload, _)| workload.background.is_none()) {
            continue;
        }
        let Some((share, evidence)) = waits(run, summary).filter(|(share, _)| *share > SHARE)
        else {
            continue;
        };
        cells.push(summary.cell);
        if worst.is_none_or(|(most, _)| share > most) {
            worst = Some((share, evidence));
        }
    }
    let (_, evidence) = worst?;
    Some(Found {
        cells,
        evidence,
        check: Check { change: Change::LongerQueue, expect: Expectation::Improves(Metric::P99) },
    })
}

/// How much waited: the model counts the time; on a real kernel io_uring's workers carry the bytes.
fn waits(run: &Run, summary: &CellSummary) -> Option<(f64, Evidence)> {
    if let Some(asleep_ms) = counter(summary, &counters::SIM_TIME_ASLEEP) {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == summary.cell);
        let means = of_cell.filter_map(|trial| trial.measurement()?.latency().mean());
        let means: Vec<f64> = means.map(|mean| mean.as_micros_f64() / 1000.0).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let share = asleep_ms / mean.max(f64::MIN_POSITIVE);
        return Some((share, Evidence::WaitedForRequest { share: share.min(1.0) }));
    }
    let punted = counter(summary, &counters::URING_PUNTED)?;
    let share = punted / summary.bytes_per_second.max(1.0);
    Some((share, Evidence::Punted { share: share.min(1.0) }))
}
