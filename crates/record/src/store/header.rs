//! What a list of runs says of each: read without its trials.

use super::{
    Store, StoreError,
    json::{count, from_json, from_word, text},
};
use crate::RunState;
use serde::{Deserialize, de::IgnoredAny};

/// What a run is, without what it measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunHeader {
    /// Its name.
    pub name: String,
    /// When it started, in seconds since 1970.
    pub started_at: i64,
    /// How it ended.
    pub state: RunState,
    /// Its target.
    pub target: String,
    /// Cells of its plan.
    pub cells: usize,
    /// Trials of all its sessions.
    pub trials: u64,
    /// Rounds of all its sessions.
    pub rounds: u64,
    /// Sessions, the first included.
    pub sessions: u64,
}

/// What is read of a plan.
#[derive(Deserialize)]
struct PlanSize {
    target: String,
    cells: Vec<IgnoredAny>,
}

impl Store {
    /// What a list of runs says of this one: as quick for a large file as for a small one.
    pub fn header(&self) -> Result<RunHeader, StoreError> {
        self.work.allow(&self.path);
        self.read_header().map_err(|error| self.unreadable(error))
    }

    fn read_header(&self) -> rusqlite::Result<RunHeader> {
        let mut header = self.connection.query_row(
            "SELECT name, started_at, state, plan FROM run",
            [],
            |row| {
                let PlanSize { target, cells } = from_json(row, 3)?;
                Ok(RunHeader {
                    name: text(row, 0)?,
                    started_at: row.get(1)?,
                    state: from_word(row, 2)?,
                    target,
                    cells: cells.len(),
                    trials: 0,
                    rounds: 0,
                    sessions: 1,
                })
            },
        )?;
        // Rows are never deleted one by one, so that the last has the number of them.
        let trials = "SELECT coalesce(max(trial), 0) FROM trial";
        header.trials = self.connection.query_row(trials, [], |row| count(row, 0))?;
        header.rounds = self.rounds_of(0)?;
        if self.version >= 4 {
            let mut select = self.connection.prepare("SELECT session FROM session")?;
            let sessions = select.query_map([], |row| row.get(0))?;
            for session in sessions.collect::<rusqlite::Result<Vec<i64>>>()? {
                header.sessions += 1;
                header.rounds = header.rounds.saturating_add(self.rounds_of(session)?);
            }
        }
        Ok(header)
    }

    /// Rounds of a session: its last trial is of the last.
    fn rounds_of(&self, session: i64) -> rusqlite::Result<u64> {
        let of_session = self.of_session(session);
        let sql = format!(
            "SELECT coalesce((SELECT round + 1 FROM trial WHERE true {of_session} ORDER BY trial DESC LIMIT 1), 0)"
        );
        self.connection.query_row(&sql, [], |row| count(row, 0))
    }
}
