//! What a comparison runs in.

use plan::{Cell, Offer, Plan};
use record::{Environment, Measurement, Trial};
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};

/// What a comparison runs in: the real host, an emulated device under the real kernel, a simulation.
///
/// The order of calls: `offer` and `refuse` while planning, before anything is changed; then
/// `describe`, `prepare`; then for each trial `apply`, `settings`, `measure`, `settings`; in the end
/// `restore`, whatever happened.
pub trait World {
    /// What can be set and what is set now, for the plan to be made from.
    fn offer(&mut self) -> Result<Offer, WorldError>;

    /// Why a cell cannot be, in a sentence; nothing is changed to find out.
    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<String>;

    /// What will be changed or made, and put back or removed in the end, in words.
    fn intentions(&self, plan: &Plan) -> Vec<String>;

    /// Where the run is made.
    fn describe(&mut self, plan: &Plan) -> Result<Environment, WorldError>;

    /// Makes what all trials need: scratch file, loop device.
    fn prepare(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<(), WorldError>;

    /// Makes the settings those of a cell.
    fn apply(&mut self, plan: &Plan, cell: &Cell) -> Result<(), WorldError>;

    /// The settings that hold now, by the kernel's names, as the kernel shows them.
    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError>;

    /// Runs a cell's workload. `seed` is the trial's.
    fn measure(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        seed: u64,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError>;

    /// How many trials may run at once: one, wherever they would share hardware.
    fn at_once(&self) -> usize {
        1
    }

    /// Measures several trials, as many at once as [`at_once`](World::at_once) says, and hands each
    /// to `done` in their order with the settings that held. Asked only where that is more than one.
    fn measure_all(
        &mut self,
        _plan: &Plan,
        _trials: &[Wanted],
        _stop: &AtomicBool,
        _done: &mut dyn FnMut(usize, Measured) -> Goon,
    ) {
    }

    /// Puts everything back and removes what was made. May be called more than once.
    fn restore(&mut self) -> Result<(), WorldError>;
}

/// A trial that is to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The cell's place in the plan.
    pub cell: usize,
    /// The trial's seed.
    pub seed: u64,
}

/// What a trial gave, with the settings that held.
pub type Measured = Result<(Vec<(String, String)>, Measurement), WorldError>;

/// Whether to go on: `Break` when the caller has had enough.
pub type Goon = std::ops::ControlFlow<()>;

/// What can go wrong in a world.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// The user's words do not fit the target: nothing was changed.
    #[error("{0}")]
    Usage(String),
    /// One trial could not be measured; others may be.
    #[error("{0}")]
    Trial(String),
    /// One trial was measured and must not count.
    #[error("{0}")]
    Void(String),
    /// Nothing more can be measured.
    #[error("{0}")]
    Fatal(String),
    /// The user said stop.
    #[error("interrupted")]
    Interrupted,
}

/// Who watches a run: a progress bar, a test.
pub trait Watcher {
    /// A scratch file is being laid out.
    fn laying_out(&mut self, done: Bytes, of: Bytes);
    /// A database's data are being loaded: rows done, of how many; of none while its server is made.
    fn loading(&mut self, _what: &str, _done: u64, _of: u64) {}
    /// A trial begins: the round and the trial in it (both from 0), how many the round has, the
    /// cell.
    fn trial_begins(&mut self, plan: &Plan, round: u32, place: usize, of: usize, cell: usize);
    /// A second of it has passed.
    fn live(&mut self, live: &Live);
    /// It has ended and is recorded.
    fn trial_ended(&mut self, trial: &Trial);
    /// Something that the user should know now, in a sentence.
    fn note(&mut self, text: &str);
}

/// A trial's last second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// What it is doing.
    pub phase: Phase,
    /// Since this phase began.
    pub since: Nanos,
    /// Operations completed in the last second.
    pub operations_per_second: f64,
    /// Bytes moved in it.
    pub bytes_per_second: f64,
    /// 99th percentile of its latencies; zero when nothing completed.
    pub p99: Nanos,
}

/// What a trial is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing counts yet.
    WarmUp,
    /// It counts.
    Measuring,
}
