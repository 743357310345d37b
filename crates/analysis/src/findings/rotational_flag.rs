//! Linux takes the device for another kind than it is, and chooses by that.

use super::{Change, Check, Evidence, Expectation, Found, lone_job, summaries};
use crate::Analysis;
use record::{Caveat, Run};
use units::Nanos;
use workload::Order;

/// A disk that turns takes longer for half of its random reads: a quarter of the turn of the fastest, 15,000 a minute.
const NO_DISK: Nanos = Nanos::from_millis(1);
/// Flash answers half of the random reads that come one at a time sooner, and so does a cache.
const NO_FLASH: Nanos = Nanos::from_millis(3);
/// The trap of loop devices whose reads the page cache of this host answers.
const CACHED: &str = "buffered-loop";

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let settings = &run.environment.settings;
    let (_, claim) = settings.iter().find(|(name, _)| name == "rotational")?;
    let rotates = claim == "1";
    let cached = |caveat: &Caveat| matches!(caveat, Caveat::Trap { id, .. } if id == CACHED);
    if run.environment.caveats.iter().any(cached) {
        return None;
    }
    let contrary: Vec<(usize, Nanos)> = summaries(analysis)
        .filter_map(|summary| {
            let job = lone_job(run, summary)?;
            let random_reads = job.pattern.order == Order::Random && !job.pattern.writes();
            if !random_reads || !job.sync.direct || job.rate.is_some() {
                return None;
            }
            let median = summary.latency?.p50;
            let one_at_a_time = u64::from(job.clients) * u64::from(job.depth) == 1;
            let is_contrary = match rotates {
                true => median < NO_DISK,
                false => one_at_a_time && median > NO_FLASH,
            };
            is_contrary.then_some((summary.cell, median))
        })
        .collect();
    let medians = contrary.iter().map(|(_, median)| *median);
    let median = if rotates { medians.min() } else { medians.max() }?;
    Some(Found {
        cells: contrary.into_iter().map(|(cell, _)| cell).collect(),
        evidence: Evidence::FlagIsWrong { rotates, median_us: median.as_micros_f64() },
        check: Check { change: Change::RightFlag, expect: Expectation::EvidenceVanishes },
    })
}
