//! The device read although the clients only wrote.

use super::{Finding, cells, list};
use crate::Analysis;
use record::Run;

pub const ID: &str = "read-before-write";

/// Reads at the device for each hundred writes of the clients, above which it is no accident.
const SHARE: f64 = 0.05;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut most: f64 = 0.0;
    for (name, summary) in cells(analysis) {
        let (Ok((workload, _)), Some(reads), Some(throughput)) = (
            run.plan.workload_of(&run.plan.cells[summary.cell]),
            summary.counters.get("device.r/s"),
            summary.throughput,
        ) else {
            continue;
        };
        let only_writes = !workload.job.pattern.reads()
            && workload.background.is_none()
            && workload.database.is_none();
        let share = reads / throughput.mean.max(1.0);
        if only_writes && share > SHARE {
            most = most.max(share);
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Finding {
        id: ID,
        statement: format!(
            "Under {} the device reads although the clients only write: blocks smaller than the \
             filesystem's are read before they are written, or metadata is fetched.",
            list(&names)
        ),
        evidence: format!("up to {most:.2} device reads for each write of a client"),
        test:
            "repeat with --block-sizes equal to the filesystem's block size, or --sync direct: the \
               reads must vanish"
                .to_owned(),
        cells: names,
    })
}
