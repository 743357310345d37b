//! A process by its id and the moment at which it began: an id alone may be another's by now.

use crate::{Host, Outcome};
use std::{
    thread::sleep,
    time::{Duration, Instant},
};

/// How long something busy is waited for: a process that was killed needs a moment to let go.
const PATIENCE: Duration = Duration::from_secs(3);

/// When a process began, in clock ticks since boot (field 22 of proc_pid_stat(5)).
pub(crate) fn process_start(host: &Host, pid: u32) -> Option<u64> {
    let line = host.text(format!("/proc/{pid}/stat"))?;
    // The second field is the name in parentheses, which may hold anything.
    let (_, rest) = line.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

/// Whether there is such a process and it has not ended.
pub(crate) fn process_lives(host: &Host, pid: u32) -> bool {
    process_start(host, pid).is_some() && !is_zombie(host, pid)
}

/// Whether the process that began at a moment still runs.
pub(crate) fn process_runs(host: &Host, pid: u32, started_ticks: u64) -> bool {
    process_start(host, pid) == Some(started_ticks) && !is_zombie(host, pid)
}

/// Ends a process: asks first.
pub(crate) fn end_process(host: &Host, pid: u32, started_ticks: u64) -> Outcome {
    use rustix::process::{Pid, Signal, kill_process};
    let alive = || process_runs(host, pid, started_ticks);
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw).filter(|_| alive()) else {
        return Outcome::AlreadyRight;
    };
    for signal in [Signal::TERM, Signal::KILL] {
        if let Err(error) = kill_process(id, signal)
            && error != rustix::io::Errno::SRCH
        {
            return Outcome::failed(format!("cannot end it: {error}"));
        }
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if !alive() {
                return Outcome::Done;
            }
            sleep(Duration::from_millis(10));
        }
    }
    Outcome::failed("it does not end")
}

/// Whether a process has ended and waits for its parent.
pub(crate) fn is_zombie(host: &Host, pid: u32) -> bool {
    host.text(format!("/proc/{pid}/stat"))
        .and_then(|line| line.rsplit_once(") ").map(|(_, rest)| rest.starts_with('Z')))
        .unwrap_or(false)
}
