//! What can go wrong with a database server or its data.

use crate::SqlError;
use std::{path::PathBuf, process::ExitStatus};
use units::Nanos;

/// Trouble with a server or its data.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The user's words do not fit: nothing was changed.
    #[error("{0}")]
    Usage(String),
    /// A server's program is not on this host.
    #[error(
        "{program} was not found: install the package {package} (no service needs to run), name the \
         program with --server-program, or choose another server"
    )]
    NotInstalled {
        /// The program.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// The server program that the user named does not exist.
    #[error("--server-program {}: no such file", program.display())]
    NoSuchProgram {
        /// As named.
        program: PathBuf,
    },
    /// A program is another server than its name says.
    #[error(
        "{} is {is}: use server={server} for it, or name {wanted}'s own program with --server-program",
        program.display()
    )]
    OtherServer {
        /// The program.
        program: PathBuf,
        /// What it says it is: `MariaDB 10.11.14`.
        is: String,
        /// The kind of server that was asked for.
        wanted: &'static str,
        /// The kind that it is.
        server: &'static str,
    },
    /// A program's version is not in a known form.
    #[error("{} --version prints no version that is understood: '{text}'", program.display())]
    UnknownVersion {
        /// The program.
        program: PathBuf,
        /// What it printed.
        text: String,
    },
    /// PostgreSQL refuses root, and there is no other user for it.
    #[error(
        "PostgreSQL refuses to run as root, and there is neither a user postgres nor a user nobody: \
         run Spindle as another user"
    )]
    NoUserForServer,
    /// A program that was asked something failed.
    #[error("{program} failed ({status}): {stderr}")]
    ProgramFailed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// A data directory could not be made.
    #[error("{server} could not make its data directory: {words}")]
    NotInitialised {
        /// The server and its version.
        server: String,
        /// What its log says.
        words: String,
    },
    /// A server ended before it answered.
    #[error("{server} did not start ({how}): {words}")]
    NotStarted {
        /// The server and its version.
        server: String,
        /// How it ended.
        how: String,
        /// What its log says.
        words: String,
    },
    /// A server runs and does not answer.
    #[error("{server} does not answer after {waited} ({cause}): {words}")]
    NoAnswer {
        /// The server and its version.
        server: String,
        /// For how long it was asked.
        waited: Nanos,
        /// What its log says.
        words: String,
        /// What the last attempt to connect gave.
        #[source]
        cause: SqlError,
    },
    /// The server's log tells of trouble while data were loaded, so the data cannot be trusted.
    #[error("the log of {server} tells of trouble while data were loaded: {words}")]
    TroubleInLog {
        /// The server and its version.
        server: String,
        /// What its log says.
        words: String,
    },
    /// Data could not be loaded, and the server's log says why.
    #[error("{cause}; the server says: {words}")]
    NotLoaded {
        /// What failed.
        #[source]
        cause: Box<DatabaseError>,
        /// What its log says.
        words: String,
    },
    /// A word that names a storage engine or the like.
    #[error(transparent)]
    Word(#[from] workload::WordError),
    /// The database of a running server holds tables of others.
    #[error(
        "the database of {url} holds {tables} tables that Spindle did not make, such as {example}: \
         name an empty database, or give --use-existing to use its tables and change their content"
    )]
    NotOurs {
        /// The server's URL.
        url: String,
        /// How many tables it holds.
        tables: usize,
        /// One of them.
        example: String,
    },
    /// A server's URL does not say what is needed, or cannot be used.
    #[error("server URL {url}: {problem}; write it like mysql://user@host:3306/database")]
    Url {
        /// As written.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A connection cannot be encrypted as a URL asks for.
    #[error("server URL {url}: {source}")]
    Encryption {
        /// As written.
        url: String,
        /// Why not.
        source: crate::EncryptionError,
    },
    /// A running server cannot be reached, or refuses the user.
    #[error("cannot connect to {url}: {cause}{}", hint(cause))]
    Connect {
        /// The server's URL.
        url: String,
        /// What the server or the connection gave.
        #[source]
        cause: SqlError,
    },
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
        #[source]
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
    /// The user interrupted.
    #[error("interrupted")]
    Stopped,
}

/// Where a password is read from, since a URL is recorded.
pub(crate) const PASSWORD_VARIABLE: &str = "SPINDLE_DATABASE_PASSWORD";

fn hint(cause: &SqlError) -> String {
    match cause {
        SqlError::Lost(_) => "; does the server run there?".to_owned(),
        SqlError::Permanent(_) => {
            format!("; the password is read from the environment variable {PASSWORD_VARIABLE}")
        }
        SqlError::Retry(_) | SqlError::Duplicate(_) | SqlError::Refused(_) => String::new(),
    }
}

/// Why a variable of a server cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// Spindle sets it itself.
    #[error("{name} is set by Spindle: it keeps the private server apart from all others")]
    Reserved {
        /// The variable.
        name: String,
    },
    /// The server does not have it.
    #[error("{server} has no variable {name}{}", did_you_mean(near))]
    Unknown {
        /// The server and its version.
        server: String,
        /// As written.
        name: String,
        /// Up to three of similar names, the nearest first.
        near: Vec<String>,
    },
    /// The server refuses the value, or would take another one in its place.
    #[error("{server} would not take {name}={value}: {complaint}")]
    Value {
        /// The server and its version.
        server: String,
        /// The variable.
        name: String,
        /// The value.
        value: String,
        /// What the server says.
        complaint: String,
    },
}

fn did_you_mean(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

impl DatabaseError {
    /// Whether what the user asked for does not fit this host or the server, and nothing was changed.
    pub fn is_usage(&self) -> bool {
        use DatabaseError as E;
        match self {
            E::Usage(_)
            | E::NotInstalled { .. }
            | E::NoSuchProgram { .. }
            | E::OtherServer { .. }
            | E::UnknownVersion { .. }
            | E::NoUserForServer
            | E::NotOurs { .. }
            | E::Url { .. }
            | E::Encryption { .. }
            | E::Connect { .. }
            | E::Word(_) => true,
            E::ProgramFailed { .. }
            | E::NotInitialised { .. }
            | E::NotStarted { .. }
            | E::NoAnswer { .. }
            | E::TroubleInLog { .. }
            | E::NotLoaded { .. }
            | E::Void(_)
            | E::Permanent(_)
            | E::Sql { .. }
            | E::Host(_)
            | E::Io { .. }
            | E::Stopped => false,
        }
    }

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
