//! O_DIRECT, and yet the page cache grows by what is moved.

use super::{Change, Check, Evidence, Expectation, Found, counter, lone_job, measured, summaries};
use crate::{Analysis, CellSummary};
use plan::Factor;
use record::{Run, WorldKind};
use units::Bytes;
use workload::Job;

/// Growth of the page cache over the bytes that the clients moved.
const SHARE: f64 = 0.2;
/// Less growth in bytes a second than this is the machine's own.
const OWN_GROWTH: f64 = 1_048_576.0;
/// Part of a block of which the target's file has no more in the page cache, on average, where it is read and written
/// directly: it begins each trial with none.
const OF_BLOCK: f64 = 0.5;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: Option<(f64, Evidence)> = None;
    for summary in summaries(analysis) {
        let Some(job) = lone_job(run, summary) else { continue };
        if !job.sync.direct || summary.bytes_per_second <= 0.0 {
            continue;
        }
        let Some((size, evidence)) = passed_through(run, summary, &job) else { continue };
        cells.push(summary.cell);
        if most.is_none_or(|(largest, _)| size > largest) {
            most = Some((size, evidence));
        }
    }
    let (_, evidence) = most?;
    Some(Found {
        cells,
        evidence,
        check: Check {
            change: Change::BlockSize(Bytes::from_kib(4)),
            expect: Expectation::EvidenceVanishes,
        },
    })
}

/// What shows that the page cache had a part in it: the file's own pages, where the kernel tells them; else the growth of the
/// whole cache, which others may have made.
fn passed_through(run: &Run, summary: &CellSummary, job: &Job) -> Option<(f64, Evidence)> {
    if let Some(bytes) = counter(summary, &counters::TARGET_CACHED) {
        let more = bytes > job.block_size.0 as f64 * OF_BLOCK;
        return more.then_some((bytes, Evidence::TargetCached { bytes }));
    }
    // On a device without a filesystem the kernel does not do so, and the whole cache is what others read.
    let on_files = run.plan.cells[summary.cell].level(&Factor::Filesystem).is_some();
    let raw = match run.environment.world {
        WorldKind::Emulated => !on_files,
        WorldKind::Real => !on_files && run.plan.target.starts_with("/dev/"),
        WorldKind::Simulated | WorldKind::Imported => false,
    };
    if raw {
        return None;
    }
    let growth = match counter(summary, &counters::CACHE_USED) {
        // The model's cache begins each trial empty.
        Some(mib) => mib * 1_048_576.0 / measured(run, summary).as_secs_f64(),
        None => counter(summary, &counters::MEMORY_CACHED_GROWTH).unwrap_or(0.0),
    };
    let share = growth / summary.bytes_per_second;
    (growth > OWN_GROWTH && share > SHARE).then_some((share, Evidence::CacheGrew { share }))
}
