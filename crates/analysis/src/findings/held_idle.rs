//! The scheduler holds the device idle while requests wait: a loss, or, where the next request of the same client is
//! near, a gain.

use super::{Change, Check, Evidence, Expectation, Felt, Found, counter, flush_bound};
use crate::{Analysis, CellSummary, Metric};
use plan::Factor;
use record::Run;
use scheduler::SchedulerKind;

/// Percent of the time, above which it costs what one would see.
const IDLE: f64 = 10.0;
/// Requests in flight at the block layer: with fewer, the device is idle because nobody asks.
const ASKED: f64 = 1.5;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let Felt { costing, paying } = Felt::of(analysis, |summary| held(run, summary));
    let pays = costing.is_empty();
    let cells = if pays { paying } else { costing };
    let percent = cells.iter().map(|(_, percent)| *percent).max_by(f64::total_cmp)?;
    let throughput = Metric::Throughput;
    let expect =
        if pays { Expectation::Worsens(throughput) } else { Expectation::Improves(throughput) };
    Some(Found {
        cells: cells.into_iter().map(|(cell, _)| cell).collect(),
        evidence: Evidence::IdleWhileWaiting { percent, pays },
        check: Check { change: Change::NoScheduler, expect },
    })
}

/// How much of the time, where it is enough to be felt.
fn held(run: &Run, summary: &CellSummary) -> Option<f64> {
    idle(run, summary).filter(|percent| *percent > IDLE)
}

/// How much of the time. The model counts it; on an emulated device the model's load is sampled each
/// second, beside what Linux says is in flight: flushes too, which wait for each other and not for the scheduler, and
/// what is on the way to the model, so that only a scheduler that idles is taken for the cause.
fn idle(run: &Run, summary: &CellSummary) -> Option<f64> {
    if let Some(percent) = counter(summary, &counters::SIM_IDLE_WHILE_WAITING) {
        return Some(percent);
    }
    let name = run.level(&run.plan.cells[summary.cell], &Factor::Scheduler);
    // One that is not known may idle.
    let idles = name.and_then(|name| name.parse().ok()).is_none_or(SchedulerKind::idles);
    let at_device = counter(summary, &counters::EMULATE_DEPTH)?;
    let flushes = flush_bound::flushes_in_flight(summary).unwrap_or_default();
    let asked = counter(summary, &counters::DEVICE_AQU_SZ)? - flushes;
    (idles && asked > ASKED).then(|| 100.0 * (1.0 - at_device).max(0.0))
}
