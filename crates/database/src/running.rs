//! A server that runs: how to reach it, what it says, whether it still lives.

use crate::encryption::Encryption;
use crate::{
    DatabaseError, Session, SqlError,
    log::Log,
    session::{
        mysql::MySqlSession,
        postgresql::{PostgreSqlSession, SUPERUSER},
    },
};
use host::ServerProcess;
use mysql::OptsBuilder;
use std::path::PathBuf;
use workload::Dialect;

/// The database of a private server: sysbench's default, so that either finds the other's tables.
pub(crate) const DATABASE: &str = "sbtest";

/// Where a server is reached.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A private MariaDB or MySQL.
    MySqlSocket {
        /// Its socket.
        socket: PathBuf,
    },
    /// A private PostgreSQL.
    PostgreSqlSocket {
        /// The folder of its socket.
        folder: PathBuf,
    },
    /// MySQL or MariaDB by URL.
    MySqlUrl(Box<mysql::Opts>),
    /// PostgreSQL by URL.
    PostgreSqlUrl(Box<postgres::Config>, Option<Encryption>),
}

impl Endpoint {
    /// A new connection to the workload's database.
    pub fn connect(&self) -> Result<Box<dyn Session>, SqlError> {
        self.connect_to(Some(DATABASE))
    }

    /// The server's language.
    pub fn dialect(&self) -> Dialect {
        match self {
            Endpoint::MySqlSocket { .. } | Endpoint::MySqlUrl(_) => Dialect::MySql,
            Endpoint::PostgreSqlSocket { .. } | Endpoint::PostgreSqlUrl(..) => Dialect::PostgreSql,
        }
    }

    /// A connection to a database of a private server; without a name, to the one that every server has.
    fn connect_to(&self, database: Option<&str>) -> Result<Box<dyn Session>, SqlError> {
        match self {
            Endpoint::MySqlSocket { socket } => {
                let options = OptsBuilder::new()
                    .socket(Some(socket.display().to_string()))
                    .user(Some("root"))
                    .db_name(database);
                Ok(Box::new(MySqlSession::connect(options)?))
            }
            Endpoint::PostgreSqlSocket { folder } => {
                let mut config = postgres::Config::new();
                config.host_path(folder).user(SUPERUSER).dbname(database.unwrap_or("postgres"));
                Ok(Box::new(PostgreSqlSession::connect(&config, None)?))
            }
            Endpoint::MySqlUrl(options) => {
                let options = OptsBuilder::from_opts((**options).clone());
                Ok(Box::new(MySqlSession::connect(options)?))
            }
            Endpoint::PostgreSqlUrl(config, encryption) => {
                Ok(Box::new(PostgreSqlSession::connect(config, encryption.as_ref())?))
            }
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    process: Option<ServerProcess>,
    /// Where it is reached.
    pub endpoint: Endpoint,
    log: Option<Log>,
    /// `mariadb`, `postgresql`, `mysql`: what its counters and settings begin with.
    pub name: &'static str,
}

impl Running {
    pub(crate) fn private(
        process: ServerProcess,
        endpoint: Endpoint,
        log: Log,
        name: &'static str,
    ) -> Running {
        Running { process: Some(process), endpoint, log: Some(log), name }
    }

    /// One that Spindle did not start.
    pub fn foreign(endpoint: Endpoint) -> Running {
        let name = match endpoint.dialect() {
            Dialect::MySql => "mysql",
            Dialect::PostgreSql => "postgresql",
        };
        Running { process: None, endpoint, log: None, name }
    }

    /// Its process id; `None` for a server that Spindle did not start.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::pid)
    }

    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    pub(crate) fn into_process(self) -> Option<ServerProcess> {
        self.process
    }

    /// How it ended, if it did.
    pub fn ended(&mut self) -> Option<String> {
        self.process.as_mut()?.ended().map(|status| status.to_string())
    }

    pub(crate) fn answers(&self) -> Result<(), SqlError> {
        self.endpoint.connect_to(None).map(drop)
    }

    pub(crate) fn create_database(&self) -> Result<(), DatabaseError> {
        let failed = || DatabaseError::sql("making a database");
        let mut session = self.endpoint.connect_to(None).map_err(failed())?;
        session.script(&format!("CREATE DATABASE {DATABASE}")).map_err(failed())
    }

    /// What its log says of trouble, or last.
    pub fn words(&self) -> String {
        match &self.log {
            Some(log) => log.words(),
            None => "Spindle does not read the log of a server that it did not start".to_owned(),
        }
    }

    /// Trouble that its log tells of.
    pub fn trouble(&self) -> Option<String> {
        self.log.as_ref()?.trouble()
    }

    /// What its variables of these names are now, each with the server's name before its own.
    pub fn variables(&self, names: &[String]) -> Result<Vec<(String, String)>, SqlError> {
        let variables = self.endpoint.connect()?.variables(names)?;
        let named = |(name, value)| (format!("{}.{name}", self.name), value);
        Ok(variables.into_iter().map(named).collect())
    }
}
