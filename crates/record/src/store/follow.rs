//! Reading a run file while it is written: what is new, and nothing twice.

use super::{SCHEMA_VERSION, Store, StoreError, Waiting, json::from_json};
use crate::{Event, Run, flaw::check_run};
use std::path::Path;

/// A run that goes on, as far as it has been read.
pub struct Following {
    store: Store,
    run: Run,
    /// The last row of each table that was read.
    trial: i64,
    event: i64,
    /// What SQLite gives another of when another program has written.
    data_version: i64,
}

impl Following {
    /// Of a run, from its beginning.
    pub fn of(path: &Path, waiting: Waiting) -> Result<Following, StoreError> {
        let store = Store::open_waiting(path, waiting)?;
        let run = store.head().map_err(|error| store.unreadable(error))?;
        let mut following =
            Following { store, run, trial: i64::MIN, event: i64::MIN, data_version: -1 };
        following.read_on()?;
        Ok(following)
    }

    /// What was read.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Reads what was written since.
    pub fn read_on(&mut self) -> Result<(), StoreError> {
        self.store.work.allow(&self.store.path);
        if self.read_changed().map_err(|error| self.store.unreadable(error))? {
            check_run(&self.run).map_err(|flaw| self.store.unsound(flaw))?;
        }
        Ok(())
    }

    /// Whether there was anything new.
    fn read_changed(&mut self) -> rusqlite::Result<bool> {
        let connection = &self.store.connection;
        let data_version = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if data_version == self.data_version {
            return Ok(false);
        }
        let later = |store: &Store| -> rusqlite::Result<i64> {
            store.connection.query_row("SELECT count(*) FROM session", [], |row| row.get(0))
        };
        // Files of older versions do not grow, and sessions are few and told apart when all is read.
        match self.store.version < SCHEMA_VERSION || later(&self.store)? > 0 {
            true => self.run = self.store.read_all()?,
            false => self.read_new()?,
        }
        self.data_version = data_version;
        Ok(true)
    }

    fn read_new(&mut self) -> rusqlite::Result<()> {
        let Following { store, run, trial, event, .. } = self;
        let head = store.head()?;
        (run.state, run.plan) = (head.state, head.plan);
        let mut select = store.connection.prepare_cached(
            "SELECT rowid, round, data FROM event WHERE rowid > ? AND session = 0 ORDER BY rowid",
        )?;
        let mut rows = select.query([*event])?;
        while let Some(row) = rows.next()? {
            run.events.push(Event { round: row.get(1)?, kind: from_json(row, 2)? });
            *event = row.get(0)?;
        }
        while store.some_trials(0, trial, &mut run.trials)? {}
        Ok(())
    }
}
