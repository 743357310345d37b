//! A private server's life: installed, started, awaited, ended.

use crate::{
    Catalog, DatabaseError, Place, Running, Settings, Sizes, VariableError, log,
    server::{Purpose, ServerKind, Stop},
    servers::{self, Search},
};
use host::{Changes, Host, User};
use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    path::Path,
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};
use workload::{DatabaseJob, PrivateServer, StorageEngine, WordError};

/// The programs of a server that is started for a comparison.
pub struct Programs {
    kind: PrivateServer,
    server: Box<dyn ServerKind>,
}

/// How long a server may take to answer: it has nothing to recover, but a slow disk to read from.
const START_PATIENCE: Duration = Duration::from_secs(120);

/// Connections for loading.
const LOADING_CLIENTS: u32 = 16;

impl Programs {
    /// Finds the programs of a kind of server on this host, or of the server program that the user
    /// named, and reads their version.
    pub fn find(
        host: &Host,
        kind: PrivateServer,
        program: Option<&Path>,
    ) -> Result<Programs, DatabaseError> {
        let server = servers::find(kind, &Search { host, program })?;
        Ok(Programs { kind, server })
    }

    /// `mariadb`, `mysql`, `postgresql`: what its counters and settings begin with.
    pub fn name(&self) -> &'static str {
        self.kind.spec().name
    }

    /// Its name and version, for people.
    pub fn title(&self) -> &str {
        self.server.title()
    }

    /// The server's program.
    pub fn program(&self) -> &Path {
        self.server.program()
    }

    /// The variables that it has.
    pub fn catalog(&self) -> Result<Catalog, DatabaseError> {
        self.server.catalog()
    }

    /// Whether the server would take a value, where it can be asked without data.
    pub fn check_value(&self, name: &str, value: &str) -> Result<(), VariableError> {
        self.server.check_value(name, value)
    }

    /// What it needs beside a workload's rows.
    pub fn sizes(&self) -> Sizes {
        self.server.sizes()
    }

    /// Variables that the data are made with: other levels of them need other data.
    pub fn made_with(&self, variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let names = self.server.made_with();
        variables
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The storage engine of tables, where the job names none.
    pub fn engine(&self, variables: &BTreeMap<String, String>) -> Result<StorageEngine, WordError> {
        match variables.get("default_storage_engine") {
            Some(word) => word.parse(),
            None => Ok(StorageEngine::InnoDb),
        }
    }

    /// Whom it runs as, where that is somebody else than this process.
    pub fn user(&self) -> Option<&User> {
        self.server.user()
    }

    /// The variables of a trial's server: Spindle's, and over them the user's.
    pub fn settings(
        &self,
        job: &DatabaseJob,
        clients: u32,
        variables: &BTreeMap<String, String>,
    ) -> Settings {
        self.settings_for(Purpose::Trial, job, clients, variables)
    }

    fn settings_for(
        &self,
        purpose: Purpose,
        job: &DatabaseJob,
        clients: u32,
        variables: &BTreeMap<String, String>,
    ) -> Settings {
        // Words that name no engine were refused when the plan was made.
        let engine = job.engine.or_else(|| self.engine(variables).ok()).unwrap_or_default();
        let mut settings = self.server.settings(purpose, job, clients, engine);
        let made_with = self.server.made_with();
        for (name, value) in variables {
            if !(self.server.set_when_made_only() && made_with.contains(&name.as_str())) {
                settings.retain(|(other, _)| other != name);
                settings.push((name.clone(), value.clone()));
            }
        }
        settings
    }

    /// Makes an empty server in `place` and starts it for loading.
    pub fn install(
        &self,
        changes: &mut Changes,
        place: &Place,
        job: &DatabaseJob,
        variables: &BTreeMap<String, String>,
        stop: &AtomicBool,
    ) -> Result<Running, DatabaseError> {
        place.check()?;
        let made_with = self.made_with(variables);
        let doing = || format!("make a data directory in {}", place.data().display());
        let command =
            self.server.initialise(place, &made_with).map_err(DatabaseError::io(doing()))?;
        // A log of its own: initdb's advice is no sign of trouble.
        let log = place.run.join("installation");
        let command = logged(command, &log)?;
        let at_death = self.server.stop(Stop::AtOnce).signal;
        let process =
            changes.start_process(command, "preparing a database", self.user(), at_death)?;
        let ended = changes.await_process(process)?;
        if !ended.success() {
            return Err(DatabaseError::NotInitialised {
                server: self.title().to_owned(),
                words: log::complaint(&log),
            });
        }
        let settings = self.settings_for(Purpose::Loading, job, LOADING_CLIENTS, &made_with);
        let running = self.start(changes, place, &settings, stop)?;
        if let Err(error) = running.create_database() {
            self.end(changes, running, false)?;
            return Err(error);
        }
        Ok(running)
    }

    /// Starts it on data that are there, and waits until it answers.
    pub fn start(
        &self,
        changes: &mut Changes,
        place: &Place,
        settings: &Settings,
        stop: &AtomicBool,
    ) -> Result<Running, DatabaseError> {
        place.check()?;
        let doing = || format!("write the server's configuration for {}", place.data().display());
        let command = self.server.start(place, settings).map_err(DatabaseError::io(doing()))?;
        let command = logged(command, &place.log())?;
        let at_death = self.server.stop(Stop::AtOnce).signal;
        let process = changes.start_process(command, self.title(), self.user(), at_death)?;
        let log = log::Log::of(place.log(), self.server.signs_of_trouble(), self.server.harmless());
        let endpoint = self.server.endpoint(place);
        let mut running = Running::private(process, endpoint, log, self.name());
        let answers = self.await_answer(&mut running, stop);
        match answers.and_then(|()| running.pid().map_or(Ok(()), |pid| place.check_server(pid))) {
            Ok(()) => Ok(running),
            Err(error) => {
                self.end(changes, running, false)?;
                Err(error)
            }
        }
    }

    fn await_answer(&self, running: &mut Running, stop: &AtomicBool) -> Result<(), DatabaseError> {
        let begun = Instant::now();
        loop {
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(DatabaseError::Stopped);
            }
            if let Some(how) = running.ended() {
                return Err(DatabaseError::NotStarted {
                    server: self.title().to_owned(),
                    how,
                    words: running.words(),
                });
            }
            match running.answers() {
                Ok(()) => return Ok(()),
                Err(cause) if begun.elapsed() > START_PATIENCE => {
                    return Err(DatabaseError::NoAnswer {
                        server: self.title().to_owned(),
                        waited: START_PATIENCE.into(),
                        words: running.words(),
                        cause,
                    });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// Ends it: cleanly, so that its data can be kept, or at once.
    pub fn end(
        &self,
        changes: &mut Changes,
        running: Running,
        clean: bool,
    ) -> Result<(), DatabaseError> {
        let how = if clean { Stop::Clean } else { Stop::AtOnce };
        let stop = self.server.stop(how);
        let log = running.log().cloned();
        if let Some(process) = running.into_process() {
            changes.end_process(process, stop.signal, stop.patience)?;
        }
        match log.and_then(|log| log.trouble()).filter(|_| clean) {
            Some(words) => {
                Err(DatabaseError::TroubleInLog { server: self.title().to_owned(), words })
            }
            None => Ok(()),
        }
    }
}

/// With all that it prints in its log.
fn logged(mut command: Command, path: &Path) -> Result<Command, DatabaseError> {
    let open = || {
        let out = OpenOptions::new().create(true).append(true).open(path)?;
        Ok((out.try_clone()?, out))
    };
    let (out, err) =
        open().map_err(DatabaseError::io(format!("open the server's log {}", path.display())))?;
    command.stdin(std::process::Stdio::null()).stdout(out).stderr(err).current_dir("/");
    Ok(command)
}
