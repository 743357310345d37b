//! Reading a run file: on any machine, by a newer program too.

use super::{
    Store, StoreError,
    json::{
        bytes, count, finite, from_json, from_json_or_none, from_word, nanos, odd, text,
        text_or_none,
    },
    versions,
};
use crate::{
    Check, ClientShare, CounterSample, Environment, Event, Flaw, GeneratorCost, JobMeasurement,
    Measurement, OperationMeasurement, Outcome, Run, RunState, Second, Session, SharePermille,
    TransactionMeasurement, Transactions, Trial, TrialId, VoidReason, clean,
    flaw::check_run,
    form::{EnvironmentForm, PlanForm},
};
use plan::Plan;
use rusqlite::Row;
use std::collections::BTreeMap;

/// What [`Store::trial`] reads.
const TRIAL_COLUMNS: &str = "trial, round, cell, replica, started_at, outcome, reason, applied,
    span_ns, generator_user_ns, generator_system_ns, generator_threads, generator_busiest_permille, warnings";

/// So many trials are read at once. Whoever writes waits meanwhile: some milliseconds.
const BATCH: usize = 16;

impl Store {
    /// When the run started, in seconds since 1970.
    pub fn started_at(&self) -> Result<i64, StoreError> {
        self.work.allow(&self.path);
        self.connection
            .query_row("SELECT started_at FROM run", [], |row| row.get(0))
            .map_err(|error| self.unreadable(error))
    }

    /// Everything in the file, a few trials at a time, so that a writer need not wait for all of it.
    pub fn read(&self) -> Result<Run, StoreError> {
        self.work.allow(&self.path);
        let run = self.read_all().map_err(|error| self.unreadable(error))?;
        check_run(&run).map_err(|flaw| self.unsound(flaw))?;
        if run.state != RunState::Running && self._writing.is_none() {
            // It holds a lock for as long as it takes; where nobody writes, nobody waits.
            self.look_for_damage()?;
        }
        Ok(run)
    }

    fn look_for_damage(&self) -> Result<(), StoreError> {
        self.work.allow(&self.path);
        let check: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| self.failed(error))?;
        if check == "ok" {
            Ok(())
        } else {
            Err(StoreError::Damaged { path: self.path.clone(), detail: clean(check) })
        }
    }

    /// What cannot be in a run.
    pub(super) fn unsound(&self, flaw: Flaw) -> StoreError {
        StoreError::Unsound { path: self.path.clone(), flaw }
    }

    /// What is there and does not read as it should is damaged.
    pub(super) fn unreadable(&self, error: rusqlite::Error) -> StoreError {
        match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows => {
                let detail = clean(error.to_string());
                StoreError::Damaged { path: self.path.clone(), detail }
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
                    name: text(row, 0)?,
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
                server_program: text_or_none(row, 3)?.map(Into::into),
                environment: self.environment(row, 4)?,
                trials: self.trials(session)?,
                events: self.events(session)?,
            })
        })?;
        run.later = rows.collect::<rusqlite::Result<_>>()?;
        Ok(run)
    }

    /// The rows of a session; before version 4 there is one session alone.
    pub(super) fn of_session(&self, session: i64) -> String {
        if self.version < 4 { String::new() } else { format!("AND session = {session}") }
    }

    fn trials(&self, session: i64) -> rusqlite::Result<Vec<Trial>> {
        let (mut all, mut last) = (Vec::new(), i64::MIN);
        while self.some_trials(session, &mut last, &mut all)? {}
        Ok(all)
    }

    /// Adds the trials of a session that follow the row `last`, some of them; says whether there may be more.
    pub(super) fn some_trials(
        &self,
        session: i64,
        last: &mut i64,
        all: &mut Vec<Trial>,
    ) -> rusqlite::Result<bool> {
        let of_session = self.of_session(session);
        let mut select = self.connection.prepare_cached(&format!(
            "SELECT {TRIAL_COLUMNS} FROM trial WHERE trial > ? {of_session} ORDER BY trial LIMIT {BATCH}"
        ))?;
        let mut rows = select.query([*last])?;
        let before = all.len();
        while let Some(row) = rows.next()? {
            all.push(self.trial(row)?);
            *last = row.get(0)?;
        }
        Ok(all.len() - before == BATCH)
    }

    fn events(&self, session: i64) -> rusqlite::Result<Vec<Event>> {
        let data = if self.version < 3 { "text" } else { "data" };
        let mut events = self.connection.prepare(&format!(
            "SELECT round, cell, kind, {data} FROM event WHERE true {} ORDER BY rowid",
            self.of_session(session)
        ))?;
        let rows = events.query_map([], |row| {
            let round = row.get(0)?;
            let kind = if self.version < 3 {
                versions::event(round, row.get(1)?, text(row, 2)?, text(row, 3)?)
            } else {
                from_json(row, 3)?
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
        Plan::try_from(form).map_err(|error| odd(column, error))
    }

    fn trial(&self, row: &Row<'_>) -> rusqlite::Result<Trial> {
        let id: i64 = row.get(0)?;
        let outcome: String = row.get(5)?;
        let reason = || text_or_none(row, 6).map(Option::unwrap_or_default);
        let outcome = match outcome.as_str() {
            "valid" => Outcome::Valid(Box::new(self.measurement(id, row)?)),
            "void" if self.version < 3 => {
                Outcome::Void { reason: VoidReason::Recorded { text: reason()? } }
            }
            "void" => Outcome::Void { reason: from_json(row, 6)? },
            _ => Outcome::Failed { error: reason()? },
        };
        Ok(Trial {
            id: TrialId { round: row.get(1)?, cell: count(row, 2)? as usize, replica: row.get(3)? },
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
            warnings: if self.version < 3 {
                versions::warnings(from_json(row, 13)?)
            } else {
                from_json(row, 13)?
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
                operations: count(row, 1)?,
                bytes: bytes(row, 2)?,
                service: from_json(row, 3)?,
                response: from_json_or_none(row, 4)?,
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
            Ok(ClientShare { operations: count(row, 0)?, bytes: bytes(row, 1)? })
        })?;
        measured.clients = shares.collect::<rusqlite::Result<_>>()?;
        let mut select = self
            .connection
            .prepare_cached("SELECT error, operations FROM error WHERE trial = ? AND job = ?")?;
        let errors = select.query_map((trial, job), |row| Ok((text(row, 0)?, count(row, 1)?)))?;
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
            let rows = select.query_map([trial], |row| Ok((text(row, 0)?, count(row, 1)?)))?;
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
                transactions: count(row, 1)?,
                rolled_back: count(row, 2)?,
                service: from_json(row, 3)?,
                response: from_json_or_none(row, 4)?,
            };
            Ok((text(row, 0)?, of_type))
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
            Ok(Check { name: text(row, 0)?, holds: row.get(1)?, found: text(row, 2)? })
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
                at: finite(row, 0)?,
                reads: count(row, 1)?,
                writes: count(row, 2)?,
                bytes: bytes(row, 3)?,
                p50: nanos(row, 4)?,
                p99: nanos(row, 5)?,
                max: nanos(row, 6)?,
                transactions: count(row, 7)?,
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
            let (at, name, value) = (finite(row, 0)?, text(row, 1)?, finite(row, 2)?);
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
