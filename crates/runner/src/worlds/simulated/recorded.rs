//! Traces that are replayed.

use crate::WorldError;
use plan::{Cell, Factor, Plan, Refusal};
use record::Caveat;
use simulate::ReplaySpec;
use trace::{Format, How, TimeUnit, Trace};
use units::Nanos;
use workload::{Replay, Workload};

/// The trace's file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the trace {file}")]
struct Unreadable {
    file: String,
    source: std::io::Error,
}

/// Reads the trace that is asked for.
pub(super) fn load(replay: &Replay) -> Result<Trace, WorldError> {
    let bytes = std::fs::read(&replay.file)
        .map_err(|source| WorldError::usage(Unreadable { file: replay.file.clone(), source }))?;
    let format = replay
        .format
        .as_deref()
        .map(str::parse::<Format>)
        .transpose()
        .map_err(WorldError::usage)?;
    let unit = replay
        .unit
        .as_deref()
        .map(str::parse::<TimeUnit>)
        .transpose()
        .map_err(WorldError::usage)?;
    let how = How { format, unit, skip_bad: replay.skip_bad };
    let trace = trace::read(&replay.file, &bytes, &how).map_err(WorldError::usage)?;
    trace.check_replayable(&replay.file).map_err(WorldError::usage)?;
    Ok(trace)
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

/// What a reader of the run must know of the trace.
pub(super) fn caveats(trace: &Trace, measure: Nanos) -> Vec<Caveat> {
    let (first, last) = (trace.entries.first(), trace.entries.last());
    let length = last.zip(first).map_or_else(Default::default, |(last, first)| last.at - first.at);
    let mut caveats = vec![Caveat::Trace {
        format: trace.format.to_string(),
        requests: trace.entries.len() as u64,
        processes: trace.processes as u64,
        length,
    }];
    if trace.bad_lines > 0 {
        caveats.push(Caveat::TraceBadLines { lines: trace.bad_lines });
    }
    if trace.clock_steps > 0 {
        caveats.push(Caveat::TraceClockSteps { steps: trace.clock_steps });
    }
    if length > measure {
        caveats.push(Caveat::TraceCut { length, measure });
    }
    if trace.others > 0 {
        caveats.push(Caveat::TraceOtherRequests { requests: trace.others });
    }
    for (requests, caveat) in [
        (trace.reissued, Caveat::TraceReissued { requests: trace.reissued }),
        (trace.below, Caveat::TraceBelow { requests: trace.below }),
        (trace.doubled, Caveat::TraceDoubled { requests: trace.doubled }),
        (trace.lost, Caveat::TraceLost { events: trace.lost }),
    ] {
        if requests > 0 {
            caveats.push(caveat);
        }
    }
    caveats
}

/// Whether a trace can be replayed in a cell.
pub(super) fn check(trace: Option<&Trace>, plan: &Plan, cell: &Cell) -> Result<(), Refusal> {
    let Some(trace) = trace else { return Ok(()) };
    if cell.level(&Factor::Filesystem).is_some() {
        return Err(Refusal::TraceOnFilesystem);
    }
    match trace.span > plan.size.sectors() {
        true => Err(Refusal::TraceTooLong { reaches: trace.span.bytes(), span: plan.size }),
        false => Ok(()),
    }
}
