//! Whether a spec can be simulated on a volume.

use crate::database::Database;
use crate::spec::{MIN_PAGE_CACHE, SimulateError, Spec};
use crate::stack::{JOURNAL, refuse_filesystem};
use units::Sectors;

/// Checks that a spec fits a volume of this capacity. Returns the workload's database, if it has one.
pub(super) fn check(spec: &Spec, capacity: Sectors) -> Result<Option<Database>, SimulateError> {
    let capacity = match &spec.stack.filesystem {
        Some(filesystem) => {
            if let Some(reason) = refuse_filesystem(filesystem) {
                return Err(reason.into());
            }
            Sectors(capacity.0.saturating_sub(JOURNAL.0))
        }
        None => capacity,
    };
    let span = spec.span.bytes();
    if spec.span > capacity {
        return Err(SimulateError::Span { span, capacity: capacity.bytes() });
    }
    if let Some(replay) = &spec.replay {
        let reaches = replay.trace.span;
        if reaches > spec.span && !replay.wrap {
            return Err(plan::Refusal::TraceTooLong { reaches: reaches.bytes(), span }.into());
        }
    }
    for (job, span) in spec.workload.jobs(span) {
        job.check()?;
        if job.block_size > span {
            return Err(SimulateError::Block { block: job.block_size, span });
        }
    }
    if spec.stack.page_cache < MIN_PAGE_CACHE {
        return Err(SimulateError::PageCache(spec.stack.page_cache));
    }
    Database::of(spec.workload)
        .map_err(|error| plan::Refusal::Workload { message: error.to_string() }.into())
}
