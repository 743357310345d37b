//! A server that runs: how to reach it, what it says, whether it still lives.

use crate::{
    DatabaseError, Session, SqlError, log,
    servers::postgresql::SUPERUSER,
    session::{mysql::MySqlSession, postgresql::PostgreSqlSession},
};
use host::ServerProcess;
use mysql::OptsBuilder;
use std::path::{Path, PathBuf};
use workload::Dialect;

/// The database of a private server: sysbench's usual one, so that either finds the other's tables.
pub(crate) const DATABASE: &str = "sbtest";

/// Where a server is reached.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A private MariaDB.
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
    PostgreSqlUrl(Box<postgres::Config>),
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
            Endpoint::PostgreSqlSocket { .. } | Endpoint::PostgreSqlUrl(_) => Dialect::PostgreSql,
        }
    }

    /// A connection to a database of a private server, or to its own where there is none yet.
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
                Ok(Box::new(PostgreSqlSession::connect(&config)?))
            }
            Endpoint::MySqlUrl(options) => {
                let options = OptsBuilder::from_opts((**options).clone());
                Ok(Box::new(MySqlSession::connect(options)?))
            }
            Endpoint::PostgreSqlUrl(config) => Ok(Box::new(PostgreSqlSession::connect(config)?)),
        }
    }
}

/// A server that runs.
#[derive(Debug)]
pub struct Running {
    process: Option<ServerProcess>,
    /// Where it is reached.
    pub endpoint: Endpoint,
    log: Option<PathBuf>,
    /// `mariadb`, `postgresql`, `mysql`: what its counters and settings begin with.
    pub name: &'static str,
}

impl Running {
    pub(crate) fn private(
        process: ServerProcess,
        endpoint: Endpoint,
        log: PathBuf,
        name: &'static str,
    ) -> Running {
        Running { process: Some(process), endpoint, log: Some(log), name }
    }

    /// One that is not ours.
    pub fn foreign(endpoint: Endpoint) -> Running {
        let name = match endpoint.dialect() {
            Dialect::MySql => "mysql",
            Dialect::PostgreSql => "postgresql",
        };
        Running { process: None, endpoint, log: None, name }
    }

    /// Its number, where it is ours.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(ServerProcess::pid)
    }

    pub(crate) fn log(&self) -> Option<&Path> {
        self.log.as_deref()
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
        let told = || DatabaseError::sql("making a database");
        let mut session = self.endpoint.connect_to(None).map_err(told())?;
        session.script(&format!("CREATE DATABASE {DATABASE}")).map_err(told())
    }

    /// What it says of trouble, or last.
    pub fn words(&self) -> String {
        match &self.log {
            Some(log) => log::trouble(log).unwrap_or_else(|| log::last_words(log)),
            None => "its log is not ours to read".to_owned(),
        }
    }

    /// Trouble that it told of in its log.
    pub fn trouble(&self) -> Option<String> {
        log::trouble(self.log.as_deref()?)
    }

    /// What its variables of these names are now.
    pub fn variables(&self, names: &[String]) -> Result<Vec<(String, String)>, SqlError> {
        let mut session = self.endpoint.connect()?;
        let list: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        let list = list.join(", ");
        let rows = session.ask(&match session.dialect() {
            Dialect::MySql => format!("SHOW GLOBAL VARIABLES WHERE variable_name IN ({list})"),
            Dialect::PostgreSql => format!(
                "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({list})"
            ),
        })?;
        let mut found: Vec<(String, String)> = rows
            .into_iter()
            .filter_map(|row| match row.as_slice() {
                [Some(name), value] => Some((
                    format!("{}.{}", self.name, name.to_lowercase()),
                    value.clone().unwrap_or_default(),
                )),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        Ok(found)
    }
}
