//! Less reached the device than was asked for: a cache above it answered.

use super::{Change, Check, Evidence, Expectation, Found, measured, summaries};
use crate::Analysis;
use record::Run;
use units::Nanos;
use workload::EngineKind;

/// Below this share of the bytes asked, a cache answers.
const SHARE: f64 = 0.9;

/// Shorter trials have too few of the counters' samples, one a second, for their edges not to count;
/// fio as a program of its own starts and ends up to some tenths of a second beside ours.
fn long_enough(measured: Nanos, engine: EngineKind) -> bool {
    let least = if engine == EngineKind::Fio { 5 } else { 2 };
    measured >= Nanos::from_secs(least)
}

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut least: f64 = 1.0;
    for summary in summaries(analysis) {
        let (Ok((workload, engine)), Some(read), Some(written)) = (
            run.plan.workload_of(&run.plan.cells[summary.cell]),
            summary.counters.get(counters::DEVICE_R_MB.id),
            summary.counters.get(counters::DEVICE_W_MB.id),
        ) else {
            continue;
        };
        let device = (read + written) * 1024.0 * 1024.0;
        let share = device / summary.bytes_per_second;
        // A background job's bytes are at the device too and would hide a cache.
        let clear = workload.background.is_none() && long_enough(measured(run, summary), engine);
        if clear && summary.bytes_per_second > 0.0 && share < SHARE {
            least = least.min(share);
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::DeviceMoved { share: least },
        check: Check { change: Change::Direct, expect: Expectation::EvidenceVanishes },
    })
}
