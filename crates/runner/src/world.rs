//! What a comparison runs in.

use crate::WorldError;
use plan::{Cell, Intention, Offer, Plan, PresetFacts, RawPlan, Refusal, Timing};
use record::{Caveat, Environment, Event, Measurement, Mover, Trial, TrialId, WorldKind};
use std::{ops::ControlFlow, sync::atomic::AtomicBool};
use units::{Bytes, Nanos};
use workload::{Live, Preset};

/// What a comparison runs in: the real host, an emulated device under the real kernel, a simulation.
///
/// A world only looks. What changes anything is the [`Session`] that [`prepare`](World::prepare) makes.
pub trait World {
    /// Which world.
    fn kind(&self) -> WorldKind;

    /// What can be set and what is set now, for the plan to be made from.
    fn offer(&self) -> Result<Offer, WorldError>;

    /// What a preset stands for on the server of a plan's workload.
    fn preset(&self, _raw: &RawPlan, preset: Preset) -> Result<PresetFacts, WorldError> {
        Err(WorldError::usage(NoServers { preset, world: self.kind() }))
    }

    /// Why a cell is not possible; nothing is changed to find out.
    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<Refusal>;

    /// What will be changed or made, and put back or removed in the end.
    fn intentions(&self, plan: &Plan) -> Vec<Intention>;

    /// What a reader of the plan must know of the target; a run's environment has it, too.
    fn caveats(&self) -> Vec<Caveat> {
        Vec::new()
    }

    /// Where the run is made.
    fn describe(&self, plan: &Plan) -> Result<Environment, WorldError>;

    /// Makes what all trials of a plan need: scratch files, devices, loaded databases. If this fails,
    /// what was made is taken away again.
    fn prepare<'a>(
        &'a self,
        plan: &'a Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Box<dyn Session + 'a>, WorldError>;
}

/// A preset in a world without servers.
#[derive(Debug, thiserror::Error)]
#[error(
    "preset {preset} asks a database server what it can do, and the {world} world has a model of one: \
     name the variables that the model has (--variable innodb_io_capacity=200,2000)"
)]
struct NoServers {
    preset: Preset,
    world: WorldKind,
}

/// How long a trial takes, and how closely it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialTimes {
    /// Time before measuring.
    pub warmup: Nanos,
    /// Time measured.
    pub measure: Nanos,
    /// How often what was done is noted.
    pub tick: Nanos,
}

impl TrialTimes {
    /// Of the trials of a comparison.
    pub fn of(timing: &Timing) -> TrialTimes {
        let tick = Nanos::from_secs(1);
        TrialTimes { warmup: timing.warmup, measure: timing.measure.limit(), tick }
    }
}

/// A world that is ready for the trials of one plan. It owns everything that was made or changed.
///
/// For each trial: `apply`, `settings`, `measure`, `settings`. [`finish`](Session::finish) puts
/// everything back and reports what could not be; dropping a session does the same without a report.
pub trait Session {
    /// Makes the settings those of a cell.
    fn apply(&mut self, cell: &Cell) -> Result<(), WorldError>;

    /// The settings in force now, by the kernel's names, as the kernel shows them.
    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError>;

    /// Who has given a setting another value since the last `apply`; none where it is no setting of the
    /// host's.
    fn who_moved(&mut self, _setting: &str) -> Option<Mover> {
        None
    }

    /// What trials take from now on, in place of the plan's timing. Only sessions of worlds that measure
    /// jobs in wall time are asked to.
    fn set_times(&mut self, _times: TrialTimes) {}

    /// Runs the workload of a trial's cell.
    fn measure(
        &mut self,
        trial: TrialId,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError>;

    /// How many trials may run at once: one, wherever they would share hardware.
    fn concurrency(&self) -> usize {
        1
    }

    /// Measures several trials, as many at once as [`concurrency`](Session::concurrency) says, and hands
    /// each to `done` in their order. Called only where that is more than one.
    fn measure_all(
        &mut self,
        _trials: &[TrialId],
        _stop: &AtomicBool,
        _done: &mut dyn FnMut(usize, Measured) -> ControlFlow<()>,
    ) {
    }

    /// Puts everything back and removes what was made.
    fn finish(self: Box<Self>) -> Result<(), WorldError>;
}

/// What a trial gave, with the settings in force.
pub type Measured = Result<(Vec<(String, String)>, Measurement), WorldError>;

/// Who watches a run: a progress bar, a test.
pub trait Watcher {
    /// A scratch file is being laid out.
    fn laying_out(&mut self, _done: Bytes, _of: Bytes) {}
    /// A database's data are being loaded: rows done, of how many; of none while its server is made.
    fn loading(&mut self, _what: &str, _done: u64, _of: u64) {}
    /// A trial begins.
    fn trial_begins(&mut self, _plan: &Plan, _trial: TrialId) {}
    /// A second of it has passed.
    fn live(&mut self, _live: &Live) {}
    /// It has ended and is recorded.
    fn trial_ended(&mut self, _trial: &Trial) {}
    /// The pilot visits a cell: so many seconds of so many are over.
    fn piloting(&mut self, _seconds: f64, _of: f64) {}
    /// Something happened to the run as a whole.
    fn event(&mut self, _plan: &Plan, _event: &Event) {}
}

/// Watches nothing.
pub(crate) struct Unwatched;

impl Watcher for Unwatched {}
