//! PostgreSQL, through the blocking `postgres` crate.

use super::{
    Arg, Field, Prepared, QueryKind, RowWriter, ServerCounters, Session, SqlError, StatementId,
    pairs, quoted_list,
};
use crate::Encryption;
use postgres::{
    Client, Config, NoTls, SimpleQueryMessage, Statement,
    fallible_iterator::FallibleIterator,
    types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked},
};
use record::Queries;
use std::io::Write;
use workload::Dialect;

/// Serialization failure and deadlock (Appendix A of PostgreSQL's manual).
const RETRIED: [&str; 2] = ["40001", "40P01"];

/// unique_violation.
const DUPLICATE: &str = "23505";

/// PostgreSQL's views of counters that only grow, with what follows each in a query; which there are
/// differs by version. Since 18 the WAL's own are in pg_stat_io, where older ones have none of it.
const VIEWS: [(&str, &str); 5] = [
    ("pg_stat_wal", ""),
    (
        "(SELECT SUM(fsyncs) AS wal_sync, SUM(writes) AS wal_write FROM pg_stat_io \
         WHERE object = 'wal')",
        "wal_io",
    ),
    ("pg_stat_bgwriter", ""),
    ("pg_stat_checkpointer", ""),
    ("pg_stat_database", "WHERE datname = current_database()"),
];

/// The superuser's name, which initdb makes.
pub const SUPERUSER: &str = "postgres";

/// A connection to PostgreSQL.
pub struct PostgreSqlSession {
    client: Client,
    prepared: Prepared<Statement>,
    /// Views of counters that this server has.
    views: Vec<(&'static str, &'static str)>,
}

impl PostgreSqlSession {
    /// Connects.
    pub fn connect(
        config: &Config,
        encryption: Option<&Encryption>,
    ) -> Result<PostgreSqlSession, SqlError> {
        let client = match encryption.map(Encryption::postgresql) {
            None => config.connect(NoTls),
            Some(Ok(tls)) => config.connect(tls),
            Some(Err(error)) => return Err(SqlError::Permanent(error.to_string())),
        };
        let client = client.map_err(sql_error)?;
        Ok(PostgreSqlSession { client, prepared: Prepared::new(), views: VIEWS.to_vec() })
    }
}

fn sql_error(error: postgres::Error) -> SqlError {
    let Some(said) = error.as_db_error() else {
        return SqlError::Lost(match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        });
    };
    let code = said.code().code();
    let text = format!("{} ({code})", said.message());
    match code {
        code if RETRIED.contains(&code) => SqlError::Retry(text),
        DUPLICATE => SqlError::Duplicate(text),
        // The server ends connections when it ends, or starts.
        code if code.starts_with("57P") => SqlError::Lost(text),
        // Credentials; no such database; syntax, rights, no such table; a read-only server; what the
        // server does not support.
        code if code.starts_with("28") || code.starts_with("42") => SqlError::Permanent(text),
        "3D000" | "25006" | "0A000" => SqlError::Permanent(text),
        _ => SqlError::Refused(text),
    }
}

/// Each value in the type that the statement's parameter has.
impl ToSql for Arg<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, ty) {
            (Arg::Null, _) => Ok(IsNull::Yes),
            (Arg::Int(value), &Type::INT2) => i16::try_from(*value)?.to_sql(ty, out),
            (Arg::Int(value), &Type::INT4) => i32::try_from(*value)?.to_sql(ty, out),
            (Arg::Int(value), _) => value.to_sql(&Type::INT8, out),
            (Arg::Text(text), _) => text.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn field(row: &postgres::Row, column: usize) -> Result<Field, SqlError> {
    let int = |value: Option<i64>| value.map_or(Field::Null, Field::Int);
    let found = match *row.columns()[column].type_() {
        Type::INT2 => row.try_get::<_, Option<i16>>(column).map(|v| int(v.map(i64::from))),
        Type::INT4 => row.try_get::<_, Option<i32>>(column).map(|v| int(v.map(i64::from))),
        Type::INT8 => row.try_get::<_, Option<i64>>(column).map(int),
        _ => row
            .try_get::<_, Option<String>>(column)
            .map(|text| text.map_or(Field::Null, Field::Text)),
    };
    found.map_err(sql_error)
}

/// With `$1`, `$2` for each `?`.
fn numbered(sql: &str) -> String {
    let mut parts = sql.split('?');
    let mut out = parts.next().unwrap_or("").to_owned();
    for (place, part) in parts.enumerate() {
        out.push_str(&format!("${}", place + 1));
        out.push_str(part);
    }
    out
}

impl Session for PostgreSqlSession {
    fn dialect(&self) -> Dialect {
        Dialect::PostgreSql
    }

    fn prepare(&mut self, sql: &str, kind: QueryKind) -> Result<StatementId, SqlError> {
        let statement = self.client.prepare(&numbered(sql)).map_err(sql_error)?;
        Ok(self.prepared.add(statement, kind))
    }

    fn run(&mut self, statement: StatementId, args: &[Arg<'_>]) -> Result<u64, SqlError> {
        let statement = self.prepared.counted(statement);
        let mut rows = self.client.query_raw(&statement, args.iter()).map_err(sql_error)?;
        let mut count = 0;
        while rows.next().map_err(sql_error)?.is_some() {
            count += 1;
        }
        Ok(rows.rows_affected().unwrap_or(count))
    }

    fn rows(
        &mut self,
        statement: StatementId,
        args: &[Arg<'_>],
    ) -> Result<Vec<Vec<Field>>, SqlError> {
        let statement = self.prepared.counted(statement);
        let mut rows = self.client.query_raw(&statement, args.iter()).map_err(sql_error)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(sql_error)? {
            all.push((0..row.len()).map(|column| field(&row, column)).collect::<Result<_, _>>()?);
        }
        Ok(all)
    }

    fn script(&mut self, sql: &str) -> Result<(), SqlError> {
        self.client.batch_execute(sql).map_err(sql_error)
    }

    fn text(&mut self, sql: &str, kind: QueryKind) -> Result<(), SqlError> {
        self.prepared.count(kind);
        self.client.batch_execute(sql).map_err(sql_error)
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, SqlError> {
        let answers = self.client.simple_query(sql).map_err(sql_error)?;
        let rows = answers.into_iter().filter_map(|answer| match answer {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    fn fill(
        &mut self,
        table: &str,
        columns: &str,
        next: &mut dyn FnMut(&mut RowWriter) -> bool,
    ) -> Result<(), SqlError> {
        let copy = format!("COPY {table} ({columns}) FROM STDIN");
        let mut writer = self.client.copy_in(&copy).map_err(sql_error)?;
        RowWriter::send_all(Dialect::PostgreSql, next, |rows| {
            writer.write_all(rows.as_bytes()).map_err(|error| SqlError::Lost(error.to_string()))
        })?;
        writer.finish().map(drop).map_err(sql_error)
    }

    fn counters(&mut self) -> ServerCounters {
        let mut counters = ServerCounters::default();
        // A view that this version does not have is not asked again.
        for (view, filter) in std::mem::take(&mut self.views) {
            let ask = format!(
                "SELECT key, value FROM (SELECT * FROM {view} {filter}) v, \
                 jsonb_each_text(to_jsonb(v))"
            );
            let Ok(rows) = self.ask(&ask) else { continue };
            self.views.push((view, filter));
            for row in rows {
                let [Some(key), Some(value)] = row.as_slice() else { continue };
                let Ok(value) = value.parse::<f64>() else { continue };
                if key == "wal_sync" {
                    counters.growing.insert("fsyncs".to_owned(), value);
                }
                if !matches!(key.as_str(), "datid" | "numbackends") {
                    counters.growing.insert(key.clone(), value);
                }
            }
        }
        counters
    }

    fn variables(&mut self, names: &[String]) -> Result<Vec<(String, String)>, SqlError> {
        let names = quoted_list(names.iter().map(String::as_str));
        let ask =
            format!("SELECT name, current_setting(name) FROM pg_settings WHERE name IN ({names})");
        Ok(pairs(self.ask(&ask)?))
    }

    fn set_variable(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        let rows = self.ask(&format!("SELECT context FROM pg_settings WHERE name = '{name}'"))?;
        let context = rows.into_iter().flatten().flatten().next().unwrap_or_default();
        // ALTER SYSTEM takes these, for the next start.
        if matches!(context.as_str(), "postmaster" | "internal") {
            return Err(SqlError::Refused(format!("its context in pg_settings is {context}")));
        }
        self.script(&format!("ALTER SYSTEM SET {name} = '{}'", value.replace('\'', "''")))
    }

    fn reload(&mut self) -> Result<(), SqlError> {
        self.ask("SELECT pg_reload_conf()").map(drop)
    }

    fn tables(&mut self) -> Result<Vec<String>, SqlError> {
        let rows = self.ask(
            "SELECT table_name FROM information_schema.tables \
             WHERE table_schema = ANY (current_schemas(false))",
        )?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    fn take_queries(&mut self) -> Queries {
        self.prepared.take_queries()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn question_marks_are_numbered() {
        assert_eq!(super::numbered("a=? AND b=?"), "a=$1 AND b=$2");
        assert_eq!(super::numbered("COMMIT"), "COMMIT");
    }
}
