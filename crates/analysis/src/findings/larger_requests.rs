//! The device moves more than was asked: its requests are larger than the clients' blocks.

use super::{Change, Check, Evidence, Expectation, Found, counter, lone_job, summaries};
use crate::{Analysis, CellSummary};
use record::Run;
use units::Bytes;
use workload::{Job, Order};

/// Bytes of a request at the device over those of a block, above which it is no accident.
const RATIO: f64 = 1.5;
/// Merged requests as a share of all: with more, merging is what makes them larger.
const MERGED: f64 = 0.05;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let Some(job) = lone_job(run, summary) else { continue };
        // In order, neighbours are read ahead and written together.
        let in_order = matches!(job.pattern.order, Order::Sequential { .. });
        if in_order || merged(summary) > MERGED {
            continue;
        }
        let Some(ratio) = ratio(summary, &job) else { continue };
        if ratio > RATIO {
            most = most.max(ratio);
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::RequestsLarger { ratio: most },
        check: Check {
            change: Change::BlockSize(Bytes::from_kib(4)),
            expect: Expectation::EvidenceVanishes,
        },
    })
}

/// The size of a request, of the kind that the job makes, over its block's. Of reads and writes
/// together it is that of reads, which no journal adds to.
fn ratio(summary: &CellSummary, job: &Job) -> Option<f64> {
    let size = match job.pattern.reads() {
        true => counter(summary, &counters::DEVICE_RAREQ_SZ)?,
        false => counter(summary, &counters::DEVICE_WAREQ_SZ)?,
    };
    Some(size * 1024.0 / job.block_size.0 as f64)
}

fn merged(summary: &CellSummary) -> f64 {
    super::merging::share(summary).unwrap_or(0.0)
}
