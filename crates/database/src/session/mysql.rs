//! MariaDB and MySQL: the blocking `mysql` crate opens the connection and reads rows into values; what is
//! run for its effect goes over the same [`Wire`], unless the connection is encrypted.

mod wire;

use self::wire::Wire;
use super::{
    Arg, Field, Prepared, QueryKind, RowWriter, ServerCounters, Session, SqlError, StatementId,
    pairs, quoted_list,
};
use mysql::{
    Conn, DriverError, OptsBuilder, Params, QueryResult, Row, Statement, Value,
    prelude::{Protocol, Queryable},
};
use record::Queries;
use std::{os::fd::AsRawFd, sync::Arc, time::Duration};
use workload::Dialect;

/// Deadlock, lock wait timeout, record changed since last read: sysbench retries these, too.
const RETRIED: [u16; 3] = [1213, 1205, 1020];

/// ER_DUP_ENTRY.
const DUPLICATE: u16 = 1062;

/// ER_UNSUPPORTED_PS: MySQL prepares no BEGIN, START TRANSACTION, SAVEPOINT, LOCK TABLES or USE; MariaDB
/// does.
const UNSUPPORTED_IN_PREPARED: u16 = 1295;

/// Errors that the same statement on the same server meets again: wrong credentials or rights (1044,
/// 1045, 1142, 1143, 1227, 1251, 1698, 3118, 3159, 4151), no such database, table, column or engine
/// (1046, 1049, 1054, 1146, 1286), syntax (1064), a read-only server (1290, 1836), an unsupported
/// statement (1235, 1295).
const PERMANENT: [u16; 20] = [
    1044,
    1045,
    1046,
    1049,
    1054,
    1064,
    1142,
    1143,
    1146,
    1227,
    1235,
    1251,
    1286,
    1290,
    UNSUPPORTED_IN_PREPARED,
    1698,
    1836,
    3118,
    3159,
    4151,
];

/// MariaDB's and MySQL's counters that only grow: those that there are become rates.
const GROWING: [&str; 26] = [
    "Innodb_data_reads",
    "Innodb_data_writes",
    "Innodb_data_read",
    "Innodb_data_written",
    "Innodb_data_fsyncs",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_wait_free",
    "Innodb_buffer_pool_pages_flushed",
    "Innodb_log_waits",
    "Innodb_os_log_written",
    "Innodb_dblwr_pages_written",
    "Innodb_dblwr_writes",
    "Innodb_row_lock_waits",
    "Key_reads",
    "Key_read_requests",
    "Key_writes",
    "Key_write_requests",
    "Aria_pagecache_reads",
    "Aria_pagecache_read_requests",
    "Aria_pagecache_writes",
    "Aria_pagecache_write_requests",
    "Handler_commit",
    "Handler_rollback",
    "Questions",
    "Sort_merge_passes",
];

/// Those that are what they are at the moment.
const MOMENTARY: [&str; 9] = [
    "Innodb_data_pending_reads",
    "Innodb_data_pending_writes",
    "Innodb_data_pending_fsyncs",
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_buffer_pool_pages_free",
    "Innodb_checkpoint_age",
    "Key_blocks_not_flushed",
    "Aria_pagecache_blocks_not_flushed",
    "Threads_running",
];

/// A statement as it is sent.
#[derive(Clone)]
enum Sent {
    /// Prepared in the server.
    Prepared(Statement),
    /// As text each time.
    Text(Arc<str>),
}

/// A connection to MariaDB or MySQL.
pub struct MySqlSession {
    connection: Conn,
    /// None where the connection is encrypted: then the crate alone can use it.
    wire: Option<Wire>,
    prepared: Prepared<Sent>,
}

impl MySqlSession {
    /// Connects.
    pub fn connect(options: OptsBuilder) -> Result<MySqlSession, SqlError> {
        let options = options
            // Not asked of the server then.
            .max_allowed_packet(Some(16 << 20))
            .prefer_socket(false)
            .stmt_cache_size(Some(0))
            .tcp_connect_timeout(Some(Duration::from_secs(10)));
        let options = mysql::Opts::from(options);
        // The crate encrypts no connection through a socket file.
        let encrypted = options.get_ssl_opts().is_some() && options.get_socket().is_none();
        let connection = Conn::new(options).map_err(sql_error)?;
        let wire = match encrypted {
            true => None,
            false => Some(
                Wire::on(connection.as_raw_fd())
                    .map_err(|error| SqlError::Lost(error.to_string()))?,
            ),
        };
        Ok(MySqlSession { connection, wire, prepared: Prepared::new() })
    }
}

fn sql_error(error: mysql::Error) -> SqlError {
    match error {
        mysql::Error::MySqlError(error) => refused(error.code, &error.message),
        // The server and this client have no way to log in or to encrypt in common.
        mysql::Error::DriverError(
            error @ (DriverError::UnsupportedProtocol(_)
            | DriverError::Protocol41NotSet
            | DriverError::TlsNotSupported
            | DriverError::UnknownAuthPlugin(_)
            | DriverError::OldMysqlPasswordDisabled
            | DriverError::CleartextPluginDisabled),
        ) => SqlError::Permanent(error.to_string()),
        other => SqlError::Lost(other.to_string()),
    }
}

fn refused(code: u16, message: &str) -> SqlError {
    let said = format!("{message} ({code})");
    match code {
        code if RETRIED.contains(&code) => SqlError::Retry(said),
        DUPLICATE => SqlError::Duplicate(said),
        code if PERMANENT.contains(&code) => SqlError::Permanent(said),
        _ => SqlError::Refused(said),
    }
}

/// A variable's value as SET takes it: numbers bare, sizes in bytes, all else quoted.
fn literal(value: &str) -> String {
    let sized = || {
        let size: units::Bytes = value.parse().ok()?;
        value.ends_with(['k', 'K', 'm', 'M', 'g', 'G']).then(|| size.0.to_string())
    };
    match value.parse::<f64>() {
        Ok(number) if number.is_finite() => value.to_owned(),
        Ok(_) | Err(_) => sized()
            .unwrap_or_else(|| format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))),
    }
}

fn params(args: &[Arg<'_>]) -> Params {
    if args.is_empty() {
        return Params::Empty;
    }
    let value = |arg: &Arg<'_>| match arg {
        Arg::Int(value) => Value::Int(*value),
        Arg::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
        Arg::Null => Value::NULL,
    };
    Params::Positional(args.iter().map(value).collect())
}

/// Reads an answer to its end: the rows that it changed, or gave.
fn counted<P: Protocol>(
    answer: mysql::Result<QueryResult<'_, '_, '_, P>>,
) -> Result<u64, SqlError> {
    let mut answer = answer.map_err(sql_error)?;
    let mut rows = 0;
    while let Some(set) = answer.iter() {
        rows += set.affected_rows();
        for row in set {
            row.map_err(sql_error)?;
            rows += 1;
        }
    }
    Ok(rows)
}

fn field(value: Value) -> Field {
    match value {
        Value::NULL => Field::Null,
        Value::Int(value) => Field::Int(value),
        Value::UInt(value) => Field::Int(i64::try_from(value).unwrap_or(i64::MAX)),
        Value::Bytes(bytes) => Field::Text(String::from_utf8_lossy(&bytes).into_owned()),
        other => Field::Text(other.as_sql(true).trim_matches('\'').to_owned()),
    }
}

impl Session for MySqlSession {
    fn dialect(&self) -> Dialect {
        Dialect::MySql
    }

    fn prepare(&mut self, sql: &str, kind: QueryKind) -> Result<StatementId, SqlError> {
        let statement = match self.connection.prep(sql) {
            Ok(statement) => Sent::Prepared(statement),
            Err(mysql::Error::MySqlError(error))
                if error.code == UNSUPPORTED_IN_PREPARED && !sql.contains('?') =>
            {
                Sent::Text(sql.into())
            }
            Err(error) => return Err(sql_error(error)),
        };
        Ok(self.prepared.add(statement, kind))
    }

    fn run(&mut self, statement: StatementId, args: &[Arg<'_>]) -> Result<u64, SqlError> {
        match (self.prepared.counted(statement), &mut self.wire) {
            (Sent::Prepared(statement), Some(wire)) => wire.execute(statement.id(), args),
            (Sent::Text(sql), Some(wire)) => wire.query(&sql),
            (Sent::Prepared(statement), None) => {
                counted(self.connection.exec_iter(&statement, params(args)))
            }
            (Sent::Text(sql), None) => counted(self.connection.query_iter(&*sql)),
        }
    }

    fn rows(
        &mut self,
        statement: StatementId,
        args: &[Arg<'_>],
    ) -> Result<Vec<Vec<Field>>, SqlError> {
        fn all(
            rows: impl Iterator<Item = mysql::Result<Row>>,
        ) -> Result<Vec<Vec<Field>>, SqlError> {
            rows.map(|row| Ok(row.map_err(sql_error)?.unwrap().into_iter().map(field).collect()))
                .collect()
        }
        match self.prepared.counted(statement) {
            Sent::Prepared(statement) => {
                all(self.connection.exec_iter(&statement, params(args)).map_err(sql_error)?)
            }
            Sent::Text(sql) => all(self.connection.query_iter(&*sql).map_err(sql_error)?),
        }
    }

    fn script(&mut self, sql: &str) -> Result<(), SqlError> {
        self.connection.query_drop(sql).map_err(sql_error)
    }

    fn text(&mut self, sql: &str, kind: QueryKind) -> Result<(), SqlError> {
        self.prepared.count(kind);
        match &mut self.wire {
            Some(wire) => wire.query(sql).map(drop),
            None => counted(self.connection.query_iter(sql)).map(drop),
        }
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        let rows: Vec<Row> = self.connection.query(sql).map_err(sql_error)?;
        let text = |value: Value| match field(value) {
            Field::Null => None,
            Field::Int(value) => Some(value.to_string()),
            Field::Text(text) => Some(text),
        };
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
    }

    fn fill(
        &mut self,
        table: &str,
        columns: &str,
        next: &mut dyn FnMut(&mut RowWriter) -> bool,
    ) -> Result<(), SqlError> {
        RowWriter::send_all(Dialect::MySql, next, |rows| {
            let insert = format!("INSERT INTO {table} ({columns}) VALUES {rows}");
            self.connection.query_drop(insert).map_err(sql_error)
        })
    }

    fn counters(&mut self) -> ServerCounters {
        let names = quoted_list(GROWING.iter().chain(&MOMENTARY).copied());
        let rows = self.ask(&format!("SHOW GLOBAL STATUS WHERE variable_name IN ({names})"));
        let mut counters = ServerCounters::default();
        for row in rows.into_iter().flatten() {
            let [Some(name), Some(value)] = row.as_slice() else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            if name == "Innodb_data_fsyncs" {
                counters.growing.insert("fsyncs".to_owned(), value);
            }
            let kind = match MOMENTARY.contains(&name.as_str()) {
                true => &mut counters.momentary,
                false => &mut counters.growing,
            };
            kind.insert(name.clone(), value);
        }
        counters
    }

    fn variables(&mut self, names: &[String]) -> Result<Vec<(String, String)>, SqlError> {
        let names = quoted_list(names.iter().map(String::as_str));
        let ask = format!("SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})");
        Ok(pairs(self.ask(&ask)?))
    }

    fn set_variable(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        self.script(&format!("SET GLOBAL {name} = {}", literal(value)))
    }

    fn tables(&mut self) -> Result<Vec<String>, SqlError> {
        let rows = self.ask(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()",
        )?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    fn take_queries(&mut self) -> Queries {
        self.prepared.take_queries()
    }
}
