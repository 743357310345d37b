//! Waiting for others who use a run file.
//!
//! SQLite's rollback journal lets many read and one write, and not both at once: a commit waits for those who read, and
//! who reads waits for a commit. Its write-ahead log would let both work, and needs memory that all of them
//! share, which a filesystem on the network does not give. So a run waits: a trial that took minutes is not thrown
//! away for somebody's query.

use rusqlite::Connection;
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::sleep,
    time::{Duration, Instant},
};

/// How often it is looked whether the others have done.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Waiting that is longer is told.
const UNTOLD: Duration = Duration::from_secs(1);
/// How long it is waited on when the user has interrupted: what is measured should be kept.
const AFTER_STOP: Duration = Duration::from_secs(2);

/// The program waits for others who use a run file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreWait {
    /// The file.
    pub path: PathBuf,
    /// For whom.
    pub waits_for: WaitsFor,
}

/// For whom it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// Those who read: something is to be written.
    Readers,
    /// Who writes: something is to be read.
    Writer,
}

/// Is told of waiting.
pub type WaitTeller = Box<dyn FnMut(&StoreWait) + Send>;

/// What ends the waiting before its time, and who is told of it: once for each time that it is long.
#[derive(Default)]
pub struct Waiting {
    /// Raised when the user interrupts.
    pub stop: Option<Arc<AtomicBool>>,
    /// Is told.
    pub tell: Option<WaitTeller>,
}

/// Makes a connection wait without limit.
pub(super) fn wait(
    connection: &mut Connection,
    path: &Path,
    waits_for: WaitsFor,
    waiting: Waiting,
) -> rusqlite::Result<()> {
    let Waiting { stop, mut tell } = waiting;
    let what = StoreWait { path: path.to_owned(), waits_for };
    let (mut begun, mut told) = (Instant::now(), false);
    connection.busy_handler(Some(move |times: i32| {
        if times == 0 {
            (begun, told) = (Instant::now(), false);
        }
        let waited = begun.elapsed();
        let stopped = stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if stopped && waited >= AFTER_STOP {
            return false;
        }
        if waited >= UNTOLD && !told {
            told = true;
            tell.iter_mut().for_each(|tell| tell(&what));
        }
        sleep(LOOK_EVERY);
        true
    }))
}
