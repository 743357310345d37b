//! The database server under a workload.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};
use units::Bytes;

/// Which server runs a database workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// One that is started for the comparison and stopped after it.
    Private(PrivateServer),
    /// One that runs already: `mysql://…`, `mariadb://…`, `postgresql://…`, never with a password.
    Url(String),
}

/// The servers that Spindle can start for itself.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, strum::VariantArray,
)]
pub enum PrivateServer {
    /// MariaDB.
    #[default]
    MariaDb,
    /// MySQL, or Percona Server for MySQL.
    MySql,
    /// PostgreSQL.
    PostgreSql,
}

/// What is known of a kind of server without one at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// As it is written in `server=NAME`, and before its counters and settings in reports.
    pub name: &'static str,
    /// The language that it speaks.
    pub dialect: Dialect,
    /// The storage engines that a workload can name; none where a server has only one.
    pub engines: &'static [StorageEngine],
    /// Space that its logs may take beside the data of a trial.
    pub logs: Bytes,
}

/// The language that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// MariaDB and MySQL.
    MySql,
    /// PostgreSQL.
    PostgreSql,
}

const MYSQL_SCHEMES: [&str; 2] = ["mysql", "mariadb"];
const POSTGRESQL_SCHEMES: [&str; 2] = ["postgresql", "postgres"];

impl PrivateServer {
    /// All, in the order in which to list them.
    pub const ALL: &'static [PrivateServer] = <PrivateServer as strum::VariantArray>::VARIANTS;

    /// What is known of it.
    pub const fn spec(self) -> ServerSpec {
        use StorageEngine::{Aria, InnoDb, MyIsam};
        match self {
            PrivateServer::MariaDb => ServerSpec {
                name: "mariadb",
                dialect: Dialect::MySql,
                engines: &[InnoDb, MyIsam, Aria],
                logs: Bytes::from_mib(512),
            },
            PrivateServer::MySql => ServerSpec {
                name: "mysql",
                dialect: Dialect::MySql,
                engines: &[InnoDb, MyIsam],
                logs: Bytes::from_mib(512),
            },
            PrivateServer::PostgreSql => ServerSpec {
                name: "postgresql",
                dialect: Dialect::PostgreSql,
                engines: &[],
                // Up to max_wal_size, and a checkpoint's worth above it.
                logs: Bytes::from_mib(1536),
            },
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Server::Private(PrivateServer::default())
    }
}

impl Server {
    /// The language that it speaks.
    pub fn dialect(&self) -> Dialect {
        match self {
            Server::Private(kind) => kind.spec().dialect,
            Server::Url(url) => match POSTGRESQL_SCHEMES.iter().any(|name| url.starts_with(name)) {
                true => Dialect::PostgreSql,
                false => Dialect::MySql,
            },
        }
    }

    /// The kinds of server that it may be: MariaDB takes MySQL's URLs, too.
    pub fn products(&self) -> &'static [PrivateServer] {
        match self {
            Server::Private(PrivateServer::MySql) => &[PrivateServer::MySql],
            Server::Private(PrivateServer::MariaDb) => &[PrivateServer::MariaDb],
            Server::Private(PrivateServer::PostgreSql) => &[PrivateServer::PostgreSql],
            Server::Url(_) if self.dialect() == Dialect::PostgreSql => &[PrivateServer::PostgreSql],
            Server::Url(url) if url.starts_with("mariadb") => &[PrivateServer::MariaDb],
            Server::Url(_) => &[PrivateServer::MySql, PrivateServer::MariaDb],
        }
    }

    /// The kind of a private server; `None` for one that runs already.
    pub fn private(&self) -> Option<PrivateServer> {
        match self {
            Server::Private(kind) => Some(*kind),
            Server::Url(_) => None,
        }
    }

    /// Whether it is started for the comparison and stopped after it.
    pub fn is_private(&self) -> bool {
        self.private().is_some()
    }

    /// The storage engines that a workload on it can name.
    pub fn engines(&self) -> &'static [StorageEngine] {
        match (self, self.dialect()) {
            (Server::Private(kind), _) => kind.spec().engines,
            (Server::Url(_), Dialect::MySql) => StorageEngine::ALL,
            (Server::Url(_), Dialect::PostgreSql) => &[],
        }
    }

    /// Space that its logs may take beside the data.
    pub fn logs(&self) -> Bytes {
        match (self, self.dialect()) {
            (Server::Private(kind), _) => kind.spec().logs,
            (Server::Url(_), Dialect::MySql) => PrivateServer::MySql.spec().logs,
            (Server::Url(_), Dialect::PostgreSql) => PrivateServer::PostgreSql.spec().logs,
        }
    }
}

/// `mariadb`, `mysql`, `postgresql`, or the URL of a server that runs already.
impl FromStr for Server {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        if let Some(kind) = PrivateServer::ALL.iter().find(|kind| kind.spec().name == text) {
            return Ok(Server::Private(*kind));
        }
        let known =
            |scheme| MYSQL_SCHEMES.contains(&scheme) || POSTGRESQL_SCHEMES.contains(&scheme);
        let Some((_, rest)) = text.split_once("://").filter(|(scheme, _)| known(scheme)) else {
            let names: Vec<&str> = PrivateServer::ALL.iter().map(|kind| kind.spec().name).collect();
            return Err(WordError::new(format!(
                "unknown server '{text}': write {} for a private one, or the URL of one that runs, \
                 such as mysql://user@host:3306/database",
                names.join(", ")
            )));
        };
        let user = rest.split_once('@').map_or("", |(user, _)| user);
        if user.contains(':') {
            return Err(WordError::new(
                "a password in a server's URL would be written into the run file: leave it out, and \
                 set SPINDLE_DATABASE_PASSWORD in the environment"
                    .to_owned(),
            ));
        }
        Ok(Server::Url(text.to_owned()))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Server::Private(kind) => kind.spec().name,
            Server::Url(url) => url,
        })
    }
}

word_serde!(Server);

/// MariaDB's and MySQL's storage engines that Spindle knows.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, strum::VariantArray,
)]
pub enum StorageEngine {
    /// Transactional, pages of 16 KiB.
    #[default]
    InnoDb,
    /// Index blocks of 1 KiB in a key buffer, rows through the page cache; no transactions.
    MyIsam,
    /// MariaDB's crash-safe successor to MyISAM: pages of 8 KiB.
    Aria,
}

impl StorageEngine {
    /// All.
    pub const ALL: &'static [StorageEngine] = <StorageEngine as strum::VariantArray>::VARIANTS;

    /// Whether ROLLBACK undoes what was done.
    pub fn is_transactional(self) -> bool {
        self == StorageEngine::InnoDb
    }
}

/// `innodb`, `myisam`, `aria`; in any case of letters, as the server takes them.
impl FromStr for StorageEngine {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let lower = text.to_ascii_lowercase();
        StorageEngine::ALL.iter().copied().find(|engine| engine.to_string() == lower).ok_or_else(
            || {
                WordError::new(format!(
                    "storage engine '{text}' is not known: write innodb, myisam or aria"
                ))
            },
        )
    }
}

impl fmt::Display for StorageEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            StorageEngine::InnoDb => "innodb",
            StorageEngine::MyIsam => "myisam",
            StorageEngine::Aria => "aria",
        })
    }
}

word_serde!(StorageEngine);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_read_back_as_written() {
        for text in
            ["mariadb", "mysql", "postgresql", "mysql://root@db:3306/test", "postgresql://u@h/test"]
        {
            assert_eq!(text.parse::<Server>().unwrap().to_string(), text);
        }
        assert_eq!("postgres://h/d".parse::<Server>().unwrap().dialect(), Dialect::PostgreSql);
        let error = "mysql://root:secret@db/test".parse::<Server>().unwrap_err().to_string();
        assert!(
            !error.contains("secret") && error.contains("SPINDLE_DATABASE_PASSWORD"),
            "{error}"
        );
        assert!("oracle".parse::<Server>().is_err());
    }

    #[test]
    fn storage_engines_in_any_case() {
        assert_eq!("InnoDB".parse::<StorageEngine>().unwrap(), StorageEngine::InnoDb);
        assert!("ndb".parse::<StorageEngine>().is_err());
    }
}
