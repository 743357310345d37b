//! The run file: one SQLite database, committed trial by trial.
//!
//! Anybody may open it with sqlite3, pandas or DuckDB: docs/run-file.md has the tables.

mod cut_off;
mod events;
mod follow;
mod guarded;
mod header;
mod imports;
mod json;
mod open;
mod read;
mod schema;
mod versions;
mod wait;
mod write;

pub use cut_off::NotRolledBack;
pub use follow::Following;
pub use header::RunHeader;
pub use schema::Odd;
pub use wait::{StoreWait, WaitTeller, Waiting, WaitsFor};

use crate::Flaw;
use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// What is written into `PRAGMA application_id`: "spin" in ASCII.
const APPLICATION_ID: i32 = 0x7370_696e;

/// The tables' version, in `PRAGMA user_version`.
const SCHEMA_VERSION: i32 = 5;

/// An open run file.
pub struct Store {
    connection: rusqlite::Connection,
    /// What reading may take.
    work: guarded::Work,
    path: PathBuf,
    /// Of its tables.
    version: i32,
    /// The session that is written: 0 is the first.
    session: i64,
    /// The copy that is read in its place, where the file needed a rollback and may not be written.
    _copy: Option<TempDir>,
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
    /// There is a file, and nothing in it.
    #[error(
        "{path} is empty: the program that began this run was ended before it wrote anything; delete the file"
    )]
    Empty {
        /// Where.
        path: PathBuf,
    },
    /// It has other tables than a run.
    #[error(
        "{path} is not as Spindle makes a run file: {odd}; drop what was added (sqlite3 {path}), or do not \
         trust it"
    )]
    Odd {
        /// Where.
        path: PathBuf,
        /// What.
        odd: Odd,
    },
    /// It says what no run can say.
    #[error("{path} is damaged, or was made by something else: {flaw}")]
    Unsound {
        /// Where.
        path: PathBuf,
        /// What; not a `source`, because the message has it already.
        flaw: Flaw,
    },
    /// Its last commit was cut off and cannot be rolled back.
    #[error(
        "{path}: its last writer was killed within a commit, and that cannot be taken back: {why}; run the \
         same command as the file's owner, or copy both files to where you may write"
    )]
    CutOff {
        /// Where.
        path: PathBuf,
        /// Why not; not a `source`, because the message has it already.
        why: NotRolledBack,
    },
    /// Reading took more than a file of its size can take.
    #[error(
        "{path} takes more work to read than a run file of its size can: an index of it is missing or \
         damaged; do not trust it"
    )]
    TooMuchWork {
        /// Where.
        path: PathBuf,
    },
    /// The user interrupted while it was waited for another program.
    #[error("{path} is held by another program, and the waiting for it was interrupted")]
    Held {
        /// Where.
        path: PathBuf,
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
            StoreError::Damaged { path, detail: crate::clean(source.to_string()) }
        }
        Some(ErrorCode::OperationInterrupted) => StoreError::TooMuchWork { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Held { path },
        _ => StoreError::Sqlite { path, cause: source },
    }
}

#[cfg(test)]
mod tests;
