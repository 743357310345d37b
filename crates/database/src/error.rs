//! What can go wrong with a database: what, why probably, what to do next.

use crate::SqlError;

/// Trouble with a server or its data.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The user's words do not fit: nothing was changed.
    #[error("{0}")]
    Usage(String),
    /// The server could not be started, or its data not be made.
    #[error("{0}")]
    Server(String),
    /// A trial that does not count, with the server's own words.
    #[error("{0}")]
    Void(String),
    /// A trial failed with an error that every further trial would meet as well, with the server's own
    /// words.
    #[error("the server refused a client, and would in every further trial: {0}")]
    Permanent(String),
    /// A statement outside of trials failed.
    #[error("{doing}: {cause}")]
    Sql {
        /// What was being done.
        doing: String,
        /// What the server said.
        cause: SqlError,
    },
    /// The host.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// A file.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done, and to what.
        doing: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The user said stop.
    #[error("interrupted")]
    Stopped,
}

impl DatabaseError {
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> DatabaseError {
        let doing = doing.into();
        move |source| DatabaseError::Io { doing, source }
    }

    /// An error of a client in a trial.
    pub(crate) fn of_client(error: SqlError, message: String) -> DatabaseError {
        match error {
            SqlError::Permanent(_) => DatabaseError::Permanent(message),
            SqlError::Retry(_)
            | SqlError::Duplicate(_)
            | SqlError::Refused(_)
            | SqlError::Lost(_) => DatabaseError::Void(message),
        }
    }

    pub(crate) fn sql(doing: impl Into<String>) -> impl FnOnce(SqlError) -> DatabaseError {
        let doing = doing.into();
        move |cause| DatabaseError::Sql { doing, cause }
    }
}
