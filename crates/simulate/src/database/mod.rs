//! What database servers do to storage: models of their I/O, by their own parameters.
//!
//! An operation of the measured job is a transaction (an insert, for `insert`). What is modelled is
//! which pages are read and written, when, and who waits for it; what is not: SQL, locks on rows,
//! and processors: a statement's own time is the clients' turnaround.

mod error;
mod innodb;
mod insert;
mod lru;
mod rows;
mod tree;
mod work;

pub use error::DatabaseError;
pub use innodb::InnoDb;
pub use insert::Insert;

use crate::machine::{Frame, Machine, Server, Step};
use crate::stage::Stage;
use device::Device;
use innodb::Engine;
use insert::Table;
use std::collections::BTreeMap;
use units::Bytes;
use workload::{DatabaseJob, DatabaseKind, StorageEngine, Workload};

/// A database, whose clients are those of the measured job.
#[derive(Clone, Debug, PartialEq)]
pub enum Database {
    /// One row a statement into a MyISAM table with three indexes on random columns.
    Insert(Insert),
    /// Transactions on InnoDB tables.
    InnoDb(Box<InnoDb>),
}

/// The default of the model, larger than the server's: what the published experiments had. Documented:
/// docs/science/classics.md.
const DEFAULT_KEY_BUFFER: Bytes = Bytes::from_mib(128);

impl Database {
    /// The database of a workload, if it has one. The error says what is not modelled.
    pub fn of(workload: &Workload) -> Result<Option<Database>, DatabaseError> {
        let Some(job) = &workload.database else { return Ok(None) };
        if job.server.dialect() != workload::Dialect::MySql {
            return Err(DatabaseError::Server { server: job.server.to_string() });
        }
        let mut variables = Variables(workload.variables.clone());
        let database = match (job.kind, job.engine) {
            (DatabaseKind::Insert, Some(StorageEngine::MyIsam)) => Database::Insert(Insert {
                key_buffer: variables.bytes("key_buffer_size", DEFAULT_KEY_BUFFER)?,
                prefill: job.prefill,
            }),
            (_, None | Some(StorageEngine::InnoDb)) => {
                Database::InnoDb(Box::new(variables.innodb(job)?))
            }
            (kind, Some(engine)) => {
                return Err(DatabaseError::Engine { kind, engine });
            }
        };
        variables.none_left()?;
        Ok(Some(database))
    }

    /// Its server, set up on a machine: its files begin where the machine's free space does.
    pub(crate) fn start<D: Device + ?Sized>(
        &self,
        machine: &mut Machine<D>,
        seed: u64,
    ) -> Box<dyn Server<D>> {
        match self {
            Database::Insert(insert) => Box::new(Table::new(insert, machine, seed)),
            Database::InnoDb(spec) => Box::new(Engine::new(spec, machine, seed)),
        }
    }
}

/// A server's variables as the user wrote them; each is taken once.
struct Variables(BTreeMap<String, String>);

impl Variables {
    /// A size as on the server's command line: `2G`.
    fn bytes(&mut self, name: &'static str, default: Bytes) -> Result<Bytes, DatabaseError> {
        let Some(text) = self.0.remove(name) else { return Ok(default) };
        text.parse().map_err(|source| DatabaseError::NotASize { name, text, source })
    }

    fn number(&mut self, name: &'static str, default: u64) -> Result<u64, DatabaseError> {
        let Some(text) = self.0.remove(name) else { return Ok(default) };
        text.parse().map_err(|_| DatabaseError::NotWhole { name, text })
    }

    fn word(&mut self, name: &str, default: &str) -> String {
        self.0.remove(name).unwrap_or(default.to_owned()).to_ascii_uppercase()
    }

    /// InnoDB's variables. Defaults documented: MariaDB 10.11's manual.
    fn innodb(&mut self, job: &DatabaseJob) -> Result<InnoDb, DatabaseError> {
        let pool = self.bytes("innodb_buffer_pool_size", Bytes::from_mib(128))?;
        let io_capacity = self.number("innodb_io_capacity", 200)?.max(1);
        let default_max = (2 * io_capacity).max(2000);
        let spec = InnoDb {
            job: job.clone(),
            buffer_pool: job.buffer_pool.unwrap_or(pool),
            io_capacity,
            io_capacity_max: self.number("innodb_io_capacity_max", default_max)?.max(1),
            flush_log: self.number("innodb_flush_log_at_trx_commit", 1)?,
            doublewrite: !["0", "OFF"].contains(&self.word("innodb_doublewrite", "ON").as_str()),
            log: self.bytes("innodb_log_file_size", Bytes::from_mib(96))?,
            direct: match self.word("innodb_flush_method", "O_DIRECT").as_str() {
                "O_DIRECT" => true,
                "FSYNC" => false,
                other => return Err(DatabaseError::FlushMethod { method: other.to_owned() }),
            },
            dirty_percent: self.number("innodb_max_dirty_pages_pct", 90)?,
        };
        if spec.flush_log > 2 {
            let name = "innodb_flush_log_at_trx_commit";
            return Err(DatabaseError::Range { name, value: spec.flush_log, min: 0, max: 2 });
        }
        if spec.log < Bytes::from_mib(4) {
            return Err(DatabaseError::LogTooSmall { size: spec.log });
        }
        if !(1..=99).contains(&spec.dirty_percent) {
            let name = "innodb_max_dirty_pages_pct";
            return Err(DatabaseError::Range { name, value: spec.dirty_percent, min: 1, max: 99 });
        }
        Ok(spec)
    }

    fn none_left(&self) -> Result<(), DatabaseError> {
        match self.0.keys().next() {
            None => Ok(()),
            Some(name) => Err(DatabaseError::UnknownVariable { name: name.clone() }),
        }
    }
}

/// A call, and the stage after it.
fn then(stage: Stage, call: Frame) -> Step {
    Step::Call(Frame::Server(stage), call)
}
