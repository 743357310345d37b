//! Reading a run file: on any machine, by a newer program too.

use super::{
    APPLICATION_ID, SCHEMA_VERSION, Store, StoreError, claim, explain, json::from_json, versions,
};
use crate::{
    Check, ClientShare, CounterSample, Environment, Event, GeneratorCost, JobMeasurement,
    Measurement, OperationMeasurement, Outcome, Run, Second, Session, SharePermille,
    TransactionMeasurement, Transactions, Trial, TrialId, VoidReason,
    form::{EnvironmentForm, PlanForm},
};
use plan::Plan;
use rusqlite::{Connection, OpenFlags, Row, types::Type};
use std::{collections::BTreeMap, fs::File, path::Path};
use units::{Bytes, Nanos};

/// What [`Store::trial`] reads.
pub(super) const TRIAL_COLUMNS: &str = "trial, round, cell, replica, started_at, outcome, reason, applied,
    span_ns, generator_user_ns, generator_system_ns, generator_threads, generator_busiest_permille, warnings";

impl Store {
    /// Opens a run file to read it.
    pub fn open(path: &Path) -> Result<Store, StoreError> {
        Store::open_with(path, OpenFlags::SQLITE_OPEN_READ_ONLY, None)
    }

    /// Opens a run file to go on with it.
    pub fn open_to_resume(path: &Path) -> Result<Store, StoreError> {
        let claimed = match File::open(path) {
            Ok(file) if path.is_file() => Some(claim(path, file)?),
            // Opening it for SQLite says what is wrong.
            _ => None,
        };
        let mut store = Store::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE, claimed)?;
        versions::upgrade(&mut store).map_err(|error| explain(path, error))?;
        store.session = store
            .connection
            .query_row("SELECT coalesce(max(session), 0) FROM session", [], |row| row.get(0))
            .map_err(|error| explain(path, error))?;
        Ok(store)
    }

    fn open_with(
        path: &Path,
        flags: OpenFlags,
        claimed: Option<File>,
    ) -> Result<Store, StoreError> {
        if !path.exists() {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        if !path.is_file() {
            let detail = ": it is not a file".to_owned();
            return Err(StoreError::NotOurs { path: path.to_owned(), detail });
        }
        let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(|error| explain(path, error))?;
        let pragma = |name: &str| {
            connection
                .pragma_query_value(None, name, |row| row.get::<_, i32>(0))
                .map_err(|error| explain(path, error))
        };
        if pragma("application_id")? != APPLICATION_ID {
            let detail = ": its mark is missing".to_owned();
            return Err(StoreError::NotOurs { path: path.to_owned(), detail });
        }
        let found = pragma("user_version")?;
        if !(1..=SCHEMA_VERSION).contains(&found) {
            return Err(StoreError::Version { path: path.to_owned(), found });
        }
        let check: String = connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| explain(path, error))?;
        if check != "ok" {
            return Err(StoreError::Damaged { path: path.to_owned(), detail: check });
        }
        Ok(Store {
            connection,
            path: path.to_owned(),
            version: found,
            session: 0,
            _writing: claimed,
        })
    }

    /// When the run started, in seconds since 1970.
    pub fn started_at(&self) -> Result<i64, StoreError> {
        self.connection
            .query_row("SELECT started_at FROM run", [], |row| row.get(0))
            .map_err(|error| self.failed(error))
    }

    /// Everything in the file.
    pub fn read(&self) -> Result<Run, StoreError> {
        self.read_all().map_err(|error| self.unreadable(error))
    }

    /// What is there and does not read as it should is damaged.
    pub(super) fn unreadable(&self, error: rusqlite::Error) -> StoreError {
        match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::QueryReturnedNoRows => {
                StoreError::Damaged { path: self.path.clone(), detail: error.to_string() }
            }
            other => self.failed(other),
        }
    }

    /// A run without its trials, events and later sessions.
    pub(super) fn head(&self) -> rusqlite::Result<Run> {
        self.connection.query_row(
            "SELECT name, started_at, state, environment, plan FROM run",
            [],
            |row| {
                Ok(Run {
                    name: row.get(0)?,
                    started_at: row.get(1)?,
                    state: from_word(row, 2)?,
                    environment: self.environment(row, 3)?,
                    plan: self.plan(row, 4)?,
                    trials: Vec::new(),
                    events: Vec::new(),
                    later: Vec::new(),
                })
            },
        )
    }

    pub(super) fn read_all(&self) -> rusqlite::Result<Run> {
        let mut run = self.head()?;
        (run.trials, run.events) = (self.trials(0)?, self.events(0)?);
        if self.version < 4 {
            return Ok(run);
        }
        let mut sessions = self.connection.prepare(
            "SELECT session, factor, started_at, server_program, environment FROM session
             ORDER BY session",
        )?;
        let rows = sessions.query_map([], |row| {
            let session = row.get(0)?;
            Ok(Session {
                factor: from_word(row, 1)?,
                started_at: row.get(2)?,
                server_program: row.get::<_, Option<String>>(3)?.map(Into::into),
                environment: self.environment(row, 4)?,
                trials: self.trials(session)?,
                events: self.events(session)?,
            })
        })?;
        run.later = rows.collect::<rusqlite::Result<_>>()?;
        Ok(run)
    }

    /// The rows of a session; before version 4 there is one session alone.
    fn of_session(&self, session: i64) -> String {
        if self.version < 4 { String::new() } else { format!("WHERE session = {session}") }
    }

    fn trials(&self, session: i64) -> rusqlite::Result<Vec<Trial>> {
        let mut trials = self.connection.prepare(&format!(
            "SELECT {TRIAL_COLUMNS} FROM trial {} ORDER BY trial",
            self.of_session(session)
        ))?;
        let rows = trials.query_map([], |row| self.trial(row))?;
        rows.collect()
    }

    fn events(&self, session: i64) -> rusqlite::Result<Vec<Event>> {
        let text = if self.version < 3 { "text" } else { "data" };
        let mut events = self.connection.prepare(&format!(
            "SELECT round, cell, kind, {text} FROM event {} ORDER BY rowid",
            self.of_session(session)
        ))?;
        let rows = events.query_map([], |row| {
            let round = row.get(0)?;
            let kind = match self.version < 3 {
                true => versions::event(round, row.get(1)?, row.get(2)?, row.get(3)?),
                false => from_json(row, 3)?,
            };
            Ok(Event { round, kind })
        })?;
        rows.collect()
    }

    fn environment(&self, row: &Row<'_>, column: usize) -> rusqlite::Result<Environment> {
        let form: EnvironmentForm = from_json(row, column)?;
        Ok(form.into())
    }

    fn plan(&self, row: &Row<'_>, column: usize) -> rusqlite::Result<Plan> {
        let form: PlanForm = from_json(row, column)?;
        Plan::try_from(form).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
        })
    }

    pub(super) fn trial(&self, row: &Row<'_>) -> rusqlite::Result<Trial> {
        let id: i64 = row.get(0)?;
        let outcome: String = row.get(5)?;
        let text = || row.get::<_, Option<String>>(6).map(Option::unwrap_or_default);
        let outcome = match outcome.as_str() {
            "valid" => Outcome::Valid(Box::new(self.measurement(id, row)?)),
            "void" if self.version < 3 => {
                Outcome::Void { reason: VoidReason::Recorded { text: text()? } }
            }
            "void" => Outcome::Void { reason: from_json(row, 6)? },
            _ => Outcome::Failed { error: text()? },
        };
        Ok(Trial {
            id: TrialId {
                round: row.get(1)?,
                cell: row.get::<_, i64>(2)? as usize,
                replica: row.get(3)?,
            },
            started_at: row.get(4)?,
            applied: from_json(row, 7)?,
            outcome,
        })
    }

    fn measurement(&self, trial: i64, row: &Row<'_>) -> rusqlite::Result<Measurement> {
        let background = self.job(trial, "background")?;
        Ok(Measurement {
            span: nanos(row, 8)?,
            job: self.job(trial, "job")?.unwrap_or_default(),
            transactions: self.transactions(trial)?,
            background,
            seconds: self.seconds(trial)?,
            counters: self.counters(trial)?,
            generator: GeneratorCost {
                user: nanos(row, 9)?,
                system: nanos(row, 10)?,
                threads: row.get(11)?,
                busiest: SharePermille(row.get(12)?),
            },
            warnings: match self.version < 3 {
                true => versions::warnings(from_json(row, 13)?),
                false => from_json(row, 13)?,
            },
            events: self.event_hash(trial)?,
            imported: self.imported(trial)?,
        })
    }

    fn job(&self, trial: i64, job: &str) -> rusqlite::Result<Option<JobMeasurement>> {
        let mut select = self.connection.prepare_cached(
            "SELECT kind, operations, bytes, service, response FROM operation
             WHERE trial = ? AND job = ?",
        )?;
        let mut measured = JobMeasurement::default();
        let mut any = false;
        let mut rows = select.query((trial, job))?;
        while let Some(row) = rows.next()? {
            any = true;
            let operations = OperationMeasurement {
                operations: row.get::<_, i64>(1)? as u64,
                bytes: Bytes(row.get::<_, i64>(2)? as u64),
                service: from_json(row, 3)?,
                response: match row.get::<_, Option<String>>(4)? {
                    Some(_) => Some(from_json(row, 4)?),
                    None => None,
                },
            };
            match row.get::<_, String>(0)?.as_str() {
                "read" => measured.reads = operations,
                "write" => measured.writes = operations,
                _ => measured.syncs = operations,
            }
        }
        if !any {
            return Ok(None);
        }
        let mut select = self.connection.prepare_cached(
            "SELECT operations, bytes FROM client WHERE trial = ? AND job = ? ORDER BY client",
        )?;
        let shares = select.query_map((trial, job), |row| {
            Ok(ClientShare {
                operations: row.get::<_, i64>(0)? as u64,
                bytes: Bytes(row.get::<_, i64>(1)? as u64),
            })
        })?;
        measured.clients = shares.collect::<rusqlite::Result<_>>()?;
        let mut select = self
            .connection
            .prepare_cached("SELECT error, operations FROM error WHERE trial = ? AND job = ?")?;
        let errors = select
            .query_map((trial, job), |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
        measured.errors = errors.collect::<rusqlite::Result<_>>()?;
        Ok(Some(measured))
    }

    fn transactions(&self, trial: i64) -> rusqlite::Result<Option<Transactions>> {
        if self.version == 1 {
            return Ok(None);
        }
        let mut all = Transactions::default();
        let counts = |sql: &str| -> rusqlite::Result<Vec<(String, u64)>> {
            let mut select = self.connection.prepare_cached(sql)?;
            let rows =
                select.query_map([trial], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?;
            rows.collect()
        };
        let queries = counts("SELECT kind, queries FROM query WHERE trial = ?")?;
        if queries.is_empty() {
            return Ok(None);
        }
        for (kind, count) in queries {
            match kind.as_str() {
                "read" => all.queries.reads = count,
                "write" => all.queries.writes = count,
                _ => all.queries.others = count,
            }
        }
        let mut select = self.connection.prepare_cached(
            "SELECT type, transactions, rolled_back, service, response FROM transaction_type
             WHERE trial = ?",
        )?;
        let types = select.query_map([trial], |row| {
            let of_type = TransactionMeasurement {
                transactions: row.get::<_, i64>(1)? as u64,
                rolled_back: row.get::<_, i64>(2)? as u64,
                service: from_json(row, 3)?,
                response: match row.get::<_, Option<String>>(4)? {
                    Some(_) => Some(from_json(row, 4)?),
                    None => None,
                },
            };
            Ok((row.get(0)?, of_type))
        })?;
        all.types = types.collect::<rusqlite::Result<_>>()?;
        let clients = counts(
            "SELECT CAST(client AS TEXT), operations FROM client
             WHERE trial = ? AND job = 'transactions' ORDER BY client",
        )?;
        all.clients = clients.into_iter().map(|(_, count)| count).collect();
        let errors =
            counts("SELECT error, operations FROM error WHERE trial = ? AND job = 'transactions'")?;
        all.errors = errors.into_iter().collect();
        let retries = counts("SELECT reason, transactions FROM retry WHERE trial = ?")?;
        all.retries = retries.into_iter().collect();
        let mut select = self.connection.prepare_cached(
            "SELECT name, holds, found FROM database_check WHERE trial = ? ORDER BY rowid",
        )?;
        let checks = select.query_map([trial], |row| {
            Ok(Check { name: row.get(0)?, holds: row.get(1)?, found: row.get(2)? })
        })?;
        all.checks = checks.collect::<rusqlite::Result<_>>()?;
        Ok(Some(all))
    }

    fn seconds(&self, trial: i64) -> rusqlite::Result<Vec<Second>> {
        let transactions = if self.version == 1 { "0" } else { "transactions" };
        let mut select = self.connection.prepare_cached(&format!(
            "SELECT at, reads, writes, bytes, p50_ns, p99_ns, max_ns, {transactions} FROM second
             WHERE trial = ? ORDER BY at",
        ))?;
        let seconds = select.query_map([trial], |row| {
            Ok(Second {
                at: row.get(0)?,
                reads: row.get::<_, i64>(1)? as u64,
                writes: row.get::<_, i64>(2)? as u64,
                bytes: Bytes(row.get::<_, i64>(3)? as u64),
                p50: nanos(row, 4)?,
                p99: nanos(row, 5)?,
                max: nanos(row, 6)?,
                transactions: row.get::<_, i64>(7)? as u64,
            })
        })?;
        seconds.collect()
    }

    fn counters(&self, trial: i64) -> rusqlite::Result<Vec<CounterSample>> {
        let mut select = self.connection.prepare_cached(
            "SELECT at, name, value FROM counter WHERE trial = ? ORDER BY at, rowid",
        )?;
        let mut samples: Vec<CounterSample> = Vec::new();
        let mut rows = select.query([trial])?;
        while let Some(row) = rows.next()? {
            let (at, name, value): (f64, String, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
            // Files before version 3 have iostat's older names.
            let (name, value) = match counters::lookup(&name) {
                Some((counter, scale)) => (counter.id.to_owned(), value * scale),
                None => (name, value),
            };
            match samples.last_mut() {
                Some(sample) if sample.at == at => {
                    sample.values.insert(name, value);
                }
                _ => samples.push(CounterSample { at, values: BTreeMap::from([(name, value)]) }),
            }
        }
        Ok(samples)
    }
}

fn nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    Ok(Nanos(row.get::<_, i64>(column)? as u64))
}

/// A unit variant from its word.
fn from_word<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let word: String = row.get(column)?;
    serde_json::from_value(serde_json::Value::String(word)).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
    })
}
