//! The device read although the clients only wrote.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::Analysis;
use record::Run;
use units::Bytes;

/// Reads at the device for each hundred writes of the clients, above which it is no accident.
const SHARE: f64 = 0.05;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let (Ok((workload, _)), Some(reads), Some(throughput)) = (
            run.plan.workload_of(&run.plan.cells[summary.cell]),
            summary.counters.get(counters::DEVICE_R.id),
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
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::ReadsPerWrite { ratio: most },
        check: Check {
            change: Change::BlockSize(Bytes::from_kib(4)),
            expect: Expectation::EvidenceVanishes,
        },
    })
}
