//! Columns: text and JSON, as they are written, and as they are read from a file that anybody may have made.

use crate::{
    clean::{clean, clean_json, may_be_unfit},
    flaw::{Flaw, MAX_COUNT, MAX_NANOS},
};
use rusqlite::{Row, types::Type};
use serde::de::DeserializeOwned;
use std::error::Error;
use units::{Bytes, Nanos};

/// As a column holds it.
pub(super) fn json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// What a column holds.
pub(super) fn from_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str().map_err(|error| odd(column, error))?;
    parse(text).map_err(|error| odd(column, error))
}

/// The same where there may be nothing.
pub(super) fn from_json_or_none<T: DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<T>> {
    match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => from_json(row, column).map(Some),
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    if may_be_unfit(text) {
        serde_json::from_value(clean_json(serde_json::from_str(text)?))
    } else {
        serde_json::from_str(text)
    }
}

/// A text, fit to be shown.
pub(super) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    row.get(column).map(clean)
}

/// The same where there may be nothing.
pub(super) fn text_or_none(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<String>> {
    Ok(row.get::<_, Option<String>>(column)?.map(clean))
}

/// A unit variant from its word.
pub(super) fn from_word<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let word = serde_json::Value::String(text(row, column)?);
    serde_json::from_value(word).map_err(|error| odd(column, error))
}

/// A count, of which sums can be made.
pub(super) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let count: i64 = row.get(column)?;
    let known = u64::try_from(count).ok().filter(|count| *count <= MAX_COUNT);
    known.ok_or_else(|| odd(column, Flaw::Count { count }))
}

/// Bytes, of which sums can be made.
pub(super) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    count(row, column).map(Bytes)
}

/// A time, of which sums can be made.
pub(super) fn nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<Nanos> {
    let time: i64 = row.get(column)?;
    let known = u64::try_from(time).ok().filter(|time| *time <= MAX_NANOS);
    known.map(Nanos).ok_or_else(|| odd(column, Flaw::Time { nanoseconds: time }))
}

/// A time before or after another.
pub(super) fn signed_nanos(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    let time: i64 = row.get(column)?;
    if time.unsigned_abs() <= MAX_NANOS {
        Ok(time)
    } else {
        Err(odd(column, Flaw::Time { nanoseconds: time }))
    }
}

/// A number that is one.
pub(super) fn finite(row: &Row<'_>, column: usize) -> rusqlite::Result<f64> {
    let value: f64 = row.get(column)?;
    if value.is_finite() { Ok(value) } else { Err(odd(column, Flaw::NotFinite)) }
}

/// A column that does not read as it should.
pub(super) fn odd(column: usize, error: impl Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
