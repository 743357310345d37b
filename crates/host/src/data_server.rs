//! Whose data folders are known, and why nothing can go beside one.

use serde::{Deserialize, Serialize};

/// Servers whose data folders are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataServer {
    /// MySQL and MariaDB, and what is made of them.
    MySql,
    /// PostgreSQL.
    PostgreSql,
    /// MongoDB.
    MongoDb,
}

impl std::fmt::Display for DataServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            DataServer::MySql => "MySQL or MariaDB",
            DataServer::PostgreSql => "PostgreSQL",
            DataServer::MongoDb => "MongoDB",
        })
    }
}

/// Why no folder above a data folder can have scratch files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// The data folder is where its filesystem is mounted.
    #[error("no folder of its filesystem is outside of it")]
    WholeFilesystem,
    /// This user may not write there.
    #[error("this user may write in no folder above it (sudo may)")]
    NotPermitted,
    /// Files were to be made in this very folder.
    #[error("none can be taken in its place")]
    NotLedBeside,
}
