//! O_DIRECT, and yet the page cache grows by what is moved.

use super::{Change, Check, Evidence, Expectation, Found, counter, lone_job, measured, summaries};
use crate::Analysis;
use record::Run;
use units::Bytes;

/// Growth of the page cache over the bytes that the clients moved.
const SHARE: f64 = 0.2;
/// Less growth in bytes a second than this is the machine's own.
const OWN_GROWTH: f64 = 1_048_576.0;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let Some(job) = lone_job(run, summary) else { continue };
        if !job.sync.direct || summary.bytes_per_second <= 0.0 {
            continue;
        }
        let growth = match counter(summary, &counters::CACHE_USED) {
            // The model's cache begins each trial empty.
            Some(mib) => mib * 1_048_576.0 / measured(run, summary).as_secs_f64(),
            None => counter(summary, &counters::MEMORY_CACHED_GROWTH).unwrap_or(0.0),
        };
        let share = growth / summary.bytes_per_second;
        if growth > OWN_GROWTH && share > SHARE {
            most = most.max(share);
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::CacheGrew { share: most },
        check: Check {
            change: Change::BlockSize(Bytes::from_kib(4)),
            expect: Expectation::EvidenceVanishes,
        },
    })
}
