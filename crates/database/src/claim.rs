//! A server that runs already, named by its URL: it is used as it is, and only the workload's tables
//! are made in it.

use crate::{DatabaseError, Encryption, Endpoint, Shape, error::PASSWORD_VARIABLE};
use workload::{Dialect, Server};

/// The table that says that Spindle made a database's tables.
const MARK: &str = "spindle_data";

/// A foreign database that we may use.
pub struct Claim {
    /// Where it is.
    pub endpoint: Endpoint,
    /// Whether its tables are the user's own, to be used as they are and left.
    pub theirs: bool,
}

impl Endpoint {
    /// Of a server's URL; the password is in the environment.
    pub fn of_url(url: &str) -> Result<Endpoint, DatabaseError> {
        let password = std::env::var(PASSWORD_VARIABLE).ok();
        let wrong = |problem: String| DatabaseError::Url { url: url.to_owned(), problem };
        let dialect = Server::Url(url.to_owned()).dialect();
        let (rest, encryption) = Encryption::take(url, dialect)
            .map_err(|source| DatabaseError::Encryption { url: url.to_owned(), source })?;
        match dialect {
            Dialect::MySql => {
                let url = match rest.strip_prefix("mariadb://") {
                    Some(rest) => format!("mysql://{rest}"),
                    None => rest,
                };
                let options =
                    mysql::Opts::from_url(&url).map_err(|error| wrong(error.to_string()))?;
                if options.get_db_name().is_none() {
                    return Err(wrong("the URL names no database".to_owned()));
                }
                if options.get_ssl_opts().is_some() {
                    return Err(wrong("ask for encryption by ssl-mode=REQUIRED".to_owned()));
                }
                let mut options = mysql::OptsBuilder::from_opts(options)
                    .ssl_opts(encryption.as_ref().map(Encryption::mysql));
                if let Some(password) = password {
                    options = options.pass(Some(password));
                }
                Ok(Endpoint::MySqlUrl(Box::new(options.into())))
            }
            Dialect::PostgreSql => {
                let mut config: postgres::Config =
                    rest.parse().map_err(|error: postgres::Error| wrong(error.to_string()))?;
                if config.get_dbname().is_none() {
                    return Err(wrong("the URL names no database".to_owned()));
                }
                config.ssl_mode(match encryption {
                    Some(_) => postgres::config::SslMode::Require,
                    None => postgres::config::SslMode::Disable,
                });
                if let Some(password) = password {
                    config.password(password);
                }
                Ok(Endpoint::PostgreSqlUrl(Box::new(config), encryption))
            }
        }
    }
}

impl Claim {
    /// Looks into the database: it must be empty or ours, or the user must have said that it may be
    /// used. Nothing is changed.
    pub fn look(url: &str, use_existing: bool) -> Result<Claim, DatabaseError> {
        let endpoint = Endpoint::of_url(url)?;
        let mut session = endpoint
            .connect()
            .map_err(|cause| DatabaseError::Connect { url: url.to_owned(), cause })?;
        let tables = session.tables().map_err(claiming())?;
        let ours = tables.iter().any(|table| table == MARK);
        if let Some(example) = tables.first().filter(|_| !ours && !use_existing) {
            return Err(DatabaseError::NotOurs {
                url: url.to_owned(),
                tables: tables.len(),
                example: example.clone(),
            });
        }
        Ok(Claim { endpoint, theirs: !tables.is_empty() && !ours })
    }

    /// The server's version, as it says itself.
    pub fn version(&self) -> Result<String, DatabaseError> {
        let mut session = self.endpoint.connect().map_err(claiming())?;
        let rows = session.ask("SELECT version()").map_err(claiming())?;
        Ok(rows.into_iter().flatten().flatten().next().unwrap_or_default())
    }

    /// Whether what it holds is what a shape wants, loaded by us before.
    pub fn holds(&self, shape: &Shape, seed: u64) -> Result<bool, DatabaseError> {
        let mut session = self.endpoint.connect().map_err(claiming())?;
        if !session.tables().map_err(claiming())?.iter().any(|table| table == MARK) {
            return Ok(false);
        }
        let rows = session.ask(&format!("SELECT shape FROM {MARK}")).map_err(claiming())?;
        let found = rows.into_iter().flatten().flatten().next();
        Ok(found.as_deref() == Some(&*mark_text(shape, seed)))
    }

    /// Marks the database as ours before anything is made in it; afterwards says what is in it.
    pub fn mark(&self, shape: Option<(&Shape, u64)>) -> Result<(), DatabaseError> {
        let mut session = self.endpoint.connect().map_err(claiming())?;
        let text = shape.map(|(shape, seed)| mark_text(shape, seed)).unwrap_or_default();
        session
            .script(&format!("CREATE TABLE IF NOT EXISTS {MARK} (shape VARCHAR(200))"))
            .and_then(|()| session.script(&format!("DELETE FROM {MARK}")))
            .and_then(|()| session.script(&format!("INSERT INTO {MARK} VALUES ('{text}')")))
            .map_err(claiming())
    }

    /// Takes all tables away from a database that is marked as ours.
    pub fn clear(&self) -> Result<(), DatabaseError> {
        let mut session = self.endpoint.connect().map_err(claiming())?;
        let mut all = session.tables().map_err(claiming())?;
        if self.theirs || !all.iter().any(|table| table == MARK) {
            return Ok(());
        }
        // The mark last: cut off in between, the rest is still known to be ours.
        all.sort_by_key(|table| table == MARK);
        for table in all {
            session.script(&format!("DROP TABLE {table}")).map_err(claiming())?;
        }
        Ok(())
    }
}

fn claiming() -> impl FnOnce(crate::SqlError) -> DatabaseError {
    DatabaseError::sql("preparing the database of the running server")
}

fn mark_text(shape: &Shape, seed: u64) -> String {
    format!("{}; seed {seed}", shape.key())
}
