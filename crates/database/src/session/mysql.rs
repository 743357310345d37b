//! MariaDB and MySQL: the blocking `mysql` crate opens the connection and reads rows into values; what is
//! run for its effect goes over the same [`Wire`].

mod wire;

use self::wire::Wire;
use super::{Arg, Field, Prepared, QueryKind, RowWriter, Session, SqlError, StatementId};
use mysql::{Conn, OptsBuilder, Params, Row, Statement, Value, prelude::Queryable};
use plan::Dialect;
use record::Queries;
use std::{os::fd::AsRawFd, time::Duration};

/// Deadlock, lock wait timeout, record changed since last read: what sysbench begins anew, too.
const RETRIED: [u16; 3] = [1213, 1205, 1020];

/// ER_DUP_ENTRY.
const DUPLICATE: u16 = 1062;

/// A connection to MariaDB or MySQL.
pub struct MySqlSession {
    connection: Conn,
    wire: Wire,
    prepared: Prepared<Statement>,
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
        let connection = Conn::new(options).map_err(told)?;
        let wire =
            Wire::on(connection.as_raw_fd()).map_err(|error| SqlError::Lost(error.to_string()))?;
        Ok(MySqlSession { connection, wire, prepared: Prepared::new() })
    }
}

fn told(error: mysql::Error) -> SqlError {
    match error {
        mysql::Error::MySqlError(error) => refused(error.code, &error.message),
        other => SqlError::Lost(other.to_string()),
    }
}

fn refused(code: u16, message: &str) -> SqlError {
    let said = format!("{message} ({code})");
    match code {
        code if RETRIED.contains(&code) => SqlError::Retry(said),
        DUPLICATE => SqlError::Duplicate(said),
        _ => SqlError::Refused(said),
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
        let statement = self.connection.prep(sql).map_err(told)?;
        Ok(self.prepared.add(statement, kind))
    }

    fn run(&mut self, statement: StatementId, args: &[Arg<'_>]) -> Result<u64, SqlError> {
        let statement = self.prepared.counted(statement);
        self.wire.execute(statement.id(), args)
    }

    fn rows(
        &mut self,
        statement: StatementId,
        args: &[Arg<'_>],
    ) -> Result<Vec<Vec<Field>>, SqlError> {
        let statement = self.prepared.counted(statement);
        let result = self.connection.exec_iter(&statement, params(args)).map_err(told)?;
        result.map(|row| Ok(row.map_err(told)?.unwrap().into_iter().map(field).collect())).collect()
    }

    fn script(&mut self, sql: &str) -> Result<(), SqlError> {
        self.connection.query_drop(sql).map_err(told)
    }

    fn text(&mut self, sql: &str, kind: QueryKind) -> Result<(), SqlError> {
        self.prepared.count(kind);
        self.wire.query(sql).map(drop)
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        let rows: Vec<Row> = self.connection.query(sql).map_err(told)?;
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
            self.connection.query_drop(insert).map_err(told)
        })
    }

    fn take_queries(&mut self) -> Queries {
        self.prepared.take_queries()
    }
}
