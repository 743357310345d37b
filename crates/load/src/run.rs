//! One trial's load from start to end: start the clients, release them, watch them second by second,
//! and make a measurement of what they counted.

use crate::clock::{Clock, Monotonic};
use crate::error::LoadError;
use crate::fio;
use crate::handles::{ClientHandles, HUNG_AFTER};
use crate::result;
use crate::spec::LoadSpec;
use crate::watch::Watch;
use record::Measurement;
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};
use units::Nanos;
use workload::{EngineKind, Live, TrialClock};

/// The background job begins this much before the measured one.
const BACKGROUND_LEAD: Nanos = Nanos::from_millis(20);
/// How long a device may complete nothing after somebody asked to stop, before it is given up.
const HUNG_AFTER_STOP: Nanos = Nanos::from_secs(10);

/// Runs the load and measures it. `each_second` is called once a second, from the warm-up's first to
/// the last of the measured span, on the caller's thread: there the caller takes its samples of the
/// host. When `stop` becomes true the trial ends early, with a measurement of the shorter span whose
/// warnings say so, or with [`LoadError::Stopped`] if nothing was measured yet.
///
/// It never creates, truncates or extends the target, and never writes outside `[0, size)` of it.
/// It may raise this process's soft limit of open files.
pub fn run(
    spec: &LoadSpec,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Live),
) -> Result<Measurement, LoadError> {
    spec.check()?;
    if spec.engine == EngineKind::Fio {
        return fio::run(spec, stop, each_second);
    }
    raise_open_files_limit(spec);
    let mut handles = start_all(spec, stop)?;
    let _priority = ObserverPriority::above_clients();
    let times = release(spec, &handles);
    let mut watch = Watch::new(times, spec.tick);
    let watched = watch.until_end(&mut handles, stop, each_second);
    match watched {
        // It has been waited for long enough.
        Err(LoadError::Hung { .. }) => handles.iter_mut().for_each(ClientHandles::abandon),
        _ => wait_for_all(&mut handles, &spec.target.path, stop)?,
    }
    watched?;
    if let Some(failure) = handles.iter_mut().find_map(ClientHandles::failure) {
        return Err(failure);
    }
    watch.last_second(&handles, each_second);
    result::measurement(spec, &handles, watch)
}

/// Starts all clients of all jobs and waits until they are ready.
fn start_all(spec: &LoadSpec, stop: &AtomicBool) -> Result<Vec<ClientHandles>, LoadError> {
    let mut handles: Vec<ClientHandles> = Vec::new();
    let mut problem = None;
    for (role, job) in spec.jobs() {
        match ClientHandles::start(spec, role, job) {
            Ok(clients) => handles.push(clients),
            Err(error) => {
                problem = Some(error);
                break;
            }
        }
    }
    while problem.is_none() && !handles.iter().all(ClientHandles::ready) {
        std::thread::sleep(Nanos::from_millis(1).as_duration());
        problem = match stop.load(Relaxed) {
            true => Some(LoadError::Stopped),
            false => handles.iter_mut().find_map(ClientHandles::failure),
        };
    }
    match problem.or_else(|| handles.iter_mut().find_map(ClientHandles::failure)) {
        None => Ok(handles),
        Some(error) => {
            handles.iter_mut().for_each(ClientHandles::cancel);
            Err(error)
        }
    }
}

/// Sets the times and opens the gates, the background's first.
fn release(spec: &LoadSpec, handles: &[ClientHandles]) -> TrialClock {
    let begin = Monotonic.now() + Nanos::from_millis(1);
    let start = if handles.len() > 1 { begin + BACKGROUND_LEAD } else { begin };
    let times = TrialClock::new(start, spec.warmup, spec.measure);
    for clients in handles.iter().skip(1) {
        clients.board.control().go(TrialClock { start: begin, ..times });
    }
    handles[0].board.control().go(times);
    times
}

/// Waits for clients to end. As long as operations complete it waits, however deep the queue.
fn wait_for_all(
    handles: &mut [ClientHandles],
    path: &Path,
    stop: &AtomicBool,
) -> Result<(), LoadError> {
    let (mut since, mut drained) = (Monotonic.now(), 0);
    while !handles.iter().all(ClientHandles::all_done) {
        std::thread::sleep(Nanos::from_micros(500).as_duration());
        // Notices processes that died, and marks them as done.
        let _ = handles.iter_mut().find_map(ClientHandles::failure);
        let now: u64 = handles.iter().map(ClientHandles::drained).sum();
        if now != drained {
            (since, drained) = (Monotonic.now(), now);
        }
        let limit = if stop.load(Relaxed) { HUNG_AFTER_STOP } else { HUNG_AFTER };
        let waited = Monotonic.now() - since;
        if waited > limit {
            handles.iter_mut().for_each(ClientHandles::abandon);
            return Err(LoadError::Hung { path: path.to_owned(), waited });
        }
    }
    handles.iter_mut().for_each(ClientHandles::join);
    Ok(())
}

/// The calling thread runs before the clients for as long as this lives, where that is permitted:
/// thousands of runnable clients would otherwise delay its looks at the clock by seconds.
struct ObserverPriority(Option<i32>);

impl ObserverPriority {
    const NICE: i32 = -15;

    fn above_clients() -> Self {
        // SAFETY: integers only; 0 is the calling thread.
        let before = unsafe {
            *libc::__errno_location() = 0;
            libc::getpriority(libc::PRIO_PROCESS, 0)
        };
        // SAFETY: as above.
        let moved =
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, ObserverPriority::NICE) } == 0;
        ObserverPriority(moved.then_some(before))
    }
}

impl Drop for ObserverPriority {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            // SAFETY: as above; what is nicer than now is always permitted.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, before) };
        }
    }
}

/// Each thread needs a ring and an open file; the default soft limit of 1024 is for select(2)'s sake.
fn raise_open_files_limit(spec: &LoadSpec) {
    let clients: u64 = spec.jobs().map(|(_, job)| u64::from(job.clients)).sum();
    let needed = clients * 2 + 64;
    // SAFETY: reads and writes one rlimit.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let known = libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0;
        if known && limit.rlim_cur < needed {
            limit.rlim_cur = needed.min(limit.rlim_max);
            // Where it is not allowed, opening will say so.
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
