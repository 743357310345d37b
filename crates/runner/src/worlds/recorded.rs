//! Traces that are replayed.

use crate::WorldError;
use plan::{Cell, Factor, Intention, Plan, Refusal};
use record::Caveat;
use simulate::ReplaySpec;
use trace::{Format, How, TimeUnit, Trace, TraceOp};
use units::Bytes;
use workload::{ClientKind, EngineKind, Replay, ReplayMode, Workload};

/// The trace's file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the trace {file}")]
struct Unreadable {
    file: String,
    source: std::io::Error,
}

/// Reads the trace that is asked for.
pub(crate) fn load(replay: &Replay) -> Result<Trace, WorldError> {
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
pub(crate) fn spec<'a>(trace: Option<&'a Trace>, workload: &Workload) -> Option<ReplaySpec<'a>> {
    let replay = workload.replay.as_ref()?;
    let job = &workload.job;
    Some(ReplaySpec {
        trace: trace?,
        mode: replay.mode,
        outstanding: job.clients.saturating_mul(job.depth),
        wrap: replay.wrap,
    })
}

/// What a reader of the run must know of the trace.
pub(crate) fn caveats(trace: &Trace, plan: &Plan) -> Vec<Caveat> {
    let length = trace.length();
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
    if let Some(measure) = plan.timing.measure.time().filter(|measure| length > *measure) {
        caveats.push(Caveat::TraceCut { length, measure });
    }
    let beyond = trace.beyond(plan.size.sectors());
    if beyond > 0 {
        caveats.push(Caveat::TraceWrapped { requests: beyond, span: plan.size });
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
pub(crate) fn check(trace: Option<&Trace>, plan: &Plan, cell: &Cell) -> Result<(), Refusal> {
    let Some(trace) = trace else { return Ok(()) };
    if cell.level(&Factor::Filesystem).is_some() {
        return Err(Refusal::TraceOnFilesystem);
    }
    let span = plan.size;
    if trace.longest() > span.sectors() {
        return Err(Refusal::TraceRequestTooLong { request: trace.longest().bytes(), span });
    }
    let wraps = plan.workload.replay.as_ref().is_some_and(|replay| replay.wrap);
    match trace.span > span.sectors() && !wraps {
        true => Err(Refusal::TraceTooLong { reaches: trace.span.bytes(), span }),
        false => Ok(()),
    }
}

/// Whether this program's engines can replay a trace in a cell, as what it is.
pub(crate) fn check_engine(workload: &Workload, engine: EngineKind) -> Option<Refusal> {
    let mode = workload.replay.as_ref()?.mode;
    let possible = match engine {
        EngineKind::IoUring | EngineKind::Null => true,
        EngineKind::Sync => {
            mode == ReplayMode::Closed || (mode == ReplayMode::Asap && workload.job.depth == 1)
        }
        EngineKind::Fio => false,
    };
    if !possible {
        return Some(Refusal::TraceEngine { engine, mode });
    }
    let processes = workload.job.client_kind == ClientKind::Processes;
    processes.then_some(Refusal::TraceByProcesses)
}

/// What a trial does, for the plan.
pub(crate) fn intention(trace: &Trace, plan: &Plan) -> Option<Intention> {
    let replay = plan.workload.replay.as_ref()?;
    let bytes = |op: TraceOp| {
        let of_op = trace.entries.iter().filter(|entry| entry.op == op);
        Bytes(of_op.map(|entry| entry.count.bytes().0).sum())
    };
    Some(Intention::Replay {
        file: replay.file.clone(),
        requests: trace.entries.len() as u64,
        read: bytes(TraceOp::Read),
        written: bytes(TraceOp::Write),
        reaches: trace.span.bytes(),
        length: trace.length(),
    })
}

/// The span that a trace needs, in whole MiB.
pub(crate) fn span(trace: &Trace) -> Bytes {
    Bytes(trace.span.bytes().0.max(1).next_multiple_of(1 << 20))
}
