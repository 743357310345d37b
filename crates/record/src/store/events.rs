//! Event logs of simulated trials.

use super::{
    Store, StoreError,
    json::{count, signed_nanos, text},
};
use crate::{EventLog, HeadPosition, RequestLife};
use rusqlite::{OptionalExtension, Transaction, params};

/// Tables of version 2.
pub(super) const SCHEMA_OF_EVENTS: &str = "
CREATE TABLE event_log (
    trial INTEGER PRIMARY KEY REFERENCES trial(trial),
    hash TEXT NOT NULL,
    cut INTEGER NOT NULL
);
CREATE TABLE request (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    process INTEGER NOT NULL,
    op TEXT NOT NULL,
    start_sector INTEGER NOT NULL,
    sectors INTEGER NOT NULL,
    queued_ns INTEGER NOT NULL,
    dispatched_ns INTEGER NOT NULL,
    began_ns INTEGER NOT NULL,
    done_ns INTEGER NOT NULL,
    merged INTEGER NOT NULL
);
CREATE INDEX request_of_trial ON request(trial);
CREATE TABLE head (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    at_ns INTEGER NOT NULL,
    drive INTEGER NOT NULL,
    cylinder INTEGER NOT NULL
);
CREATE INDEX head_of_trial ON head(trial);
";

pub(super) fn write_events(
    transaction: &Transaction<'_>,
    trial: i64,
    log: &EventLog,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO event_log (trial, hash, cut) VALUES (?, ?, ?)",
        params![trial, format!("{:016x}", log.hash), log.cut],
    )?;
    let mut insert = transaction.prepare(
        "INSERT INTO request (trial, process, op, start_sector, sectors, queued_ns, dispatched_ns,
         began_ns, done_ns, merged) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for life in &log.requests {
        insert.execute(params![
            trial,
            life.process,
            life.op.to_string(),
            life.start as i64,
            life.sectors as i64,
            life.queued_ns,
            life.dispatched_ns,
            life.began_ns,
            life.done_ns,
            life.merged,
        ])?;
    }
    let mut insert = transaction
        .prepare("INSERT INTO head (trial, at_ns, drive, cylinder) VALUES (?, ?, ?, ?)")?;
    for head in &log.heads {
        insert.execute(params![trial, head.at_ns, head.drive, head.cylinder])?;
    }
    Ok(())
}

impl Store {
    /// A trial's event log with its requests and heads, where it has one: what [`Store::read`]
    /// leaves out but for the hash.
    pub fn event_log(
        &self,
        (round, cell, replica): (u32, usize, u32),
    ) -> Result<Option<EventLog>, StoreError> {
        let read = || -> rusqlite::Result<Option<EventLog>> {
            if self.version == 1 {
                return Ok(None);
            }
            let trial: Option<i64> = self
                .connection
                .query_row(
                    "SELECT trial FROM trial WHERE round = ? AND cell = ? AND replica = ?
                     AND outcome = 'valid'",
                    params![round, cell as i64, replica],
                    |row| row.get(0),
                )
                .optional()?;
            let Some(trial) = trial else { return Ok(None) };
            let Some(mut log) = self.event_hash(trial)? else { return Ok(None) };
            log.requests = self.requests(trial)?;
            log.heads = self.heads(trial)?;
            Ok(Some(log))
        };
        self.work.allow(&self.path);
        read().map_err(|error| self.unreadable(error))
    }

    /// A log without requests and heads.
    pub(super) fn event_hash(&self, trial: i64) -> rusqlite::Result<Option<EventLog>> {
        if self.version == 1 {
            return Ok(None);
        }
        let mut select =
            self.connection.prepare_cached("SELECT hash, cut FROM event_log WHERE trial = ?")?;
        select
            .query_row([trial], |row| {
                let hash: String = row.get(0)?;
                let hash = u64::from_str_radix(&hash, 16).unwrap_or_default();
                Ok(EventLog { hash, cut: row.get(1)?, ..EventLog::default() })
            })
            .optional()
    }

    fn requests(&self, trial: i64) -> rusqlite::Result<Vec<RequestLife>> {
        let mut select = self.connection.prepare(
            "SELECT process, op, start_sector, sectors, queued_ns, dispatched_ns, began_ns, done_ns,
             merged FROM request WHERE trial = ? ORDER BY rowid",
        )?;
        let lives = select.query_map([trial], |row| {
            Ok(RequestLife {
                process: row.get(0)?,
                op: text(row, 1)?.chars().next().unwrap_or('?'),
                start: count(row, 2)?,
                sectors: count(row, 3)?,
                queued_ns: signed_nanos(row, 4)?,
                dispatched_ns: signed_nanos(row, 5)?,
                began_ns: signed_nanos(row, 6)?,
                done_ns: signed_nanos(row, 7)?,
                merged: row.get(8)?,
            })
        })?;
        lives.collect()
    }

    fn heads(&self, trial: i64) -> rusqlite::Result<Vec<HeadPosition>> {
        let mut select = self
            .connection
            .prepare("SELECT at_ns, drive, cylinder FROM head WHERE trial = ? ORDER BY rowid")?;
        let heads = select.query_map([trial], |row| {
            Ok(HeadPosition {
                at_ns: signed_nanos(row, 0)?,
                drive: row.get(1)?,
                cylinder: row.get(2)?,
            })
        })?;
        heads.collect()
    }
}
