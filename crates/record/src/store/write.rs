//! Writing a run file.

use super::{
    APPLICATION_ID, SCHEMA_VERSION, Store, StoreError, Waiting, WaitsFor, claim,
    events::{SCHEMA_OF_EVENTS, write_events},
    explain,
    guarded::guarded,
    imports::write_imported,
    json::json,
    schema::{SCHEMA, SCHEMA_OF_DATABASES, SCHEMA_OF_IMPORTS, SCHEMA_OF_SESSIONS},
    wait::wait,
};
use crate::{
    Environment, Event, JobMeasurement, Measurement, Outcome, Queries, RunState, Session,
    Transactions, Trial,
    form::{EnvironmentForm, PlanForm},
};
use plan::Plan;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use std::{fs::File, path::Path};

impl Store {
    /// Makes a new file for a run. What is there already is never overwritten.
    pub fn create(
        path: &Path,
        name: &str,
        started_at: i64,
        environment: &Environment,
        plan: &Plan,
    ) -> Result<Store, StoreError> {
        // Claims the name, so that two programs cannot both take it.
        let claimed = match File::create_new(path).and_then(|_| File::open(path)) {
            Ok(file) => claim(path, file)?,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(StoreError::Exists { path: path.to_owned() });
            }
            Err(error) => {
                let cause = rusqlite::Error::ToSqlConversionFailure(Box::new(error));
                return Err(StoreError::Sqlite { path: path.to_owned(), cause });
            }
        };
        let made = Store::begin_new(path, claimed, name, started_at, environment, plan);
        made.map_err(|error| {
            // It is this program's own, and holds nothing: if it stays, `spindle runs` shows it as empty.
            let _ = std::fs::remove_file(path);
            explain(path, error)
        })
    }

    fn begin_new(
        path: &Path,
        claimed: File,
        name: &str,
        started_at: i64,
        environment: &Environment,
        plan: &Plan,
    ) -> rusqlite::Result<Store> {
        let (mut connection, work) = guarded(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        wait(&mut connection, path, WaitsFor::Readers, Waiting::default())?;
        let mut store = Store {
            connection,
            work,
            path: path.to_owned(),
            version: SCHEMA_VERSION,
            session: 0,
            _copy: None,
            _writing: Some(claimed),
        };
        store.write_new(name, started_at, environment, plan)?;
        Ok(store)
    }

    /// Says what ends the waiting for those who read the file, and who is told of it.
    pub fn set_waiting(&mut self, waiting: Waiting) -> Result<(), StoreError> {
        wait(&mut self.connection, &self.path, WaitsFor::Readers, waiting)
            .map_err(|error| explain(&self.path, error))
    }

    fn write_new(
        &mut self,
        name: &str,
        started_at: i64,
        environment: &Environment,
        plan: &Plan,
    ) -> rusqlite::Result<()> {
        self.work.unbounded();
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        let transaction = begin(&mut self.connection)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        transaction.execute_batch(SCHEMA)?;
        transaction.execute_batch(SCHEMA_OF_DATABASES)?;
        transaction.execute_batch(SCHEMA_OF_EVENTS)?;
        transaction.execute_batch(SCHEMA_OF_SESSIONS)?;
        transaction.execute_batch(SCHEMA_OF_IMPORTS)?;
        transaction.execute(
            "INSERT INTO run (name, started_at, state, environment, plan) VALUES (?, ?, ?, ?, ?)",
            params![
                name,
                started_at,
                "running",
                json(&EnvironmentForm::from(environment))?,
                json(&PlanForm::from(plan))?
            ],
        )?;
        for (place, cell) in plan.cells.iter().enumerate() {
            transaction.execute(
                "INSERT INTO cell (cell, baseline, label) VALUES (?, ?, ?)",
                params![place as i64, cell.baseline.map(|b| b as i64), cell.label(&plan.factors)],
            )?;
            for (factor, level) in &cell.levels {
                transaction.execute(
                    "INSERT INTO cell_level (cell, factor, level) VALUES (?, ?, ?)",
                    params![place as i64, factor.to_string(), level.0],
                )?;
            }
        }
        transaction.commit()
    }

    /// Adds a trial, whole and durable when this returns. Where others read the file it waits for them.
    pub fn add_trial(&mut self, trial: &Trial) -> Result<(), StoreError> {
        self.work.unbounded();
        self.write_trial(trial).map_err(|error| self.failed(error))
    }

    fn write_trial(&mut self, trial: &Trial) -> rusqlite::Result<()> {
        let transaction = begin(&mut self.connection)?;
        let (outcome, reason, measurement) = match &trial.outcome {
            Outcome::Valid(measurement) => ("valid", None, Some(measurement)),
            Outcome::Void { reason } => ("void", Some(json(reason)?), None),
            Outcome::Failed { error } => ("failed", Some(error.clone()), None),
        };
        transaction.execute(
            "INSERT INTO trial (round, cell, replica, started_at, outcome, reason, applied, span_ns,
             generator_user_ns, generator_system_ns, generator_threads,
             generator_busiest_permille, warnings, session)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                trial.id.round,
                trial.id.cell as i64,
                trial.id.replica,
                trial.started_at,
                outcome,
                reason,
                json(&trial.applied)?,
                measurement.map(|m| m.span.0 as i64),
                measurement.map(|m| m.generator.user.0 as i64),
                measurement.map(|m| m.generator.system.0 as i64),
                measurement.map(|m| m.generator.threads),
                measurement.map(|m| m.generator.busiest.0),
                measurement.map(|m| json(&m.warnings)).transpose()?,
                self.session,
            ],
        )?;
        if let Some(measurement) = measurement {
            write_measurement(&transaction, transaction.last_insert_rowid(), measurement)?;
        }
        transaction.commit()
    }

    /// Adds an event.
    pub fn add_event(&mut self, event: &Event) -> Result<(), StoreError> {
        self.work.unbounded();
        self.write_event(event).map_err(|error| self.failed(error))
    }

    fn write_event(&self, event: &Event) -> rusqlite::Result<()> {
        let (kind, cell) = event.kind.columns();
        self.connection
            .execute(
                "INSERT INTO event (round, cell, kind, data, session) VALUES (?, ?, ?, ?, ?)",
                params![
                    event.round,
                    cell.map(|cell| cell as i64),
                    kind,
                    json(&event.kind)?,
                    self.session
                ],
            )
            .map(drop)
    }

    /// Begins another session: what is added from now on belongs to it. What there is stays as it is.
    pub fn begin_session(&mut self, session: &Session) -> Result<(), StoreError> {
        self.work.unbounded();
        self.write_session(session).map_err(|error| self.failed(error))
    }

    fn write_session(&mut self, session: &Session) -> rusqlite::Result<()> {
        let transaction = begin(&mut self.connection)?;
        transaction.execute(
            "INSERT INTO session (session, factor, started_at, server_program, environment)
             VALUES (?, ?, ?, ?, ?)",
            params![
                self.session + 1,
                session.factor.to_string(),
                session.started_at,
                session.server_program.as_ref().map(|path| path.to_string_lossy().into_owned()),
                json(&EnvironmentForm::from(&session.environment))?,
            ],
        )?;
        transaction.execute("UPDATE run SET state = ?", params![word(&RunState::Running)])?;
        transaction.commit()?;
        self.session += 1;
        Ok(())
    }

    /// Whether a later session than the first is written.
    pub fn writes_later_session(&self) -> bool {
        self.session > 0
    }

    /// Takes away the session that was begun last, if it has no trials; says whether it did.
    pub fn drop_empty_session(&mut self) -> Result<bool, StoreError> {
        self.work.unbounded();
        self.remove_empty_session().map_err(|error| self.failed(error))
    }

    fn remove_empty_session(&mut self) -> rusqlite::Result<bool> {
        let session = self.session;
        let transaction = begin(&mut self.connection)?;
        let trials: i64 = transaction.query_row(
            "SELECT count(*) FROM trial WHERE session = ?",
            params![session],
            |row| row.get(0),
        )?;
        if session == 0 || trials > 0 {
            return Ok(false);
        }
        transaction.execute("DELETE FROM event WHERE session = ?", params![session])?;
        transaction.execute("DELETE FROM session WHERE session = ?", params![session])?;
        transaction.commit()?;
        self.session -= 1;
        Ok(true)
    }

    /// Records the plan anew: a pilot has chosen its timing.
    pub fn set_plan(&mut self, plan: &Plan) -> Result<(), StoreError> {
        self.work.unbounded();
        let text = json(&PlanForm::from(plan)).map_err(|error| self.failed(error))?;
        self.connection
            .execute("UPDATE run SET plan = ?", params![text])
            .map(drop)
            .map_err(|error| self.failed(error))
    }

    /// Says how the run stands.
    pub fn set_state(&mut self, state: RunState) -> Result<(), StoreError> {
        self.work.unbounded();
        self.connection
            .execute("UPDATE run SET state = ?", params![word(&state)])
            .map(drop)
            .map_err(|error| self.failed(error))
    }
}

/// Begins a transaction that writes: at once, so that what it waits for is waited for here and at its commit alone.
pub(super) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

fn write_measurement(
    transaction: &Transaction<'_>,
    trial: i64,
    measurement: &Measurement,
) -> rusqlite::Result<()> {
    write_job(transaction, trial, "job", &measurement.job)?;
    if let Some(background) = &measurement.background {
        write_job(transaction, trial, "background", background)?;
    }
    if let Some(transactions) = &measurement.transactions {
        write_transactions(transaction, trial, transactions)?;
    }
    let mut insert = transaction.prepare(
        "INSERT INTO second (trial, at, reads, writes, bytes, p50_ns, p99_ns, max_ns, transactions)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for second in &measurement.seconds {
        insert.execute(params![
            trial,
            second.at,
            second.reads as i64,
            second.writes as i64,
            second.bytes.0 as i64,
            second.p50.0 as i64,
            second.p99.0 as i64,
            second.max.0 as i64,
            second.transactions as i64,
        ])?;
    }
    let mut insert =
        transaction.prepare("INSERT INTO counter (trial, at, name, value) VALUES (?, ?, ?, ?)")?;
    for sample in &measurement.counters {
        for (name, value) in &sample.values {
            insert.execute(params![trial, sample.at, name, value])?;
        }
    }
    if let Some(imported) = &measurement.imported {
        write_imported(transaction, trial, imported)?;
    }
    match &measurement.events {
        Some(events) => write_events(transaction, trial, events),
        None => Ok(()),
    }
}

fn write_job(
    transaction: &Transaction<'_>,
    trial: i64,
    job: &str,
    measured: &JobMeasurement,
) -> rusqlite::Result<()> {
    let kinds = [("read", &measured.reads), ("write", &measured.writes), ("sync", &measured.syncs)];
    for (kind, operations) in kinds {
        transaction.execute(
            "INSERT INTO operation (trial, job, kind, operations, bytes, service, response)
             VALUES (?, ?, ?, ?, ?, ?, ?)",
            params![
                trial,
                job,
                kind,
                operations.operations as i64,
                operations.bytes.0 as i64,
                json(&operations.service)?,
                operations.response.as_ref().map(json).transpose()?,
            ],
        )?;
    }
    for (client, share) in measured.clients.iter().enumerate() {
        transaction.execute(
            "INSERT INTO client (trial, job, client, operations, bytes) VALUES (?, ?, ?, ?, ?)",
            params![trial, job, client as i64, share.operations as i64, share.bytes.0 as i64],
        )?;
    }
    for (error, count) in &measured.errors {
        transaction.execute(
            "INSERT INTO error (trial, job, error, operations) VALUES (?, ?, ?, ?)",
            params![trial, job, error, *count as i64],
        )?;
    }
    Ok(())
}

fn write_transactions(
    transaction: &Transaction<'_>,
    trial: i64,
    measured: &Transactions,
) -> rusqlite::Result<()> {
    for (name, of_type) in &measured.types {
        transaction.execute(
            "INSERT INTO transaction_type (trial, type, transactions, rolled_back, service, response)
             VALUES (?, ?, ?, ?, ?, ?)",
            params![
                trial,
                name,
                of_type.transactions as i64,
                of_type.rolled_back as i64,
                json(&of_type.service)?,
                of_type.response.as_ref().map(json).transpose()?,
            ],
        )?;
    }
    let Queries { reads, writes, others } = measured.queries;
    for (kind, queries) in [("read", reads), ("write", writes), ("other", others)] {
        transaction.execute(
            "INSERT INTO query (trial, kind, queries) VALUES (?, ?, ?)",
            params![trial, kind, queries as i64],
        )?;
    }
    for (client, completed) in measured.clients.iter().enumerate() {
        transaction.execute(
            "INSERT INTO client (trial, job, client, operations, bytes)
             VALUES (?, 'transactions', ?, ?, 0)",
            params![trial, client as i64, *completed as i64],
        )?;
    }
    for (error, count) in &measured.errors {
        transaction.execute(
            "INSERT INTO error (trial, job, error, operations) VALUES (?, 'transactions', ?, ?)",
            params![trial, error, *count as i64],
        )?;
    }
    for (reason, count) in &measured.retries {
        transaction.execute(
            "INSERT INTO retry (trial, reason, transactions) VALUES (?, ?, ?)",
            params![trial, reason, *count as i64],
        )?;
    }
    for check in &measured.checks {
        transaction.execute(
            "INSERT INTO database_check (trial, name, holds, found) VALUES (?, ?, ?, ?)",
            params![trial, check.name, check.holds, check.found],
        )?;
    }
    Ok(())
}

/// A unit variant's word, as serde spells it.
fn word<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default().trim_matches('"').to_owned()
}
