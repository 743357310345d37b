//! The scheduler holds the device idle while requests wait: a loss, or, where the next request of the same client is
//! near, a gain.

use super::{Change, Check, Evidence, Expectation, Found, counter};
use crate::{Analysis, CellSummary, ComparedCell, Metric, Verdict};

/// Percent of the time, above which it costs what one would see.
const IDLE: f64 = 10.0;
/// Requests in flight at the block layer: with fewer, the device is idle because nobody asks.
const ASKED: f64 = 1.5;

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut costing = Vec::new();
    let mut paying = Vec::new();
    for group in &analysis.groups {
        let verdict =
            |cell: &ComparedCell| cell.comparison(Metric::Throughput).map(|it| it.verdict);
        let baseline = held(&group.baseline);
        if let Some(percent) = baseline {
            // The cells that do not hold the device tell what the baseline's idling does.
            let idle_free = group.cells.iter().filter(|cell| held(&cell.summary).is_none());
            let verdicts: Vec<_> = idle_free.filter_map(verdict).collect();
            let at = (group.baseline.cell, percent);
            if verdicts.contains(&Verdict::Better) {
                costing.push(at);
            } else if verdicts.contains(&Verdict::Worse) {
                paying.push(at);
            } else if !verdicts.contains(&Verdict::NoDifference) {
                costing.push(at);
            }
        }
        for cell in &group.cells {
            let Some(percent) = held(&cell.summary) else { continue };
            let at = (cell.summary.cell, percent);
            match verdict(cell).filter(|_| baseline.is_none()) {
                Some(Verdict::Better) => paying.push(at),
                Some(Verdict::NoDifference) => {}
                Some(Verdict::Worse | Verdict::NotSettled) | None => costing.push(at),
            }
        }
    }
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
fn held(summary: &CellSummary) -> Option<f64> {
    idle(summary).filter(|percent| *percent > IDLE)
}

/// How much of the time. The model counts it; on an emulated device the model's load is sampled each
/// second, beside what Linux says is in flight.
fn idle(summary: &CellSummary) -> Option<f64> {
    if let Some(percent) = counter(summary, &counters::SIM_IDLE_WHILE_WAITING) {
        return Some(percent);
    }
    let at_device = counter(summary, &counters::EMULATE_DEPTH)?;
    let asked = counter(summary, &counters::DEVICE_AQU_SZ)?;
    (asked > ASKED).then(|| 100.0 * (1.0 - at_device).max(0.0))
}
