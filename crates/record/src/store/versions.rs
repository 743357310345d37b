//! What older run files spelled differently, and how a file is upgraded before it is resumed.
//!
//! Version 1 lacks databases and event logs. Version 2 has sentences where version 3 has data:
//! warnings, caveats, reasons, events. Version 3 has no sessions after the first, version 4 no imports.

use super::{
    SCHEMA_VERSION, Store,
    events::SCHEMA_OF_EVENTS,
    schema::{SCHEMA_OF_DATABASES, SCHEMA_OF_IMPORTS, SCHEMA_OF_SESSIONS},
};
use crate::{DropCause, EventKind, VoidReason, Warning};
use rusqlite::{Transaction, params};

/// An event of versions 1 and 2.
pub(super) fn event(round: u32, cell: Option<i64>, kind: String, text: String) -> EventKind {
    let cell = cell.map(|cell| cell as usize);
    match (kind.as_str(), cell) {
        ("dropped", Some(cell)) => EventKind::Dropped { cell, cause: DropCause::Recorded { text } },
        ("settled", _) => EventKind::Settled { rounds: round + 1 },
        ("interrupted", _) => EventKind::Interrupted,
        _ => EventKind::Recorded { cell, text },
    }
}

/// Warnings of versions 1 and 2.
pub(super) fn warnings(texts: Vec<String>) -> Vec<Warning> {
    texts.into_iter().map(|text| Warning::Recorded { text }).collect()
}

/// Rewrites an older file as the current version: all of it, or nothing.
pub(super) fn upgrade(store: &mut Store) -> rusqlite::Result<()> {
    let from = store.version;
    if from == SCHEMA_VERSION {
        return Ok(());
    }
    let transaction = super::write::begin(&mut store.connection)?;
    if from == 1 {
        transaction.execute_batch(
            "ALTER TABLE second ADD COLUMN transactions INTEGER NOT NULL DEFAULT 0;",
        )?;
        transaction.execute_batch(SCHEMA_OF_DATABASES)?;
        transaction.execute_batch(SCHEMA_OF_EVENTS)?;
    }
    if from < 3 {
        upgrade_sentences(&transaction)?;
    }
    if from < 4 {
        transaction.execute_batch(
            "ALTER TABLE trial ADD COLUMN session INTEGER NOT NULL DEFAULT 0;
             ALTER TABLE event ADD COLUMN session INTEGER NOT NULL DEFAULT 0;",
        )?;
        transaction.execute_batch(SCHEMA_OF_SESSIONS)?;
    }
    transaction.execute_batch(SCHEMA_OF_IMPORTS)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()?;
    store.version = SCHEMA_VERSION;
    Ok(())
}

/// Wraps the sentences of versions 1 and 2 in version 3's data. Environment and plan keep their form,
/// which version 3 reads.
fn upgrade_sentences(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let rows = |sql: &str| -> rusqlite::Result<Vec<(i64, String)>> {
        let mut select = transaction.prepare(sql)?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    };
    for (trial, texts) in rows("SELECT trial, warnings FROM trial WHERE warnings IS NOT NULL")? {
        let texts: Vec<String> = serde_json::from_str(&texts).unwrap_or_default();
        transaction.execute(
            "UPDATE trial SET warnings = ? WHERE trial = ?",
            params![super::json::json(&warnings(texts))?, trial],
        )?;
    }
    for (trial, text) in rows("SELECT trial, reason FROM trial WHERE outcome = 'void'")? {
        transaction.execute(
            "UPDATE trial SET reason = ? WHERE trial = ?",
            params![super::json::json(&VoidReason::Recorded { text })?, trial],
        )?;
    }
    transaction.execute_batch("ALTER TABLE event RENAME COLUMN text TO data;")?;
    let mut select = transaction.prepare("SELECT rowid, round, cell, kind, data FROM event")?;
    let events = select
        .query_map([], |row| {
            Ok((row.get::<_, i64>(0)?, event(row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (rowid, kind) in events {
        let (word, cell) = kind.columns();
        transaction.execute(
            "UPDATE event SET kind = ?, cell = ?, data = ? WHERE rowid = ?",
            params![word, cell.map(|cell| cell as i64), super::json::json(&kind)?, rowid],
        )?;
    }
    Ok(())
}
