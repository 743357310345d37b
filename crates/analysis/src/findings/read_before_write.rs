//! The device read although the clients only wrote.

use super::{Change, Check, Evidence, Expectation, Found, lone_job, summaries};
use crate::Analysis;
use record::Run;
use units::Bytes;

/// Reads at the device for each hundred writes of the clients, above which it is no accident.
const SHARE: f64 = 0.05;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let (Some(job), Some(reads), Some(throughput)) = (
            lone_job(run, summary),
            summary.counters.get(counters::DEVICE_R.id),
            summary.throughput,
        ) else {
            continue;
        };
        let share = reads / throughput.mean.max(1.0);
        if !job.pattern.reads() && share > SHARE {
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
