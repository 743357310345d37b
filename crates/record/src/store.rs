//! The run file: one SQLite database, committed trial by trial.
//!
//! Anybody may open it with sqlite3, pandas or DuckDB: docs/run-file.md has the tables.

mod events;
mod follow;
mod imports;
mod json;
mod read;
mod versions;
mod write;

pub use follow::Following;

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};

/// What is written into `PRAGMA application_id`: "spin" in ASCII.
const APPLICATION_ID: i32 = 0x7370_696e;

/// The tables' version, in `PRAGMA user_version`.
const SCHEMA_VERSION: i32 = 5;

/// The tables. Everything that a table is asked about stands in a column; what only travels
/// (environment, plan) is JSON.
const SCHEMA: &str = "
CREATE TABLE run (
    name TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    environment TEXT NOT NULL,
    plan TEXT NOT NULL
);
CREATE TABLE cell (
    cell INTEGER PRIMARY KEY,
    baseline INTEGER REFERENCES cell(cell),
    label TEXT NOT NULL
);
CREATE TABLE cell_level (
    cell INTEGER NOT NULL REFERENCES cell(cell),
    factor TEXT NOT NULL,
    level TEXT NOT NULL,
    PRIMARY KEY (cell, factor)
);
CREATE TABLE trial (
    trial INTEGER PRIMARY KEY,
    round INTEGER NOT NULL,
    cell INTEGER NOT NULL REFERENCES cell(cell),
    replica INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('valid', 'void', 'failed')),
    reason TEXT,
    applied TEXT NOT NULL,
    span_ns INTEGER,
    generator_user_ns INTEGER,
    generator_system_ns INTEGER,
    generator_threads INTEGER,
    generator_busiest_permille INTEGER,
    warnings TEXT,
    session INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE operation (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    job TEXT NOT NULL CHECK (job IN ('job', 'background')),
    kind TEXT NOT NULL CHECK (kind IN ('read', 'write', 'sync')),
    operations INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    service TEXT NOT NULL,
    response TEXT,
    PRIMARY KEY (trial, job, kind)
);
CREATE TABLE client (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    job TEXT NOT NULL,
    client INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (trial, job, client)
);
CREATE TABLE error (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    job TEXT NOT NULL,
    error TEXT NOT NULL,
    operations INTEGER NOT NULL,
    PRIMARY KEY (trial, job, error)
);
CREATE TABLE second (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    at REAL NOT NULL,
    reads INTEGER NOT NULL,
    writes INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    p50_ns INTEGER NOT NULL,
    p99_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL,
    transactions INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX second_of_trial ON second(trial);
CREATE TABLE counter (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    at REAL NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL
);
CREATE INDEX counter_of_trial ON counter(trial);
CREATE TABLE event (
    round INTEGER NOT NULL,
    cell INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    session INTEGER NOT NULL DEFAULT 0
);
";

/// What version 4 added: sessions after the first. A file of an older version lacks this, and the column
/// `session` of `trial` and `event`.
const SCHEMA_OF_SESSIONS: &str = "
CREATE TABLE session (
    session INTEGER PRIMARY KEY,
    factor TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    server_program TEXT,
    environment TEXT NOT NULL
);
";

/// What version 5 added: what other programs printed of a trial, each figure with its line.
const SCHEMA_OF_IMPORTS: &str = "
CREATE TABLE imported (
    trial INTEGER PRIMARY KEY REFERENCES trial(trial),
    tool TEXT NOT NULL,
    file TEXT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    rate TEXT,
    doubts TEXT NOT NULL
);
CREATE TABLE imported_figure (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    subject TEXT NOT NULL,
    quantity TEXT NOT NULL,
    value REAL NOT NULL,
    line INTEGER NOT NULL
);
CREATE INDEX imported_figure_of_trial ON imported_figure(trial);
";

/// What version 2 added: databases. A file of version 1 lacks these, and the column `transactions`
/// of `second`.
const SCHEMA_OF_DATABASES: &str = "
CREATE TABLE transaction_type (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    type TEXT NOT NULL,
    transactions INTEGER NOT NULL,
    rolled_back INTEGER NOT NULL,
    service TEXT NOT NULL,
    response TEXT,
    PRIMARY KEY (trial, type)
);
CREATE TABLE query (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    kind TEXT NOT NULL CHECK (kind IN ('read', 'write', 'other')),
    queries INTEGER NOT NULL,
    PRIMARY KEY (trial, kind)
);
CREATE TABLE retry (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    reason TEXT NOT NULL,
    transactions INTEGER NOT NULL,
    PRIMARY KEY (trial, reason)
);
CREATE TABLE database_check (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    name TEXT NOT NULL,
    holds INTEGER NOT NULL,
    found TEXT NOT NULL
);
";

/// An open run file.
pub struct Store {
    connection: rusqlite::Connection,
    path: PathBuf,
    /// Of its tables.
    version: i32,
    /// The session that is written: 0 is the first.
    session: i64,
    /// Held by the program that writes the file, until it is closed: two programs that resumed the same
    /// run would run the same trials on the same device. Declared last, because closing it before the
    /// connection would end SQLite's own locks.
    _writing: Option<File>,
}

/// What can go wrong with a run file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is nothing there.
    #[error("{path} does not exist; `spindle runs` lists the runs there are")]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// Something is there already.
    #[error("{path} exists already and is left alone; choose another name with --output")]
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// Another program writes it.
    #[error("{path} is in use: its comparison still runs; wait for its end, or interrupt it first")]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// It is no run file.
    #[error("{path} is not a run file of Spindle's{detail}")]
    NotOurs {
        /// Where.
        path: PathBuf,
        /// What was found instead.
        detail: String,
    },
    /// Another version's.
    #[error(
        "{path} has run-file version {found} and this program knows {SCHEMA_VERSION}: \
         use the version of Spindle that made it, or a newer one"
    )]
    Version {
        /// Where.
        path: PathBuf,
        /// Its version.
        found: i32,
    },
    /// It is damaged.
    #[error("{path} is damaged ({detail}); `sqlite3 {path} .recover` may save trials from it")]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What SQLite or the reading said.
        detail: String,
    },
    /// SQLite could not do it.
    #[error("{path}: {cause}")]
    Sqlite {
        /// Where.
        path: PathBuf,
        /// Why; not a `source`, because the message has it already.
        cause: rusqlite::Error,
    },
}

impl Store {
    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        explain(&self.path, source)
    }
}

/// Claims a run file, opened to read, for writing. Where a filesystem takes no such lock (NFS wants the
/// file opened to write, and would then keep readers out), this does without.
fn claim(path: &Path, file: File) -> Result<File, StoreError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse { path: path.to_owned() }),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Tells damage from other trouble.
fn explain(path: &Path, source: rusqlite::Error) -> StoreError {
    use rusqlite::ErrorCode;
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::NotOurs { path, detail: String::new() },
        Some(ErrorCode::DatabaseCorrupt) => {
            StoreError::Damaged { path, detail: source.to_string() }
        }
        _ => StoreError::Sqlite { path, cause: source },
    }
}

#[cfg(test)]
mod tests;
