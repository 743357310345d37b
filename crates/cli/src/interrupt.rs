//! Signals: all of them ask for a clean end, and only an impatient Ctrl-C cuts that short.
//!
//! A closed terminal sends SIGHUP twice, once from the shell and once from the kernel, and
//! `timeout` sends its signal to the program and then to its whole group. What was changed must be
//! put back all the same.

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// A second Ctrl-C this long after the first is one of somebody who does not want to wait.
const IMPATIENT_AFTER: Duration = Duration::from_secs(1);

/// Every signal that others send and that would end the program.
const ASKING: [Signal; 8] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGXCPU,
];

/// A flag that signals raise, however many of them and however often. A second Ctrl-C, a second or
/// more after the first, ends the program with code 130 and leaves the journal for `spindle undo`.
///
/// To be called before the first thread is made. Signals are held back from this thread and those
/// that it makes, and a thread of its own waits for them: so none interrupts a system call, and
/// none that is sent while the program waits for a disk is taken for a later one.
pub fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    let mut asking: SigSet = ASKING.into_iter().collect();
    if hangup_is_ignored() {
        // nohup(1).
        asking.remove(Signal::SIGHUP);
    }
    let mut held = asking;
    // A file that may not grow (`ulimit -f`) is an error of the write then, and no end.
    held.add(Signal::SIGXFSZ);
    held.thread_block().context("cannot hold signals back")?;
    let flag = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&flag);
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || attend(asking, &raised))
        .context("cannot start the thread that waits for signals")?;
    Ok(flag)
}

/// For what is short, and ends of itself once all is put back: no signal but an impatient Ctrl-C
/// ends it before.
pub fn hold() -> anyhow::Result<()> {
    flag().map(drop)
}

/// Writes nothing: a terminal that is held (Ctrl-S) would hold this thread, too.
fn attend(asking: SigSet, flag: &AtomicBool) {
    let mut first: Option<Instant> = None;
    loop {
        let Ok(signal) = asking.wait() else { continue };
        flag.store(true, Ordering::Relaxed);
        if signal != Signal::SIGINT {
            continue;
        }
        if first.is_some_and(|first| first.elapsed() >= IMPATIENT_AFTER) {
            #[allow(clippy::exit, reason = "somebody said so")]
            std::process::exit(130);
        }
        first.get_or_insert_with(Instant::now);
    }
}

/// Whether we were started with SIGHUP ignored, as by nohup(1), which one that is held back would
/// not be.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (Signal::SIGHUP as u32 - 1)) != 0
}
