//! A client's connection to a server: prepared statements, in either dialect.

pub mod mysql;
pub mod postgresql;

use record::Queries;
use std::collections::BTreeMap;
use workload::Dialect;

/// A connection that one client has for itself.
pub trait Session: Send {
    /// The server's language.
    fn dialect(&self) -> Dialect;

    /// Prepares a statement, with `?` for each value. It is counted as `kind` whenever it is run.
    /// A statement that the server cannot prepare is sent as text instead, if it has no values.
    fn prepare(&mut self, sql: &str, kind: QueryKind) -> Result<StatementId, SqlError>;

    /// Runs a prepared statement and reads its whole result; how many rows it changed, or returned.
    fn run(&mut self, statement: StatementId, args: &[Arg<'_>]) -> Result<u64, SqlError>;

    /// Runs a prepared statement and returns its rows.
    fn rows(
        &mut self,
        statement: StatementId,
        args: &[Arg<'_>],
    ) -> Result<Vec<Vec<Field>>, SqlError>;

    /// Sends statements as text, not counted.
    fn script(&mut self, sql: &str) -> Result<(), SqlError>;

    /// Sends one statement as text and counts it.
    fn text(&mut self, sql: &str, kind: QueryKind) -> Result<(), SqlError>;

    /// Sends a query as text and returns its rows; a NULL is `None`.
    fn ask(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError>;

    /// Fills a table by the fastest way there is: `next` writes one row into the text that it is given
    /// (in the form of [`RowWriter`]) and says whether it did.
    fn fill(
        &mut self,
        table: &str,
        columns: &str,
        next: &mut dyn FnMut(&mut RowWriter) -> bool,
    ) -> Result<(), SqlError>;

    /// The server's own counters; none where it does not answer.
    fn counters(&mut self) -> ServerCounters;

    /// What the server's variables of these names are now, by their names in small letters.
    fn variables(&mut self, names: &[String]) -> Result<Vec<(String, String)>, SqlError>;

    /// Sets a variable of the whole server while it runs; what it is for connections that begin later.
    fn set_variable(&mut self, name: &str, value: &str) -> Result<(), SqlError>;

    /// Makes what was set so take effect.
    fn reload(&mut self) -> Result<(), SqlError> {
        Ok(())
    }

    /// The tables in the database.
    fn tables(&mut self) -> Result<Vec<String>, SqlError>;

    /// Statements sent since the last call.
    fn take_queries(&mut self) -> Queries;

    /// Rolls back, whatever state the transaction is in; not counted.
    fn roll_back(&mut self) -> Result<(), SqlError> {
        self.script("ROLLBACK")
    }
}

/// A server's counters at one moment, by its own names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerCounters {
    /// Those that only grow: differences over time become rates.
    pub growing: BTreeMap<String, f64>,
    /// Those that are what they are at the moment.
    pub momentary: BTreeMap<String, f64>,
}

/// A statement that was prepared in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(pub(crate) usize);

/// sysbench's three kinds of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// BEGIN, COMMIT, ROLLBACK.
    Other,
}

/// A value for a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg<'a> {
    /// A whole number.
    Int(i64),
    /// Text.
    Text(&'a str),
    /// NULL.
    Null,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// NULL.
    Null,
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
}

impl Field {
    /// As a whole number; 0 for NULL and for text that is not a number.
    pub fn int(&self) -> i64 {
        match self {
            Field::Null => 0,
            Field::Int(value) => *value,
            Field::Text(text) => text.trim().parse().unwrap_or(0),
        }
    }

    /// As text.
    pub fn text(&self) -> &str {
        match self {
            Field::Text(text) => text,
            Field::Null | Field::Int(_) => "",
        }
    }
}

/// What a server, or the connection to it, gave in place of a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SqlError {
    /// Another transaction was in the way: roll back and retry.
    #[error("{0}")]
    Retry(String),
    /// A row of the same key is there already.
    #[error("{0}")]
    Duplicate(String),
    /// The server refused it.
    #[error("{0}")]
    Refused(String),
    /// The server refused it, and would in any other trial too: credentials, rights, a read-only
    /// server, an unknown database, a statement that it does not support.
    #[error("{0}")]
    Permanent(String),
    /// The connection is lost, or could not be made.
    #[error("{0}")]
    Lost(String),
}

/// Writes rows as the server's bulk format wants them. Text must have no quotes, backslashes, tabs or
/// line ends, which the generators of this crate never make.
pub struct RowWriter {
    text: String,
    dialect: Dialect,
    first: bool,
    rows: usize,
}

impl RowWriter {
    /// Begins a row.
    pub fn begin(&mut self) {
        if self.dialect == Dialect::MySql {
            self.text.push_str(if self.rows == 0 { "(" } else { ",(" });
        }
        (self.first, self.rows) = (true, self.rows + 1);
    }

    fn next(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.text.push(if self.dialect == Dialect::MySql { ',' } else { '\t' });
        }
    }

    /// The row's next value.
    pub fn int(&mut self, value: i64) {
        use std::fmt::Write;
        self.next();
        // Writing into a string cannot fail.
        let _ = write!(self.text, "{value}");
    }

    /// The row's next value.
    pub fn text(&mut self, value: &str) {
        self.next();
        match self.dialect {
            Dialect::MySql => {
                self.text.push('\'');
                self.text.push_str(value);
                self.text.push('\'');
            }
            Dialect::PostgreSql => self.text.push_str(value),
        }
    }

    /// The row's next value is NULL.
    pub fn null(&mut self) {
        self.next();
        self.text.push_str(if self.dialect == Dialect::MySql { "NULL" } else { "\\N" });
    }

    /// Ends the row.
    pub fn end(&mut self) {
        self.text.push(if self.dialect == Dialect::MySql { ')' } else { '\n' });
    }

    /// Sends the rows that `next` writes, about a megabyte of them at a time.
    fn send_all(
        dialect: Dialect,
        next: &mut dyn FnMut(&mut RowWriter) -> bool,
        mut send: impl FnMut(&str) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut rows =
            RowWriter { text: String::with_capacity(1 << 20), dialect, first: true, rows: 0 };
        loop {
            let more = next(&mut rows);
            if rows.text.len() >= 900_000 || (!more && rows.rows > 0) {
                send(&rows.text)?;
                rows.text.clear();
                rows.rows = 0;
            }
            if !more {
                return Ok(());
            }
        }
    }
}

/// Names as a list of SQL strings; the names that this crate asks for hold no quotes.
fn quoted_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Rows of a name and a value; the value of a NULL is empty.
fn pairs(rows: Vec<Vec<Option<String>>>) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = rows
        .into_iter()
        .filter_map(|row| match row.as_slice() {
            [Some(name), value] => Some((name.to_lowercase(), value.clone().unwrap_or_default())),
            _ => None,
        })
        .collect();
    pairs.sort_unstable();
    pairs
}

/// What is prepared in a session, and what has been run in it.
struct Prepared<S> {
    statements: Vec<(S, QueryKind)>,
    queries: Queries,
}

impl<S: Clone> Prepared<S> {
    fn new() -> Prepared<S> {
        Prepared { statements: Vec::new(), queries: Queries::default() }
    }

    fn add(&mut self, statement: S, kind: QueryKind) -> StatementId {
        self.statements.push((statement, kind));
        StatementId(self.statements.len() - 1)
    }

    /// A statement that is about to be run.
    fn counted(&mut self, id: StatementId) -> S {
        let (statement, kind) = self.statements[id.0].clone();
        self.count(kind);
        statement
    }

    fn count(&mut self, kind: QueryKind) {
        match kind {
            QueryKind::Read => self.queries.reads += 1,
            QueryKind::Write => self.queries.writes += 1,
            QueryKind::Other => self.queries.others += 1,
        }
    }

    fn take_queries(&mut self) -> Queries {
        std::mem::take(&mut self.queries)
    }
}
