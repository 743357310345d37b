//! Reading a run file while it is written: what is new, and nothing twice.

use super::{SCHEMA_VERSION, Store, StoreError, json::from_json, read::TRIAL_COLUMNS};
use crate::{Event, Run};
use std::path::Path;

/// So many trials are read at once. Whoever writes waits meanwhile: some milliseconds.
const BATCH: usize = 64;

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
    pub fn of(path: &Path) -> Result<Following, StoreError> {
        let store = Store::open(path)?;
        let run = store.head().map_err(|error| store.unreadable(error))?;
        let mut following = Following { store, run, trial: 0, event: 0, data_version: -1 };
        following.read_on()?;
        Ok(following)
    }

    /// What was read.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Reads what was written since.
    pub fn read_on(&mut self) -> Result<(), StoreError> {
        self.read_changed().map_err(|error| self.store.unreadable(error))
    }

    fn read_changed(&mut self) -> rusqlite::Result<()> {
        let connection = &self.store.connection;
        let data_version = connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if data_version == self.data_version {
            return Ok(());
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
        Ok(())
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
        loop {
            let mut select = store.connection.prepare_cached(&format!(
                "SELECT {TRIAL_COLUMNS} FROM trial WHERE trial > ? AND session = 0
                 ORDER BY trial LIMIT {BATCH}"
            ))?;
            let mut rows = select.query([*trial])?;
            let before = run.trials.len();
            while let Some(row) = rows.next()? {
                run.trials.push(store.trial(row)?);
                *trial = row.get(0)?;
            }
            if run.trials.len() - before < BATCH {
                return Ok(());
            }
        }
    }
}
