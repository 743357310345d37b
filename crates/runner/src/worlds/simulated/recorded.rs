//! Traces that are replayed.

use super::usage;
use crate::WorldError;
use plan::{Cell, Factor, Plan, Replay, Workload};
use simulate::ReplaySpec;
use trace::{Format, Trace};

/// Reads the trace that is asked for.
pub(super) fn load(replay: &Replay) -> Result<Trace, WorldError> {
    let bytes = std::fs::read(&replay.file)
        .map_err(|error| WorldError::Usage(format!("the trace {}: {error}", replay.file)))?;
    let format = replay.format.as_deref().map(str::parse::<Format>).transpose().map_err(usage)?;
    trace::parse(&replay.file, &String::from_utf8_lossy(&bytes), format, replay.skip_bad)
        .map_err(usage)
}

/// How a workload replays it.
pub(super) fn spec<'a>(trace: Option<&'a Trace>, workload: &Workload) -> Option<ReplaySpec<'a>> {
    let replay = workload.replay.as_ref()?;
    let job = &workload.job;
    Some(ReplaySpec {
        trace: trace?,
        mode: replay.mode,
        outstanding: job.clients.saturating_mul(job.depth),
    })
}

/// What a reader of the run must know of the trace, in sentences.
pub(super) fn caveats(trace: &Trace) -> Vec<String> {
    let (first, last) = (trace.entries.first(), trace.entries.last());
    let length = last.zip(first).map_or_else(Default::default, |(last, first)| last.at - first.at);
    let mut caveats = vec![format!(
        "the trace ({}) has {} requests of {} processes over {length}",
        trace.format,
        trace.entries.len(),
        trace.processes
    )];
    if trace.bad_lines > 0 {
        caveats.push(format!("{} broken lines of the trace were left out", trace.bad_lines));
    }
    if trace.others > 0 {
        caveats.push(format!(
            "{} requests of the trace that are neither reads, writes nor flushes were left out",
            trace.others
        ));
    }
    caveats
}

/// Why a trace cannot be replayed in a cell, in a sentence.
pub(super) fn refuse(trace: Option<&Trace>, plan: &Plan, cell: &Cell) -> Option<String> {
    let trace = trace?;
    if cell.level(&Factor::Filesystem).is_some() {
        return Some(
            "a trace of block I/O is replayed on a raw device: what a filesystem made of it is in it \
             already"
                .to_owned(),
        );
    }
    (trace.span > plan.size.sectors()).then(|| {
        format!(
            "the trace reaches to {}, and {} are used of the device: name a larger profile",
            trace.span.bytes(),
            plan.size
        )
    })
}
