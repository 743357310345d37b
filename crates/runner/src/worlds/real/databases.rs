//! Databases on the storage under test: their data loaded once and copied fresh for each trial, their
//! server started and ended with it.

mod alternation;
mod beside;
mod presets;
mod servers;
mod trial_server;

pub use beside::Beside;
pub use presets::{atomic_max, facts as preset_facts};
pub use servers::{Servers, facts, intentions, recorded, refuse};

use super::{RealTarget, counters::Sampling, stage::Stage};
use crate::{Watcher, WorldError};
use alternation::Alternation;
use database::{
    Claim, DatabaseError, Endpoint, Place, Programs, RunSpec, Running, ServerSampling, Shape,
    SqlError, copy_data, flush_data, warm_data,
};
use host::{Changes, HeldFolder, PageCacheBound, RequestOrder};
use plan::{Cell, Plan};
use record::{Measurement, TrialId, VoidReason, Warning};
use servers::kept_folder;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};
use trial_server::TrialServer;
use workload::{DatabaseJob, StorageEngine, Workload};

/// Loaded data, and the server of the trial under way.
pub struct Databases {
    /// Sockets, logs, configurations.
    run: HeldFolder,
    /// Loaded data by what is in them.
    kept: BTreeMap<String, HeldFolder>,
    /// Foreign databases by their URL.
    claims: BTreeMap<String, Claim>,
    trial: Option<TrialServer>,
    /// The trial's variables, as the server says.
    applied: Vec<(String, String)>,
    /// Servers started so far: each has a log of its own.
    started: u32,
    /// Where cells are to be switched inside one running server.
    alternation: Option<Alternation>,
}

impl Databases {
    /// Loads what the plan's cells need.
    pub fn prepare(
        target: &RealTarget,
        changes: &mut Changes,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Databases, WorldError> {
        // Whoever reaches the socket is the server's root, and the server may be ours: nobody else may enter it.
        let run = changes.scratch_folder(Path::new("/tmp")).map_err(WorldError::fatal)?.held;
        let mut databases = Databases {
            run,
            kept: BTreeMap::new(),
            claims: BTreeMap::new(),
            trial: None,
            applied: Vec::new(),
            started: 0,
            alternation: Alternation::of(plan),
        };
        let home = changes.scratch_folder(&kept_folder(target)).map_err(WorldError::fatal)?.held;
        for cell in &plan.cells {
            let (workload, _) = plan.workload_of(cell).map_err(WorldError::fatal)?;
            let Some(job) = workload.database.clone() else { continue };
            let loaded = match servers::programs(target, servers::program_of(plan), &job.server) {
                Ok(Some(programs)) => {
                    let key = key(&programs, &workload, &job)?;
                    if databases.kept.contains_key(&key) {
                        continue;
                    }
                    let name = format!("loaded-{}", databases.kept.len());
                    let place = databases.place(&home, &name)?;
                    let mut loading =
                        Loading { changes, plan, stop, watcher, job: &job, workload: &workload };
                    loading.private(&programs, &place).map(|data| {
                        databases.kept.insert(key, data);
                    })
                }
                Ok(None) => databases.foreign(target, plan, &job, stop, watcher),
                Err(error) => Err(error),
            };
            loaded.map_err(explain)?;
        }
        Ok(databases)
    }

    /// A folder for the next server's socket and log, and where its data go.
    fn place(&mut self, home: &HeldFolder, name: &str) -> Result<Place, WorldError> {
        self.started += 1;
        let run = self.run.create_folder(self.started.to_string()).map_err(WorldError::fatal)?;
        let (home, name) = (home.clone(), name.to_owned());
        Ok(Place { home, name, run: run.path().to_owned() })
    }

    fn foreign(
        &mut self,
        target: &RealTarget,
        plan: &Plan,
        job: &DatabaseJob,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<(), DatabaseError> {
        let url = job.server.to_string();
        let shape = Shape::of(job, StorageEngine::InnoDb);
        let claim = Claim::look(&url, target.use_existing)?;
        if !claim.theirs && !claim.holds(&shape, plan.seed)? {
            if self.claims.contains_key(&url) {
                return Err(DatabaseError::Usage(format!(
                    "{url} holds the data of one workload at a time: compare them one after the other"
                )));
            }
            claim.clear()?;
            claim.mark(None)?;
            let what = shape.key();
            let progress = &mut |done, of| watcher.loading(&what, done, of);
            database::load(&shape, &claim.endpoint, plan.seed, stop, progress)?;
            claim.mark(Some((&shape, plan.seed)))?;
        }
        self.claims.insert(url, claim);
        Ok(())
    }

    /// Makes a trial's server ready: one that runs already is switched, else one is started on a fresh
    /// copy of its data in the stage's folder.
    pub fn begin(
        &mut self,
        target: &RealTarget,
        changes: &mut Changes,
        (plan, cell): (&Plan, &Cell),
        home: &HeldFolder,
        bound: Option<&PageCacheBound>,
    ) -> Result<(), WorldError> {
        let (workload, _) = plan.workload_of(cell).map_err(WorldError::trial)?;
        if self.runs_on() {
            return self.switch(changes, &workload);
        }
        self.end(changes)?;
        let Some(job) = &workload.database else { return Ok(()) };
        let Some(programs) =
            servers::programs(target, servers::program_of(plan), &job.server).map_err(explain)?
        else {
            return self.begin_foreign(job);
        };
        let clients = match plan.alternate {
            true => alternation::clients_max(plan),
            false => workload.clients(),
        };
        let key = key(&programs, &workload, job)?;
        let nothing = || WorldError::fatal(format!("{key} was not loaded"));
        let kept = self.kept.get(&key).ok_or_else(nothing)?.clone();
        let place = self.place(home, "database")?;
        let mut start = || -> Result<Running, DatabaseError> {
            let (data, _) = copy_data(&kept, home, &place.name, programs.user())?;
            flush_data(&data)?;
            if job.warm {
                warm(&data, bound)?;
            }
            let settings = programs.settings(job, clients, &workload.variables);
            programs.start(changes, &place, &settings, &AtomicBool::new(false))
        };
        let running = match start() {
            Ok(started) => started,
            Err(error) => {
                // What was copied must not be in the next trial's way.
                let _ = home.remove_folder(&place.name);
                return Err(trial(error));
            }
        };
        let joined = match (bound, running.pid()) {
            (Some(bound), Some(pid)) => {
                with_children(pid).into_iter().try_for_each(|p| bound.join(p))
            }
            _ => Ok(()),
        };
        let set = programs.settings(job, clients, &workload.variables);
        let names: Vec<String> =
            set.iter().map(|(name, _)| name.clone()).chain(READ_BACK.map(str::to_owned)).collect();
        let asked = match &mut self.alternation {
            Some(alternation) => alternation.ask(plan, &workload, &programs, &running),
            None => Ok(()),
        };
        let changed = self.alternation.as_ref().is_some_and(Alternation::was_tried_in_vain);
        self.trial =
            Some(TrialServer { programs: Some(programs), running, place: Some(place), set, names });
        joined.map_err(WorldError::trial)?;
        asked.map_err(WorldError::trial)?;
        if changed {
            // What was tried may have left something changed.
            return self.begin(target, changes, (plan, cell), home, bound);
        }
        self.read_back()
    }

    /// Whether the server of the last trial goes on to the next.
    fn runs_on(&mut self) -> bool {
        let possible = self.alternation.as_ref().is_some_and(Alternation::is_possible);
        possible && self.trial.as_mut().is_some_and(|trial| trial.running.ended().is_none())
    }

    /// Makes the variables of the running server those of a cell.
    fn switch(&mut self, changes: &mut Changes, workload: &Workload) -> Result<(), WorldError> {
        let (Some(alternation), Some(trial)) = (&self.alternation, &self.trial) else {
            return Ok(());
        };
        match trial.running.switch(&alternation.wanted(workload)) {
            Ok(()) => self.read_back(),
            Err(error) => {
                self.end(changes)?;
                Err(WorldError::trial(error))
            }
        }
    }

    /// Notes what the trial's server says of its variables.
    fn read_back(&mut self) -> Result<(), WorldError> {
        let Some(trial) = &self.trial else { return Ok(()) };
        self.applied = trial.running.variables(&trial.names).map_err(WorldError::trial)?;
        self.applied.retain(|(name, _)| !name.ends_with("wsrep_on"));
        Ok(())
    }

    fn begin_foreign(&mut self, job: &DatabaseJob) -> Result<(), WorldError> {
        let nothing = || WorldError::fatal(format!("{} was not prepared", job.server));
        let claim = self.claims.get(&job.server.to_string()).ok_or_else(nothing)?;
        let running = Running::foreign(claim.endpoint.clone());
        let names: Vec<String> = READ_BACK.map(str::to_owned).into();
        self.applied = running.variables(&names).map_err(|error| match error {
            SqlError::Permanent(_) => WorldError::fatal(error),
            SqlError::Retry(_)
            | SqlError::Duplicate(_)
            | SqlError::Refused(_)
            | SqlError::Lost(_) => WorldError::trial(error),
        })?;
        let set = database::Settings::new();
        self.trial = Some(TrialServer { programs: None, running, place: None, set, names });
        Ok(())
    }

    /// What the trial's server says its variables are: of one that runs on from cell to cell, now.
    pub fn settings(&mut self) -> Result<&[(String, String)], WorldError> {
        if self.runs_on() {
            self.read_back()?;
        }
        Ok(&self.applied)
    }

    /// Runs the load on the trial's server; `begun` is called when it begins.
    pub fn measure(
        &mut self,
        (target, order): (&RealTarget, Option<&RequestOrder>),
        (plan, trial): (&Plan, TrialId),
        stage: Option<&Stage>,
        stop: &AtomicBool,
        begun: &mut dyn FnMut(),
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        let seed = trial.seed(plan.seed);
        let (workload, _) = plan.workload_of(&plan.cells[trial.cell]).map_err(WorldError::trial)?;
        let nothing = || WorldError::fatal("no server was started");
        let (Some(job), Some(trial)) = (&workload.database, &mut self.trial) else {
            return Err(nothing());
        };
        let mut sampler =
            Sampling::begin(&target.host, &stage.map(Stage::devices).unwrap_or_default(), order);
        let mut of_server = ServerSampling::begin(&trial.running);
        let endpoint: Endpoint = trial.running.endpoint.clone();
        let spec = RunSpec {
            job,
            endpoint: &endpoint,
            clients: workload.clients(),
            rate: workload.rate(),
            warmup: plan.timing.warmup,
            measure: plan.timing.measure.limit(),
            seed,
        };
        let measured = database::run(&spec, stop, begun, &mut |live| {
            sampler.sample(live.at);
            sampler.add(of_server.sample());
            watcher.live(live);
        });
        // A server whose folder was moved meanwhile may have written elsewhere: nothing of it counts.
        if let Some(place) = &trial.place {
            place.check().map_err(WorldError::fatal)?;
        }
        let mut measurement = match measured {
            Ok(measurement) => measurement,
            // Another level of a variable may do what this one does not.
            Err(DatabaseError::Permanent(told))
                if trial.programs.is_some() && !workload.variables.is_empty() =>
            {
                return Err(trial.why(DatabaseError::Void(told)));
            }
            Err(error) => return Err(trial.why(error)),
        };
        if stop.load(Ordering::Relaxed) && measurement.span < plan.timing.measure.limit() {
            return Err(WorldError::Interrupted);
        }
        trial.check(job, &mut measurement)?;
        measurement.counters = sampler.samples();
        measurement.warnings.extend(sampler.warnings());
        if let Some(stage) = stage {
            measurement.warnings.extend(stage.warnings.iter().cloned());
        }
        if trial.programs.is_none() {
            measurement.warnings.push(Warning::ForeignServer);
        }
        measurement.warnings.extend(trial.another_values(&workload, &self.applied));
        if let Some(alternation) = &mut self.alternation {
            measurement.warnings.extend(alternation.warning());
            alternation.measured();
        }
        Ok(measurement)
    }

    /// Ends the trial's server, unless the next trial goes on with it.
    pub fn end_unless_kept(&mut self, changes: &mut Changes) -> Result<(), WorldError> {
        match self.runs_on() {
            true => Ok(()),
            false => self.end(changes),
        }
    }

    /// Ends the trial's server and removes its data.
    pub fn end(&mut self, changes: &mut Changes) -> Result<(), WorldError> {
        let Some(trial) = self.trial.take() else { return Ok(()) };
        let TrialServer { programs, running, place, .. } = trial;
        if let Some((programs, place)) = programs.zip(place) {
            programs.end(changes, running, false).map_err(explain)?;
            place.home.remove_folder(&place.name).map_err(WorldError::fatal)?;
            let run = place.run.file_name().unwrap_or_default();
            self.run.remove_folder(run).map_err(WorldError::fatal)?;
        }
        Ok(())
    }

    /// Takes away what was made in foreign databases; all else is in the journal.
    pub fn leave(mut self, changes: &mut Changes) -> Result<(), WorldError> {
        self.end(changes)?;
        for claim in self.claims.values() {
            claim.clear().map_err(explain)?;
        }
        Ok(())
    }
}

/// Variables that are read back though nobody set them: figures rest on them.
const READ_BACK: [&str; 10] = [
    "innodb_flush_method",
    "innodb_page_size",
    "innodb_log_file_size",
    "innodb_io_capacity",
    "log_bin",
    "version",
    "wal_sync_method",
    "data_checksums",
    "wal_segment_size",
    "server_version",
];

/// Loads one private server's data.
struct Loading<'a> {
    changes: &'a mut Changes,
    plan: &'a Plan,
    stop: &'a AtomicBool,
    watcher: &'a mut dyn Watcher,
    job: &'a DatabaseJob,
    workload: &'a Workload,
}

impl Loading<'_> {
    /// Gives the folder of the data, held open.
    fn private(&mut self, programs: &Programs, place: &Place) -> Result<HeldFolder, DatabaseError> {
        let engine = programs.engine(&self.workload.variables)?;
        let shape = Shape::of(self.job, engine);
        let what = shape.key();
        self.watcher.loading(&what, 0, 0);
        let variables = &self.workload.variables;
        let installed = programs.install(self.changes, place, self.job, variables, self.stop);
        // A server whose folder was moved away says only that a file is not there.
        let running = installed.or_else(|error| place.check().and(Err(error)))?;
        let progress = &mut |done, of| self.watcher.loading(&what, done, of);
        let loaded = database::load(&shape, &running.endpoint, self.plan.seed, self.stop, progress);
        let loaded = loaded.map_err(|error| match running.trouble() {
            Some(words) if matches!(error, DatabaseError::Sql { .. }) => {
                DatabaseError::NotLoaded { cause: Box::new(error), words }
            }
            Some(_) | None => error,
        });
        let ended = programs.end(self.changes, running, loaded.is_ok());
        place.check()?;
        loaded?;
        ended?;
        let data = place.open_data()?;
        flush_data(&data).map(|()| data)
    }
}

/// Reads a trial's data within the bound of its page cache, which counts them for the group that reads them first.
fn warm(data: &HeldFolder, bound: Option<&PageCacheBound>) -> Result<(), DatabaseError> {
    let Some(bound) = bound else { return warm_data(data) };
    bound.join_ourselves()?;
    let read = warm_data(data);
    bound.leave()?;
    read
}

/// What loaded data are kept under.
fn key(programs: &Programs, workload: &Workload, job: &DatabaseJob) -> Result<String, WorldError> {
    let engine = programs.engine(&workload.variables).map_err(WorldError::usage)?;
    let made_with: Vec<String> = programs
        .made_with(&workload.variables)
        .into_iter()
        .map(|(name, value)| format!(", {name}={value}"))
        .collect();
    Ok(format!("{}: {}{}", programs.name(), Shape::of(job, engine).key(), made_with.concat()))
}

/// A process and its children.
fn with_children(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).chain([pid]).collect()
}

/// Trouble that ends the run.
fn explain(error: DatabaseError) -> WorldError {
    match error {
        error if error.is_usage() => WorldError::usage(error),
        DatabaseError::Stopped => WorldError::Interrupted,
        other => WorldError::fatal(other),
    }
}

/// A database trial that does not count.
fn void(problem: String) -> WorldError {
    WorldError::Void(VoidReason::Database { problem })
}

/// Trouble of one trial.
fn trial(error: DatabaseError) -> WorldError {
    match error {
        DatabaseError::Stopped => WorldError::Interrupted,
        DatabaseError::Void(why) => void(why),
        error if error.is_usage() => void(error.to_string()),
        error @ (DatabaseError::Permanent(_) | DatabaseError::Host(host::Error::Moved { .. })) => {
            WorldError::fatal(error)
        }
        other => WorldError::trial(other),
    }
}
