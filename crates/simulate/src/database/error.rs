//! What of a database workload is not modelled, or cannot be.

use units::Bytes;
use workload::{DatabaseKind, StorageEngine};

/// Why a database workload cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// Another server than MariaDB.
    #[error("{server}: the simulated world models MariaDB only")]
    Server {
        /// The server.
        server: String,
    },
    /// A storage engine without a model for this workload.
    #[error(
        "{kind} with engine {engine} is not modelled: the simulated world has InnoDB, and \
         insert,engine=myisam"
    )]
    Engine {
        /// The workload.
        kind: DatabaseKind,
        /// The engine.
        engine: StorageEngine,
    },
    /// A variable whose value is no size.
    #[error("{name}={text}: {source}")]
    NotASize {
        /// The variable.
        name: &'static str,
        /// Its value.
        text: String,
        /// Why.
        source: units::ParseError,
    },
    /// A variable whose value is no whole number.
    #[error("{name}={text} is not a whole number")]
    NotWhole {
        /// The variable.
        name: &'static str,
        /// Its value.
        text: String,
    },
    /// A number out of range.
    #[error("{name}={value} is out of range: {min} to {max}")]
    Range {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: u64,
        /// The smallest value.
        min: u64,
        /// The largest value.
        max: u64,
    },
    /// A redo log below InnoDB's minimum.
    #[error("innodb_log_file_size={size} is below 4 MiB")]
    LogTooSmall {
        /// The size.
        size: Bytes,
    },
    /// A flush method without a model.
    #[error("innodb_flush_method={method} is not modelled: use O_DIRECT or fsync")]
    FlushMethod {
        /// The method.
        method: String,
    },
    /// A variable without a meaning in the model.
    #[error("the model of this workload has no server variable {name}")]
    UnknownVariable {
        /// The variable.
        name: String,
    },
}
