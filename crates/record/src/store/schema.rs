//! The tables of a run file, and whether a file has these and nothing else.
//!
//! A run file may come from anybody: a view or a trigger in it would run what its author wrote, and a table
//! that is another one is no run.

use super::{SCHEMA_VERSION, events::SCHEMA_OF_EVENTS};
use rusqlite::Connection;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::OnceLock,
};

/// The tables. Everything that a table is asked about stands in a column; what only travels
/// (environment, plan) is JSON.
pub(super) const SCHEMA: &str = "
CREATE TABLE run (
    name TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    environment TEXT NOT NULL,
    plan TEXT NOT NULL
);
CREATE TABLE cell (
    cell INTEGER PRIMARY KEY,
    baseline INTEGER REFERENCES cell(cell),
    label TEXT NOT NULL
);
CREATE TABLE cell_level (
    cell INTEGER NOT NULL REFERENCES cell(cell),
    factor TEXT NOT NULL,
    level TEXT NOT NULL,
    PRIMARY KEY (cell, factor)
);
CREATE TABLE trial (
    trial INTEGER PRIMARY KEY,
    round INTEGER NOT NULL,
    cell INTEGER NOT NULL REFERENCES cell(cell),
    replica INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('valid', 'void', 'failed')),
    reason TEXT,
    applied TEXT NOT NULL,
    span_ns INTEGER,
    generator_user_ns INTEGER,
    generator_system_ns INTEGER,
    generator_threads INTEGER,
    generator_busiest_permille INTEGER,
    warnings TEXT,
    session INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE operation (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    job TEXT NOT NULL CHECK (job IN ('job', 'background')),
    kind TEXT NOT NULL CHECK (kind IN ('read', 'write', 'sync')),
    operations INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    service TEXT NOT NULL,
    response TEXT,
    PRIMARY KEY (trial, job, kind)
);
CREATE TABLE client (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    job TEXT NOT NULL,
    client INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (trial, job, client)
);
CREATE TABLE error (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    job TEXT NOT NULL,
    error TEXT NOT NULL,
    operations INTEGER NOT NULL,
    PRIMARY KEY (trial, job, error)
);
CREATE TABLE second (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    at REAL NOT NULL,
    reads INTEGER NOT NULL,
    writes INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    p50_ns INTEGER NOT NULL,
    p99_ns INTEGER NOT NULL,
    max_ns INTEGER NOT NULL,
    transactions INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX second_of_trial ON second(trial);
CREATE TABLE counter (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    at REAL NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL
);
CREATE INDEX counter_of_trial ON counter(trial);
CREATE TABLE event (
    round INTEGER NOT NULL,
    cell INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    session INTEGER NOT NULL DEFAULT 0
);
";

/// What version 4 added: sessions after the first. A file of an older version lacks this, and the column
/// `session` of `trial` and `event`.
pub(super) const SCHEMA_OF_SESSIONS: &str = "
CREATE TABLE session (
    session INTEGER PRIMARY KEY,
    factor TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    server_program TEXT,
    environment TEXT NOT NULL
);
";

/// What version 5 added: what other programs printed of a trial, each figure with its line.
pub(super) const SCHEMA_OF_IMPORTS: &str = "
CREATE TABLE imported (
    trial INTEGER PRIMARY KEY REFERENCES trial(trial),
    tool TEXT NOT NULL,
    file TEXT NOT NULL,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    rate TEXT,
    doubts TEXT NOT NULL
);
CREATE TABLE imported_figure (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    subject TEXT NOT NULL,
    quantity TEXT NOT NULL,
    value REAL NOT NULL,
    line INTEGER NOT NULL
);
CREATE INDEX imported_figure_of_trial ON imported_figure(trial);
";

/// What version 2 added: databases. A file of version 1 lacks these, and the column `transactions`
/// of `second`.
pub(super) const SCHEMA_OF_DATABASES: &str = "
CREATE TABLE transaction_type (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    type TEXT NOT NULL,
    transactions INTEGER NOT NULL,
    rolled_back INTEGER NOT NULL,
    service TEXT NOT NULL,
    response TEXT,
    PRIMARY KEY (trial, type)
);
CREATE TABLE query (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    kind TEXT NOT NULL CHECK (kind IN ('read', 'write', 'other')),
    queries INTEGER NOT NULL,
    PRIMARY KEY (trial, kind)
);
CREATE TABLE retry (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    reason TEXT NOT NULL,
    transactions INTEGER NOT NULL,
    PRIMARY KEY (trial, reason)
);
CREATE TABLE database_check (
    trial INTEGER NOT NULL REFERENCES trial(trial),
    name TEXT NOT NULL,
    holds INTEGER NOT NULL,
    found TEXT NOT NULL
);
";

/// What a file has that a run file does not have, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Odd {
    /// Something that is no table of a run: a view, a trigger, another table.
    Foreign {
        /// What it is, in SQLite's word: `view`.
        kind: String,
        /// Its name.
        name: String,
    },
    /// A table is missing, or made otherwise.
    Table {
        /// Its name.
        name: String,
    },
    /// A table lacks a column, or has one more.
    Column {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Odd::Foreign { kind, name } => write!(f, "it has the {kind} '{name}'"),
            Odd::Table { name } => write!(f, "its table '{name}' is missing or is made otherwise"),
            Odd::Column { table, column } => {
                write!(f, "it has not the same column '{column}' of table '{table}'")
            }
        }
    }
}

/// Tables with their columns, and the names of indices.
#[derive(Debug, Default)]
struct Tables {
    columns: BTreeMap<String, BTreeSet<String>>,
    indices: BTreeSet<String>,
}

/// What a file of a version has that is not as it should be.
pub(super) fn odd(connection: &Connection, version: i32) -> rusqlite::Result<Option<Odd>> {
    static CURRENT: OnceLock<Tables> = OnceLock::new();
    let current = match CURRENT.get() {
        Some(current) => current,
        None => {
            let made = current_tables()?;
            CURRENT.get_or_init(|| made)
        }
    };
    let expected = of_version(current, version);
    let mut select =
        connection.prepare("SELECT type, name, rootpage FROM sqlite_schema LIMIT 1000")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (kind, name): (String, String) = (row.get(0)?, row.get(1)?);
        let known = match kind.as_str() {
            // A virtual table has no page, and is code.
            "table" => expected.columns.contains_key(&name) && row.get::<_, i64>(2)? > 0,
            "index" => expected.indices.contains(&name) || name.starts_with("sqlite_autoindex_"),
            _ => false,
        };
        if !known {
            let name = crate::clean(name);
            return Ok(Some(Odd::Foreign { kind: crate::clean(kind), name }));
        }
    }
    for (table, wanted) in &expected.columns {
        let Some(found) = columns(connection, table)? else {
            return Ok(Some(Odd::Table { name: table.clone() }));
        };
        if let Some(column) = wanted.symmetric_difference(&found).next() {
            let (table, column) = (table.clone(), crate::clean(column.clone()));
            return Ok(Some(Odd::Column { table, column }));
        }
    }
    Ok(None)
}

/// A table's columns; `None` where there is no such table, or one of its columns is computed.
fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Option<BTreeSet<String>>> {
    let mut all = BTreeSet::new();
    let mut computed = false;
    connection.pragma(None, "table_xinfo", table, |row| {
        computed |= row.get::<_, i64>("hidden")? != 0;
        all.insert(row.get::<_, String>("name")?);
        Ok(())
    })?;
    Ok(Some(all).filter(|all| !computed && !all.is_empty()))
}

/// What this version writes, as SQLite understands it.
fn current_tables() -> rusqlite::Result<Tables> {
    let connection = Connection::open_in_memory()?;
    for part in
        [SCHEMA, SCHEMA_OF_DATABASES, SCHEMA_OF_EVENTS, SCHEMA_OF_SESSIONS, SCHEMA_OF_IMPORTS]
    {
        connection.execute_batch(part)?;
    }
    let mut tables = Tables::default();
    let mut select = connection.prepare("SELECT type, name FROM sqlite_schema")?;
    let all = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(String, String)>>>()?;
    for (kind, name) in all {
        match kind.as_str() {
            "table" => {
                let its = columns(&connection, &name)?.unwrap_or_default();
                tables.columns.insert(name, its);
            }
            _ => drop(tables.indices.insert(name)),
        }
    }
    Ok(tables)
}

/// What an earlier version wrote: docs/reference/run-file.md says what each added.
fn of_version(current: &Tables, version: i32) -> Tables {
    let mut columns = current.columns.clone();
    let mut without = |since: i32, tables: &[&str]| {
        if version < since {
            columns.retain(|name, _| !tables.contains(&name.as_str()));
        }
    };
    without(5, &["imported", "imported_figure"]);
    without(4, &["session"]);
    without(2, &["transaction_type", "query", "retry", "database_check"]);
    without(2, &["event_log", "request", "head"]);
    let mut lacks = |since: i32, table: &str, column: &str, then: Option<&str>| {
        if let Some(columns) = columns.get_mut(table).filter(|_| version < since) {
            columns.remove(column);
            columns.extend(then.map(str::to_owned));
        }
    };
    lacks(4, "trial", "session", None);
    lacks(4, "event", "session", None);
    lacks(3, "event", "data", Some("text"));
    lacks(2, "second", "transactions", None);
    debug_assert!(version <= SCHEMA_VERSION);
    Tables { columns, indices: current.indices.clone() }
}
