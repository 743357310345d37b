//! The database server under a workload.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// Which server runs a database workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Server {
    /// A private MariaDB.
    #[default]
    MariaDb,
    /// A private PostgreSQL.
    PostgreSql,
    /// One that runs already: `mysql://…`, `mariadb://…`, `postgresql://…`, never with a password.
    Url(String),
}

/// The language that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// MariaDB and MySQL.
    MySql,
    /// PostgreSQL.
    PostgreSql,
}

const MYSQL: [&str; 2] = ["mysql", "mariadb"];
const POSTGRESQL: [&str; 2] = ["postgresql", "postgres"];

impl Server {
    /// The language that it speaks.
    pub fn dialect(&self) -> Dialect {
        match self {
            Server::MariaDb => Dialect::MySql,
            Server::PostgreSql => Dialect::PostgreSql,
            Server::Url(url) => match POSTGRESQL.iter().any(|name| url.starts_with(name)) {
                true => Dialect::PostgreSql,
                false => Dialect::MySql,
            },
        }
    }

    /// Whether it is started for the comparison and stopped after it.
    pub fn is_private(&self) -> bool {
        !matches!(self, Server::Url(_))
    }
}

/// `mariadb`, `postgresql`, or the URL of a server that runs already.
impl FromStr for Server {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "mariadb" => return Ok(Server::MariaDb),
            "postgresql" => return Ok(Server::PostgreSql),
            _ => {}
        }
        let known = |scheme| MYSQL.contains(&scheme) || POSTGRESQL.contains(&scheme);
        let Some((_, rest)) = text.split_once("://").filter(|(scheme, _)| known(scheme)) else {
            return Err(WordError::new(format!(
                "server '{text}' is not known: write mariadb or postgresql for a private one, or the \
                 URL of one that runs, such as mysql://user@host:3306/database"
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
            Server::MariaDb => "mariadb",
            Server::PostgreSql => "postgresql",
            Server::Url(url) => url,
        })
    }
}

word_serde!(Server);

/// MariaDB's and MySQL's storage engines that Spindle knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageEngine {
    /// Transactional, pages of 16 KiB.
    InnoDb,
    /// Index blocks of 1 KiB in a key buffer, rows through the page cache; no transactions.
    MyIsam,
    /// MariaDB's crash-safe successor to MyISAM: pages of 8 KiB.
    Aria,
}

impl StorageEngine {
    /// All.
    pub const ALL: [StorageEngine; 3] =
        [StorageEngine::InnoDb, StorageEngine::MyIsam, StorageEngine::Aria];

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
        StorageEngine::ALL.into_iter().find(|engine| engine.to_string() == lower).ok_or_else(|| {
            WordError::new(format!(
                "storage engine '{text}' is not known: write innodb, myisam or aria"
            ))
        })
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
        for text in ["mariadb", "postgresql", "mysql://root@db:3306/test", "postgresql://u@h/test"]
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
