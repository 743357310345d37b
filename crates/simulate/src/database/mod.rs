//! What database servers do to storage: models of their I/O, by their own parameters.
//!
//! An operation of the measured job is a transaction (an insert, for `insert`). What is modelled is
//! which pages are read and written, when, and who waits for it; what is not: SQL, locks on rows,
//! and processors: a statement's own time is the clients' turnaround.

mod insert;
mod lru;
mod tree;

pub use insert::Insert;

use crate::machine::{Frame, Machine, Step, TaskId};
use device::Device;
use insert::Table;
use plan::{DatabaseKind, StorageEngine, Workload};
use std::collections::BTreeMap;
use units::Bytes;

/// A database whose clients the measured job's are.
#[derive(Clone, Debug, PartialEq)]
pub enum Database {
    /// One row a statement into a MyISAM table with three indexes on random columns.
    Insert(Insert),
}

/// MySQL's and MariaDB's default `key_buffer_size` is smaller; this is what the experiments had.
const KEY_BUFFER_USUAL: Bytes = Bytes::from_mib(128);

impl Database {
    /// Of a workload; none where it has no database. The error says what is not modelled.
    pub fn of(workload: &Workload) -> Result<Option<Database>, String> {
        let Some(job) = &workload.database else { return Ok(None) };
        if job.server.dialect() != plan::Dialect::MySql {
            return Err(format!("{}: the simulated world models MariaDB only", job.server));
        }
        let mut variables = Variables(workload.variables.clone());
        let database = match (job.kind, job.engine) {
            (DatabaseKind::Insert, Some(StorageEngine::MyIsam)) => Database::Insert(Insert {
                key_buffer: variables.bytes("key_buffer_size", KEY_BUFFER_USUAL)?,
                prefill: job.prefill,
            }),
            (kind, engine) => {
                let engine = engine.map_or("the default".to_owned(), |engine| engine.to_string());
                return Err(format!(
                    "{kind} with engine {engine} is not modelled: the simulated world has \
                     insert,engine=myisam"
                ));
            }
        };
        variables.none_left()?;
        Ok(Some(database))
    }
}

/// A server's variables as they were written, each to be taken once.
struct Variables(BTreeMap<String, String>);

impl Variables {
    /// A size, as the server's own command line has it: `2G`.
    fn bytes(&mut self, name: &str, usual: Bytes) -> Result<Bytes, String> {
        let Some(text) = self.0.remove(name) else { return Ok(usual) };
        text.parse().map_err(|error| format!("{name}={text}: {error}"))
    }

    fn none_left(&self) -> Result<(), String> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!(
                "the server's variable {name} has no meaning in the model of this workload"
            )),
        }
    }
}

/// A running server's state.
pub(crate) enum Server {
    Insert(Table),
}

/// What a client's task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A transaction begins.
    Begin,
    /// The next call of its list.
    Go(u32),
}

impl Server {
    /// Sets a server up on a machine: its files are laid out from `span`'s beginning.
    pub fn set_up<D: Device + ?Sized>(
        database: &Database,
        machine: &mut Machine<D>,
        seed: u64,
    ) -> Server {
        match database {
            Database::Insert(insert) => Server::Insert(Table::new(insert, machine, seed)),
        }
    }

    /// What it counts, by name, and whether it is a sum since the beginning.
    pub fn counters(&self) -> Vec<(&'static str, f64, bool)> {
        match self {
            Server::Insert(table) => table.counters(),
        }
    }
}

impl<D: Device + ?Sized> Machine<D> {
    pub(crate) fn serve(&mut self, id: TaskId, stage: Stage) -> Step {
        let Some(mut server) = self.server.take() else { return Step::Done };
        let step = match &mut server {
            Server::Insert(table) => table.serve(self, id, stage),
        };
        self.server = Some(server);
        step
    }
}

/// A call, and the stage after it.
fn then(stage: Stage, call: Frame) -> Step {
    Step::Call(Frame::Server(stage), call)
}
