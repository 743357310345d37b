//! Less reached the device than was asked for: a cache above it answered.

use super::{Finding, cells, list};
use crate::Analysis;
use record::Run;

pub const ID: &str = "cache";

/// Below this share of the bytes asked, a cache answers.
const SHARE: f64 = 0.9;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut least: f64 = 1.0;
    for (name, summary) in cells(analysis) {
        let (Ok((workload, _)), Some(read), Some(written)) = (
            run.plan.workload_of(&run.plan.cells[summary.cell]),
            summary.counters.get("device.rMB/s"),
            summary.counters.get("device.wMB/s"),
        ) else {
            continue;
        };
        let device = (read + written) * 1024.0 * 1024.0;
        let share = device / summary.bytes_per_second.max(1.0);
        // A background job's bytes are at the device too and would hide a cache.
        if workload.background.is_none() && summary.bytes_per_second > 0.0 && share < SHARE {
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
