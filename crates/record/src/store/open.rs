//! Opening a run file, from any maker, and after any end of its last writer.

use super::{
    APPLICATION_ID, SCHEMA_VERSION, Store, StoreError, Waiting, WaitsFor, claim, cut_off, explain,
    guarded::{Work, guarded},
    schema, versions,
    wait::wait,
};
use rusqlite::{Connection, OpenFlags};
use std::{
    fs::File,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

impl Store {
    /// Opens a run file to read it; where a commit goes on, waits for its end without a word.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::open_waiting(path, Waiting::default())
    }

    /// Opens a run file to read it. A commit that its writer did not live to end is rolled back, in the file where that
    /// may be written, else in a copy.
    pub fn open_waiting(path: &Path, waiting: Waiting) -> Result<Store, StoreError> {
        refuse_what_is_no_file(path)?;
        let (connection, work) = open_to_read(path)?;
        let open = Open { path, connection, work, claimed: None, copy: None };
        if !cut_off::is_cut_off(path, &open.connection) {
            return open.checked(WaitsFor::Writer, waiting);
        }
        drop(open);
        let copy = cut_off::roll_back(path)?;
        let at = copy.as_ref().map_or(path, |(_, file)| file.as_path());
        let (connection, work) = open_to_read(at)?;
        Open { path, connection, work, claimed: None, copy }.checked(WaitsFor::Writer, waiting)
    }

    /// Opens a run file to go on with it.
    pub fn open_to_resume(path: &Path, waiting: Waiting) -> Result<Store, StoreError> {
        let claimed = match File::open(path) {
            Ok(file) if path.is_file() => Some(claim(path, file)?),
            // Opening it for SQLite says what is wrong.
            _ => None,
        };
        refuse_what_is_no_file(path)?;
        cut_off::refuse_another_files_journal(path)?;
        let (connection, work) = guarded(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .map_err(|error| explain(path, error))?;
        let open = Open { path, connection, work, claimed, copy: None };
        let mut store = open.checked(WaitsFor::Readers, waiting)?;
        store.work.unbounded();
        versions::upgrade(&mut store).map_err(|error| explain(path, error))?;
        store.session = store
            .connection
            .query_row("SELECT coalesce(max(session), 0) FROM session", [], |row| row.get(0))
            .map_err(|error| explain(path, error))?;
        Ok(store)
    }
}

fn open_to_read(path: &Path) -> Result<(Connection, Work), StoreError> {
    guarded(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|error| explain(path, error))
}

fn refuse_what_is_no_file(path: &Path) -> Result<(), StoreError> {
    let path = path.to_owned();
    if !path.exists() {
        return Err(StoreError::Missing { path });
    }
    if !path.is_file() {
        return Err(StoreError::NotOurs { path, detail: ": it is not a file".to_owned() });
    }
    Ok(())
}

/// A file that was opened, and not looked at.
struct Open<'a> {
    path: &'a Path,
    connection: Connection,
    work: Work,
    claimed: Option<File>,
    copy: Option<(TempDir, PathBuf)>,
}

impl Open<'_> {
    /// Looks whether it is a run file.
    fn checked(mut self, waits_for: WaitsFor, waiting: Waiting) -> Result<Store, StoreError> {
        let path = self.path;
        let failed = |error| explain(path, error);
        wait(&mut self.connection, path, waits_for, waiting).map_err(failed)?;
        let connection = &self.connection;
        let pragma = |name: &str| {
            connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0)).map_err(failed)
        };
        let path = path.to_owned();
        if pragma("application_id")? != APPLICATION_ID {
            if self.path.metadata().is_ok_and(|it| it.len() == 0) {
                return Err(StoreError::Empty { path });
            }
            return Err(StoreError::NotOurs { path, detail: ": its mark is missing".to_owned() });
        }
        let version = pragma("user_version")?;
        if !(1..=SCHEMA_VERSION).contains(&version) {
            return Err(StoreError::Version { path, found: version });
        }
        if let Some(odd) = schema::odd(connection, version).map_err(failed)? {
            return Err(StoreError::Odd { path, odd });
        }
        Ok(Store {
            connection: self.connection,
            work: self.work,
            path,
            version,
            session: 0,
            _copy: self.copy.map(|(folder, _)| folder),
            _writing: self.claimed,
        })
    }
}
