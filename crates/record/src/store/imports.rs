//! What other programs printed of a trial, in a run file.

use super::{
    Store,
    json::{count, finite, from_json, from_json_or_none, json, odd, text},
};
use crate::{Excerpt, Imported, ImportedFigure};
use rusqlite::{OptionalExtension, Transaction, params};

/// Adds what was printed of a trial.
pub(super) fn write_imported(
    transaction: &Transaction<'_>,
    trial: i64,
    imported: &Imported,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO imported (trial, tool, file, first_line, last_line, rate, doubts)
         VALUES (?, ?, ?, ?, ?, ?, ?)",
        params![
            trial,
            imported.tool,
            imported.excerpt.file,
            imported.excerpt.first_line as i64,
            imported.excerpt.last_line as i64,
            imported.rate.as_ref().map(json).transpose()?,
            json(&imported.doubts)?,
        ],
    )?;
    let mut insert = transaction.prepare(
        "INSERT INTO imported_figure (trial, subject, quantity, value, line) VALUES (?, ?, ?, ?, ?)",
    )?;
    for figure in &imported.figures {
        insert.execute(params![
            trial,
            figure.subject,
            figure.quantity.to_string(),
            figure.value,
            figure.line as i64
        ])?;
    }
    Ok(())
}

impl Store {
    /// What was printed of a trial, if it was imported.
    pub(super) fn imported(&self, trial: i64) -> rusqlite::Result<Option<Imported>> {
        if self.version < 5 {
            return Ok(None);
        }
        let mut select = self.connection.prepare_cached(
            "SELECT tool, file, first_line, last_line, rate, doubts FROM imported WHERE trial = ?",
        )?;
        let found = select
            .query_row([trial], |row| {
                Ok(Imported {
                    tool: text(row, 0)?,
                    excerpt: Excerpt {
                        file: text(row, 1)?,
                        first_line: count(row, 2)?,
                        last_line: count(row, 3)?,
                    },
                    rate: from_json_or_none(row, 4)?,
                    figures: Vec::new(),
                    doubts: from_json(row, 5)?,
                })
            })
            .optional()?;
        let Some(mut imported) = found else { return Ok(None) };
        let mut select = self.connection.prepare_cached(
            "SELECT subject, quantity, value, line FROM imported_figure WHERE trial = ?
             ORDER BY rowid",
        )?;
        let figures = select.query_map([trial], |row| {
            let quantity = text(row, 1)?.parse();
            Ok(ImportedFigure {
                subject: text(row, 0)?,
                quantity: quantity.map_err(|error: workload::WordError| odd(1, error))?,
                value: finite(row, 2)?,
                line: count(row, 3)?,
            })
        })?;
        imported.figures = figures.collect::<rusqlite::Result<_>>()?;
        Ok(Some(imported))
    }
}
