//! Less reached the device than was asked for: a cache above it answered.

use super::{Finding, cells, list};
use crate::Analysis;
use plan::EngineKind;
use record::Run;
use units::Nanos;

pub const ID: &str = "cache";

/// Below this share of the bytes asked, a cache answers.
const SHARE: f64 = 0.9;

/// Shorter trials have too few of the counters' samples, one a second, for their edges not to count;
/// fio as a program of its own starts and ends up to some tenths of a second beside ours.
fn long_enough(run: &Run, engine: EngineKind) -> bool {
    let least = if engine == EngineKind::Fio { 5 } else { 2 };
    run.plan.timing.measure >= Nanos::from_secs(least)
}

pub fn find(run: &Run, analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut least: f64 = 1.0;
    for (name, summary) in cells(analysis) {
        let (Ok((workload, engine)), Some(read), Some(written)) = (
            run.plan.workload_of(&run.plan.cells[summary.cell]),
            summary.counters.get("device.rMB/s"),
            summary.counters.get("device.wMB/s"),
        ) else {
            continue;
        };
        let device = (read + written) * 1024.0 * 1024.0;
        let share = device / summary.bytes_per_second.max(1.0);
        // A background job's bytes are at the device too and would hide a cache.
        let clear = workload.background.is_none() && long_enough(run, engine);
        if clear && summary.bytes_per_second > 0.0 && share < SHARE {
            least = least.min(share);
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Finding {
        id: ID,
        statement: format!(
            "Under {} a cache answered part of the operations: the figures are memory's, not the \
             device's.",
            list(&names)
        ),
        evidence: format!(
            "the device moved as little as {:.0} % of the bytes that the clients asked for",
            least * 100.0
        ),
        test:
            "repeat with --sync direct, a --size well above memory, or --page-cache: the share at \
               the device must rise to 100 %"
                .to_owned(),
        cells: names,
    })
}
