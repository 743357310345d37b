//! Private servers: their programs, where they live, what they are told.

use crate::{
    Catalog, DatabaseError, Endpoint, Running,
    servers::{mariadb::MariaDb, postgresql::PostgreSql},
};
use host::{Changes, Host, User};
use std::{
    collections::BTreeMap,
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};
use units::Bytes;
use workload::{DatabaseJob, Server, StorageEngine};

/// What a server is told, by its own names, in the order in which it is told.
pub type Settings = Vec<(String, String)>;

/// Where a private server lives.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its data.
    pub data: PathBuf,
    /// Its socket, log and configuration: short, because a socket's path is at most 107 bytes.
    pub run: PathBuf,
}

impl Place {
    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.run.join("log")
    }
}

/// The programs of a server that is started for a comparison.
pub enum Programs {
    /// MariaDB's.
    MariaDb(MariaDb),
    /// PostgreSQL's.
    PostgreSql(PostgreSql),
}

/// What a server is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Loading: nothing need be durable before the end.
    Loading,
    /// A trial.
    Trial,
}

/// How long a server may take to answer: it has nothing to recover, but a slow disk to read from.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long a clean end may take: dirty pages are written back.
const CLEAN_END: Duration = Duration::from_secs(600);

impl Programs {
    /// Those of a private server on this host; none for a server that runs already.
    pub fn find(host: &Host, server: &Server) -> Result<Option<Programs>, DatabaseError> {
        match server {
            Server::MariaDb => MariaDb::find().map(Programs::MariaDb).map(Some),
            Server::PostgreSql => PostgreSql::find(host).map(Programs::PostgreSql).map(Some),
            Server::Url(_) => Ok(None),
        }
    }

    /// `mariadb`, `postgresql`: what its counters and settings begin with.
    pub fn name(&self) -> &'static str {
        match self {
            Programs::MariaDb(_) => "mariadb",
            Programs::PostgreSql(_) => "postgresql",
        }
    }

    /// With its version, for people.
    pub fn title(&self) -> &str {
        match self {
            Programs::MariaDb(programs) => &programs.title,
            Programs::PostgreSql(programs) => &programs.title,
        }
    }

    /// The variables that it has.
    pub fn catalog(&self) -> Result<Catalog, DatabaseError> {
        match self {
            Programs::MariaDb(programs) => programs.catalog(),
            Programs::PostgreSql(programs) => programs.catalog(),
        }
    }

    /// Why the server would not take a value, where it can be asked without data.
    pub fn refuse_value(&self, name: &str, value: &str) -> Option<String> {
        match self {
            Programs::MariaDb(programs) => programs.refuse_value(name, value),
            Programs::PostgreSql(programs) => programs.refuse_value(name, value),
        }
    }

    /// Variables that the data are made with: other levels of them need other data.
    pub fn shaping(&self, variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let shaping = match self {
            Programs::MariaDb(_) => crate::servers::mariadb::SHAPING,
            Programs::PostgreSql(_) => crate::servers::postgresql::SHAPING,
        };
        variables
            .iter()
            .filter(|(name, _)| shaping.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The storage engine of tables, where the job names none.
    pub fn engine(&self, variables: &BTreeMap<String, String>) -> Result<StorageEngine, String> {
        match variables.get("default_storage_engine") {
            Some(word) => word.parse().map_err(|error: workload::WordError| error.to_string()),
            None => Ok(StorageEngine::InnoDb),
        }
    }

    /// Whom it runs as, where that is somebody else than we.
    pub fn user(&self) -> Option<&User> {
        match self {
            Programs::MariaDb(_) => None,
            Programs::PostgreSql(programs) => programs.user.as_ref(),
        }
    }

    /// What a trial's server is told.
    pub fn settings(
        &self,
        job: &DatabaseJob,
        clients: u32,
        variables: &BTreeMap<String, String>,
    ) -> Settings {
        self.told(Purpose::Trial, job, clients, variables)
    }

    fn told(
        &self,
        purpose: Purpose,
        job: &DatabaseJob,
        clients: u32,
        variables: &BTreeMap<String, String>,
    ) -> Settings {
        let mut settings = match self {
            Programs::MariaDb(_) => {
                crate::servers::mariadb::settings(purpose, job, clients, variables)
            }
            Programs::PostgreSql(_) => crate::servers::postgresql::settings(purpose, job, clients),
        };
        for (name, value) in variables {
            let made_with = match self {
                Programs::MariaDb(_) => false,
                Programs::PostgreSql(_) => {
                    crate::servers::postgresql::SHAPING.contains(&name.as_str())
                }
            };
            if !made_with {
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
        let shaping = self.shaping(variables);
        let command = match self {
            Programs::MariaDb(programs) => programs.installation(place, &shaping),
            Programs::PostgreSql(programs) => programs.installation(place, &shaping),
        };
        let command = command.map_err(DatabaseError::io(format!(
            "make a data directory in {}",
            place.data.display()
        )))?;
        // A log of its own: initdb's advice is no sign of trouble.
        let log = place.run.join("installation");
        let command = logged(command, &log)?;
        let process = changes.start_process(
            command,
            "preparing a database",
            self.user(),
            libc_signal::KILL,
        )?;
        let ended = changes.await_process(process)?;
        if !ended.success() {
            return Err(DatabaseError::Server(format!(
                "{} could not make its data directory: {}",
                self.title(),
                crate::log::complaint(&log)
            )));
        }
        let workers = 16;
        let settings = self.told(Purpose::Loading, job, workers, &shaping);
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
        let command = match self {
            Programs::MariaDb(programs) => programs.command(place, settings),
            Programs::PostgreSql(programs) => programs.command(place, settings),
        };
        let command = command.map_err(DatabaseError::io(format!(
            "write the server's configuration for {}",
            place.data.display()
        )))?;
        let command = logged(command, &place.log())?;
        let (death, endpoint) = match self {
            Programs::MariaDb(_) => {
                (libc_signal::KILL, Endpoint::MySqlSocket { socket: place.run.join("socket") })
            }
            // Its own way of ending at once, which leaves no shared memory behind.
            Programs::PostgreSql(programs) => (libc_signal::QUIT, programs.endpoint(&place.run)),
        };
        let process = changes.start_process(command, self.title(), self.user(), death)?;
        let mut running = Running::private(process, endpoint, place.log(), self.name());
        match self.await_answer(&mut running, stop) {
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
                return Err(DatabaseError::Server(format!(
                    "{} did not start ({how}): {}",
                    self.title(),
                    running.words()
                )));
            }
            match running.answers() {
                Ok(()) => return Ok(()),
                Err(error) if begun.elapsed() > PATIENCE => {
                    return Err(DatabaseError::Server(format!(
                        "{} does not answer after {} s ({error}): {}",
                        self.title(),
                        PATIENCE.as_secs(),
                        running.words()
                    )));
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
        let (signal, patience) = match (self, clean) {
            (Programs::MariaDb(_), true) => (libc_signal::TERM, CLEAN_END),
            (Programs::MariaDb(_), false) => (libc_signal::KILL, Duration::from_secs(30)),
            // Fast and immediate shutdown of pg_ctl(1).
            (Programs::PostgreSql(_), true) => (libc_signal::INT, CLEAN_END),
            (Programs::PostgreSql(_), false) => (libc_signal::QUIT, Duration::from_secs(10)),
        };
        let log = running.log().map(Path::to_owned);
        if let Some(process) = running.into_process() {
            changes.end_process(process, signal, patience)?;
        }
        match log.as_deref().and_then(crate::log::trouble).filter(|_| clean) {
            Some(words) => Err(DatabaseError::Server(format!(
                "{} told of trouble while its data were loaded: {words}",
                self.title()
            ))),
            None => Ok(()),
        }
    }
}

/// Signals by their numbers on Linux (signal(7)).
mod libc_signal {
    pub const INT: i32 = 2;
    pub const QUIT: i32 = 3;
    pub const KILL: i32 = 9;
    pub const TERM: i32 = 15;
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

/// A program in one of the usual folders.
pub(crate) fn program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"].map(PathBuf::from);
    folders
        .iter()
        .cloned()
        .chain(std::env::split_paths(&path))
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// What a program prints.
pub(crate) fn output(command: &mut Command) -> Result<String, DatabaseError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(DatabaseError::io(format!("run {name}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(DatabaseError::Server(format!(
            "{name} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

/// A size as both servers take it: whole bytes, or kB for PostgreSQL.
pub(crate) fn whole_kib(size: Bytes) -> u64 {
    size.0.div_ceil(1024)
}
