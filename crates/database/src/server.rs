//! What a kind of server is to the rest of the program.

use crate::{Catalog, DatabaseError, Endpoint, VariableError};
use host::{FileId, HeldFolder, User};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};
use units::Bytes;
use workload::{DatabaseJob, StorageEngine};

/// A server's variables by its own names, in the order in which they are set.
pub type Settings = Vec<(String, String)>;

/// Where a private server lives.
#[derive(Clone, Debug)]
pub struct Place {
    /// The folder that has its data, held open: a server knows paths alone, so that its path is compared with the
    /// folder before the server uses it.
    pub home: HeldFolder,
    /// The name of its data there.
    pub name: String,
    /// Its socket, log and configuration: short, because a socket's path is at most 107 bytes.
    pub run: PathBuf,
}

impl Place {
    /// Its data.
    pub fn data(&self) -> PathBuf {
        self.home.path().join(&self.name)
    }

    /// Its data, held open.
    pub fn open_data(&self) -> Result<HeldFolder, DatabaseError> {
        Ok(self.home.open_folder(&self.name)?)
    }

    /// An error when the path of its data leads elsewhere by now.
    pub fn check(&self) -> Result<(), DatabaseError> {
        Ok(self.home.check()?)
    }

    /// An error when a server that has started works in another folder than its data's. Servers enter that folder
    /// and name their files from there. One that may not be asked is taken to do so.
    pub(crate) fn check_server(&self, pid: u32) -> Result<(), DatabaseError> {
        self.check()?;
        let data = self.open_data()?;
        let works_in = HeldFolder::of_process(pid).and_then(|folder| folder.id());
        let elsewhere = |id: FileId| Ok::<bool, host::Error>(id != data.id()?);
        match works_in.map(elsewhere) {
            Ok(Ok(false)) | Err(_) => Ok(()),
            Ok(Ok(true)) => Err(host::Error::Moved { path: self.data(), now: None }.into()),
            Ok(Err(error)) => Err(error.into()),
        }
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.run.join("log")
    }
}

/// What a server is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Loading: nothing need be durable before the end.
    Loading,
    /// A trial.
    Trial,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// So that its data can be kept: dirty pages are written back.
    Clean,
    /// At once: its data are thrown away.
    AtOnce,
}

/// The signal that stops a server, and how long it may take until it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StopSignal {
    /// Its number on Linux (signal(7)).
    pub signal: i32,
    /// How long the server may take.
    pub patience: Duration,
}

impl StopSignal {
    /// Of a server that `clean` stops cleanly and `at_once` at once.
    pub fn new(how: Stop, clean: i32, at_once: i32) -> StopSignal {
        match how {
            Stop::Clean => StopSignal { signal: clean, patience: Duration::from_secs(600) },
            Stop::AtOnce => StopSignal { signal: at_once, patience: Duration::from_secs(30) },
        }
    }
}

/// Signals by their numbers on Linux (signal(7)).
pub(crate) mod signal {
    pub const INT: i32 = 2;
    pub const QUIT: i32 = 3;
    pub const KILL: i32 = 9;
    pub const TERM: i32 = 15;
}

/// What a server needs beside a workload's rows; nothing for one that Spindle does not start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Its own cache of pages when nothing is said.
    pub default_cache: Bytes,
    /// The least memory that it needs beside that cache.
    pub memory_beside: Bytes,
    /// What loaded data may take more than their rows: logs, tables of the server's own.
    pub disk_beside: Bytes,
}

/// A kind of server that can be started for a comparison, with the programs that were found of it.
///
/// To add one: a file in `servers/` with a type that implements this, a variant of
/// [`workload::PrivateServer`] with its line in `PrivateServer::spec` and in `servers::find`,
/// and a page in `docs/reference/servers/`. What it says on a connection is a `Session`'s.
pub(crate) trait ServerKind {
    /// Its name and version, for people: `MariaDB 10.11.14`.
    fn title(&self) -> &str;

    /// The server's program.
    fn program(&self) -> &Path;

    /// Whom it runs as, where that is somebody else than this process.
    fn user(&self) -> Option<&User> {
        None
    }

    /// The variables that it has.
    fn catalog(&self) -> Result<Catalog, DatabaseError>;

    /// Whether the server would take a value, where it can be asked without data.
    fn check_value(&self, name: &str, value: &str) -> Result<(), VariableError>;

    /// Variables that data are made with: other levels of them need other data.
    fn made_with(&self) -> &'static [&'static str];

    /// Whether those are set when data are made, and not each time that the server is started.
    fn set_when_made_only(&self) -> bool {
        false
    }

    /// The command that makes an empty data directory in `place`.
    fn initialise(
        &self,
        place: &Place,
        made_with: &BTreeMap<String, String>,
    ) -> io::Result<Command>;

    /// The variables that Spindle sets, before the user's.
    fn settings(
        &self,
        purpose: Purpose,
        job: &DatabaseJob,
        clients: u32,
        engine: StorageEngine,
    ) -> Settings;

    /// Writes its configuration; the command that starts it on the data in `place`.
    fn start(&self, place: &Place, settings: &Settings) -> io::Result<Command>;

    /// Where it listens.
    fn endpoint(&self, place: &Place) -> Endpoint;

    /// How it is stopped.
    fn stop(&self, how: Stop) -> StopSignal;

    /// What it needs beside a workload's rows.
    fn sizes(&self) -> Sizes;

    /// Words in its log that tell of trouble which makes a trial worthless. A deadlock or a duplicate
    /// key does not: clients see those themselves.
    fn signs_of_trouble(&self) -> &'static [&'static str];

    /// Words in lines that have such a sign and tell of no trouble.
    fn harmless(&self) -> &'static [&'static str] {
        &[]
    }
}

/// What a program prints.
pub(crate) fn output(command: &mut Command) -> Result<String, DatabaseError> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(DatabaseError::io(format!("run {name}")))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(DatabaseError::ProgramFailed {
            program: name,
            status: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        }),
    }
}
