//! Runs plans, again where the host was too busy, and keeps their run files.

use crate::{Settings, Step, ValidateError};
use plan::{Plan, RawPlan};
use record::{Run, RunState, Store, Waiting};
use runner::{Ending, Options, Target, Watcher, run_rounds};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A host that was too busy to keep a model's time is tried again, so many times in all.
pub const TRIES: u32 = 3;

/// Before it is tried again.
pub const PAUSE: Duration = Duration::from_secs(30);

/// Who watches a validation.
pub trait Observer {
    /// A run begins; what is returned watches it, and is dropped when it ends.
    fn begins(&mut self, step: &Step, plan: &Plan) -> Box<dyn Watcher>;
    /// The host was too busy for it; it is tried again after a pause.
    fn busy(&mut self, _step: &Step, _pause: Duration) {}
}

/// What all runs of a validation have in common.
pub(crate) struct Session<'a> {
    pub settings: &'a Settings,
    folder: PathBuf,
    stop: &'a Arc<AtomicBool>,
    observer: &'a mut dyn Observer,
}

/// A folder for run files that are not kept, on a disk.
pub(crate) fn scratch() -> Result<tempfile::TempDir, ValidateError> {
    let on_disk = Path::new("/var/tmp");
    let parent = if on_disk.is_dir() { on_disk.to_owned() } else { std::env::temp_dir() };
    let made = tempfile::Builder::new().prefix("spindle-validate-").tempdir_in(&parent);
    made.map_err(|cause| ValidateError::write(parent, cause))
}

impl<'a> Session<'a> {
    pub fn new(
        settings: &'a Settings,
        folder: PathBuf,
        stop: &'a Arc<AtomicBool>,
        observer: &'a mut dyn Observer,
    ) -> Result<Session<'a>, ValidateError> {
        std::fs::create_dir_all(&folder).map_err(|cause| ValidateError::write(&folder, cause))?;
        // The profiles in it are named in targets of runs.
        let folder = folder.canonicalize().map_err(|cause| ValidateError::write(&folder, cause))?;
        Ok(Session { settings, folder, stop, observer })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A run of that name which was kept and is complete, if its plan is the one wanted.
    pub fn kept(&self, name: &str, wanted: impl Fn(&Plan) -> bool) -> Option<Run> {
        let run = Store::open(&self.path(name)).and_then(|store| store.read()).ok()?;
        (run.state == RunState::Done && wanted(&run.plan)).then_some(run)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.spindle"))
    }

    /// Runs a plan and keeps it under this name, or reads it where it is kept. Where the host is too busy
    /// it is tried again; with `every_cell` also where a cell has no valid trial.
    pub fn run(
        &mut self,
        step: &Step,
        name: &str,
        raw: &RawPlan,
        every_cell: bool,
    ) -> Result<Run, ValidateError> {
        for left in (0..TRIES).rev() {
            match self.run_once(step, name, raw) {
                Err(error) if error.is_of_a_busy_host() => {}
                Ok(run) if every_cell && !every_cell_measured(&run) => {}
                other => return other,
            }
            self.remove(name)?;
            if left > 0 {
                self.observer.busy(step, PAUSE);
                self.pause()?;
            }
        }
        Err(ValidateError::TooBusy { step: step.clone(), tries: TRIES })
    }

    /// Runs a plan, or reads its run where that is kept.
    pub fn run_once(
        &mut self,
        step: &Step,
        name: &str,
        raw: &RawPlan,
    ) -> Result<Run, ValidateError> {
        let target = Target::parse(raw.target.as_deref().unwrap_or_default())?;
        let world = target.open(&Options::of(raw))?;
        let plan = raw.resolve(&world.offer()?, &|plan, cell| world.refuse(plan, cell))?;
        if let Some(run) = self.kept(name, |kept| *kept == plan) {
            return Ok(run);
        }
        self.remove(name)?;
        let environment = world.describe(&plan)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_at = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let mut store = Store::create(&self.path(name), name, started_at, &environment, &plan)?;
        store.set_waiting(Waiting { stop: Some(Arc::clone(self.stop)), tell: None })?;
        let mut run = store.read()?;
        let mut watcher = self.observer.begins(step, &plan);
        let ending = run_rounds(world.as_ref(), &mut run, &mut store, self.stop, watcher.as_mut());
        drop(watcher);
        match ending? {
            Ending::Interrupted => Err(ValidateError::Interrupted),
            Ending::Complete | Ending::Settled => Ok(store.read()?),
        }
    }

    /// Removes the run of that name, if there is one.
    pub fn remove(&self, name: &str) -> Result<(), ValidateError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ValidateError::write(path, error))
            }
            _ => Ok(()),
        }
    }

    /// Waits for [`PAUSE`], or until the user interrupts.
    fn pause(&self) -> Result<(), ValidateError> {
        let begun = Instant::now();
        while begun.elapsed() < PAUSE {
            if self.stop.load(Ordering::Relaxed) {
                return Err(ValidateError::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

fn every_cell_measured(run: &Run) -> bool {
    let measured = |cell| {
        run.trials.iter().any(|trial| trial.id.cell == cell && trial.measurement().is_some())
    };
    (0..run.plan.cells.len()).all(measured)
}
