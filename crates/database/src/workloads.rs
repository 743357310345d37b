//! What clients of a database do: one file a workload.

pub mod distribution;
pub mod insert;
pub mod oltp;
pub mod text;
pub mod tpcc;

use crate::{DatabaseError, Endpoint, Session, SqlError, loading::Part};
use record::{Check, Queries};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};
use workload::{DatabaseJob, DatabaseKind, StorageEngine};

/// One client of a workload, with its connection.
pub trait Client: Send {
    /// Draws the next transaction's inputs, waiting for its keying time where there is one; false
    /// when there is nothing more to do.
    fn draw(&mut self, end: Instant, over: &AtomicBool) -> bool;

    /// Runs the transaction with the inputs drawn; called again with the same after a rollback.
    fn run(&mut self) -> Result<Done, SqlError>;

    /// Waits as long as a person would think; without think times not at all.
    fn pause(&mut self, _end: Instant, _over: &AtomicBool) {}

    /// Whether two clients may meet on one new key by the workload's own doing.
    fn expects_duplicates(&self) -> bool {
        false
    }

    /// Rolls back what was begun.
    fn roll_back(&mut self) -> Result<(), SqlError>;

    /// Statements sent so far; begins anew.
    fn take_queries(&mut self) -> Queries;
}

/// A transaction that came through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Its type, by its place in [`Crowd::types`]; none for one that another client completes.
    pub kind: Option<usize>,
    /// Whether it ended in an intended rollback.
    pub rolled_back: bool,
    /// Since when it waited, where that is before its first statement.
    pub since: Option<Instant>,
}

/// All clients of a trial.
pub struct Crowd {
    /// Those whose number the user chose.
    pub clients: Vec<Box<dyn Client>>,
    /// Those that do what the others hand on.
    pub helpers: Vec<Box<dyn Client>>,
    /// Names of the types of transactions.
    pub types: &'static [&'static str],
    /// What is audited of their inputs.
    pub audit: Option<Arc<tpcc::Audit>>,
}

impl Crowd {
    /// Connects and prepares all.
    pub fn gather(
        job: &DatabaseJob,
        endpoint: &Endpoint,
        clients: u32,
        seed: u64,
    ) -> Result<Crowd, DatabaseError> {
        let gathered = match job.kind {
            DatabaseKind::Tpcc => tpcc::crowd(job, endpoint, clients, seed),
            DatabaseKind::Insert => insert::crowd(job, endpoint, clients, seed),
            _ => oltp::crowd(job, endpoint, clients, seed),
        };
        gathered.map_err(|error| {
            let message = format!("a client: {error}");
            DatabaseError::of_client(error, message)
        })
    }
}

/// What is loaded: jobs of the same shape run on the same data.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The job that is loaded for.
    pub job: DatabaseJob,
    /// The tables' storage engine, where the server has such.
    pub engine: StorageEngine,
}

impl Shape {
    /// Of a job; `default` is the server's own storage engine.
    pub fn of(job: &DatabaseJob, default: StorageEngine) -> Shape {
        Shape { job: job.clone(), engine: job.engine.unwrap_or(default) }
    }

    /// In words that are equal for equal data.
    pub fn key(&self) -> String {
        let job = &self.job;
        let engine = self.engine;
        match job.kind {
            DatabaseKind::Tpcc => format!("tpcc, {} warehouses, {engine}", job.warehouses),
            DatabaseKind::Insert => {
                format!("insert, {} rows of 0..{}, {engine}", job.prefill, job.span)
            }
            _ => format!("oltp, {} tables of {} rows, {engine}", job.tables, job.rows),
        }
    }

    /// The tables, for people and for taking them away.
    pub fn tables(&self) -> Vec<String> {
        match self.job.kind {
            DatabaseKind::Tpcc => tpcc::schema::TABLES.map(str::to_owned).to_vec(),
            DatabaseKind::Insert => vec![insert::TABLE.to_owned()],
            _ => (1..=self.job.tables).map(|n| format!("sbtest{n}")).collect(),
        }
    }

    /// Makes the tables.
    pub(crate) fn create(&self, session: &mut dyn Session, seed: u64) -> Result<(), SqlError> {
        match self.job.kind {
            DatabaseKind::Tpcc => tpcc::schema::create(session, seed),
            DatabaseKind::Insert => insert::create(session, self.engine),
            _ => oltp::create(session, self.job.tables, self.engine),
        }
    }

    /// What can be loaded side by side.
    pub(crate) fn parts(&self, seed: u64) -> Vec<Part> {
        match self.job.kind {
            DatabaseKind::Tpcc => tpcc::load::parts(self.job.warehouses, seed),
            DatabaseKind::Insert => insert::parts(self.job.prefill, self.job.span, seed),
            _ => oltp::parts(self.job.tables, self.job.rows, seed),
        }
    }

    /// What follows once all is loaded: indexes, statistics.
    pub(crate) fn finish(&self, session: &mut dyn Session) -> Result<(), SqlError> {
        match self.job.kind {
            DatabaseKind::Tpcc => tpcc::schema::finish(session),
            DatabaseKind::Insert => Ok(()),
            _ => oltp::finish(session, self.job.tables),
        }
    }
}

/// What holds in the data after a trial.
pub fn check_data(job: &DatabaseJob, endpoint: &Endpoint) -> Result<Vec<Check>, SqlError> {
    match job.kind {
        DatabaseKind::Tpcc => {
            let mut session = endpoint.connect()?;
            tpcc::conditions::check(session.as_mut(), job.all_checks)
        }
        _ => Ok(Vec::new()),
    }
}
