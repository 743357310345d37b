//! What clients of a database do: one file a workload.

pub mod distribution;
pub mod insert;
pub mod oltp;
pub mod text;
pub mod tpcc;

use crate::{DatabaseError, Endpoint, Session, SqlError};
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

    /// Waits for the think time, where there is one.
    fn pause(&mut self, _end: Instant, _over: &AtomicBool) {}

    /// Whether two clients may meet on one new key by the workload's own doing.
    fn expects_duplicates(&self) -> bool {
        false
    }

    /// Rolls back what was begun.
    fn roll_back(&mut self) -> Result<(), SqlError>;

    /// Statements sent since the last call.
    fn take_queries(&mut self) -> Queries;
}

/// A transaction that came through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Its type, by its place in [`Clients::types`]; `None` for one that another client completes.
    pub kind: Option<usize>,
    /// Whether it ended in an intended rollback.
    pub rolled_back: bool,
    /// Since when it waited, where that is before its first statement.
    pub since: Option<Instant>,
}

/// Writes a part's rows and calls the function with how many were written; it returns whether to continue.
type LoadPart =
    Box<dyn FnOnce(&mut dyn Session, &mut dyn FnMut(u64) -> bool) -> Result<(), SqlError> + Send>;

/// Something that can be loaded beside others.
pub(crate) struct Part {
    /// How many rows it has.
    pub rows: u64,
    /// Parts of one lane follow one another.
    pub lane: usize,
    /// Writes them.
    pub load: LoadPart,
}

/// A kind of work: its data, its clients, what must hold after a trial.
///
/// To add one: a file in `workloads/` with a type that implements this, a variant of
/// [`workload::DatabaseKind`] with its line in [`of`], and a page in `docs/reference/workloads/`.
pub trait DatabaseWorkload {
    /// What is loaded, in words that are equal for equal data; the storage engine follows them.
    fn data(&self, job: &DatabaseJob) -> String;

    /// The tables, for people and for removing them.
    fn tables(&self, job: &DatabaseJob) -> Vec<String>;

    /// Makes the tables.
    fn create(&self, session: &mut dyn Session, shape: &Shape, seed: u64) -> Result<(), SqlError>;

    /// What can be loaded side by side.
    fn parts(&self, job: &DatabaseJob, seed: u64) -> Vec<Part>;

    /// What follows once all is loaded: indexes, statistics.
    fn finish(&self, session: &mut dyn Session, job: &DatabaseJob) -> Result<(), SqlError>;

    /// Connects and prepares the clients of a trial.
    fn clients(
        &'static self,
        job: &DatabaseJob,
        endpoint: &Endpoint,
        clients: u32,
        seed: u64,
    ) -> Result<Clients, SqlError>;

    /// What must hold in the data after a trial.
    fn check(&self, _job: &DatabaseJob, _endpoint: &Endpoint) -> Result<Vec<Check>, SqlError> {
        Ok(Vec::new())
    }
}

/// The implementation of each kind.
pub(crate) fn of(kind: DatabaseKind) -> &'static dyn DatabaseWorkload {
    match kind {
        DatabaseKind::OltpReadOnly => &oltp::Oltp { types: ["oltp_read_only"] },
        DatabaseKind::OltpWriteOnly => &oltp::Oltp { types: ["oltp_write_only"] },
        DatabaseKind::OltpReadWrite => &oltp::Oltp { types: ["oltp_read_write"] },
        DatabaseKind::OltpPointSelect => &oltp::Oltp { types: ["oltp_point_select"] },
        DatabaseKind::OltpInsert => &oltp::Oltp { types: ["oltp_insert"] },
        DatabaseKind::Tpcc => &tpcc::Tpcc,
        DatabaseKind::Insert => &insert::MultiIndexInsert,
    }
}

/// All clients of a trial.
pub struct Clients {
    /// Those whose number the user chose.
    pub measured: Vec<Box<dyn Client>>,
    /// Those that do what the measured ones defer.
    pub helpers: Vec<Box<dyn Client>>,
    /// Names of the types of transactions.
    pub types: &'static [&'static str],
    /// What is audited of their inputs.
    pub audit: Option<Arc<tpcc::Audit>>,
}

impl Clients {
    /// Connects and prepares the clients of a job.
    pub fn connect(
        job: &DatabaseJob,
        endpoint: &Endpoint,
        clients: u32,
        seed: u64,
    ) -> Result<Clients, DatabaseError> {
        of(job.kind).clients(job, endpoint, clients, seed).map_err(|error| {
            let message = format!("a client could not begin: {error}");
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
        format!("{}, {}", of(self.job.kind).data(&self.job), self.engine)
    }

    /// The tables, for people and for removing them.
    pub fn tables(&self) -> Vec<String> {
        of(self.job.kind).tables(&self.job)
    }

    /// Makes the tables.
    pub(crate) fn create(&self, session: &mut dyn Session, seed: u64) -> Result<(), SqlError> {
        of(self.job.kind).create(session, self, seed)
    }

    /// What can be loaded side by side.
    pub(crate) fn parts(&self, seed: u64) -> Vec<Part> {
        of(self.job.kind).parts(&self.job, seed)
    }

    /// What follows once all is loaded: indexes, statistics.
    pub(crate) fn finish(&self, session: &mut dyn Session) -> Result<(), SqlError> {
        of(self.job.kind).finish(session, &self.job)
    }
}

/// What must hold in the data after a trial.
pub fn check_data(job: &DatabaseJob, endpoint: &Endpoint) -> Result<Vec<Check>, SqlError> {
    of(job.kind).check(job, endpoint)
}
