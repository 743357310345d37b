//! Parameters by name, with their file and line when they are wrong.

use super::parse::{Block, Value};
use crate::drive_files::DriveFileError;

/// A block of a drive's file, asked for its parameters by name.
pub(super) struct Reader<'a> {
    pub(super) file: &'a str,
    pub(super) block: &'a Block,
}

impl Reader<'_> {
    pub(super) fn wrong(&self, line: usize, what: impl Into<String>) -> DriveFileError {
        DriveFileError::new(self.file, line, what)
    }

    pub(super) fn missing(&self, name: &str) -> DriveFileError {
        let what = format!("the block '{}' has no parameter '{name}'", self.block.kind);
        self.wrong(self.block.line, what)
    }

    pub(super) fn optional(&self, name: &str) -> Result<Option<f64>, DriveFileError> {
        self.block.get(name).map(|(value, line)| self.as_number(name, value, line)).transpose()
    }

    fn as_number(&self, name: &str, value: &Value, line: usize) -> Result<f64, DriveFileError> {
        match value {
            Value::Word(text) => {
                text.parse::<f64>().ok().filter(|v| v.is_finite()).ok_or_else(|| {
                    self.wrong(line, format!("expected a number for '{name}', found '{text}'"))
                })
            }
            _ => Err(self.wrong(line, format!("expected a number for '{name}'"))),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<f64, DriveFileError> {
        self.optional(name)?.ok_or_else(|| self.missing(name))
    }

    pub(super) fn whole(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, DriveFileError> {
        let value = self.number(name)?;
        let whole = value as u64;
        if value < 0.0 || value.fract() != 0.0 || !range.contains(&whole) {
            let what = format!(
                "'{name}' is {value}: expected a whole number from {} to {}",
                range.start(),
                range.end()
            );
            return Err(self.wrong(self.line(name), what));
        }
        Ok(whole)
    }

    pub(super) fn line(&self, name: &str) -> usize {
        self.block.get(name).map_or(self.block.line, |(_, line)| line)
    }

    /// 0 or 1; absent is 0.
    pub(super) fn switch(&self, name: &str) -> Result<bool, DriveFileError> {
        self.switch_within(name, 0..=1)
    }

    /// A switch for which the manual allows more numbers than it explains: any but 0 is on.
    pub(super) fn switch_within(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<bool, DriveFileError> {
        let Some(value) = self.optional(name)? else { return Ok(false) };
        if value.fract() != 0.0 || !range.contains(&(value as i64)) {
            let what = format!(
                "'{name}' is {value}: expected a whole number from {} to {}",
                range.start(),
                range.end()
            );
            return Err(self.wrong(self.line(name), what));
        }
        Ok(value != 0.0)
    }

    /// A time in ms, as ns; absent is 0.
    pub(super) fn time_ns(&self, name: &str) -> Result<u32, DriveFileError> {
        let millis = self.optional(name)?.unwrap_or(0.0);
        if !(0.0..=1000.0).contains(&millis) {
            let what = format!("'{name}' is {millis} ms: expected 0 to 1000 ms");
            return Err(self.wrong(self.line(name), what));
        }
        Ok((millis * 1e6).round() as u32)
    }

    pub(super) fn numbers(&self, name: &str) -> Result<Vec<(f64, usize)>, DriveFileError> {
        match self.block.get(name) {
            None => Ok(Vec::new()),
            Some((Value::List(items), _)) => items
                .iter()
                .map(|(value, line)| Ok((self.as_number(name, value, *line)?, *line)))
                .collect(),
            Some((_, line)) => Err(self.wrong(line, format!("expected a list for '{name}'"))),
        }
    }

    pub(super) fn inner(&self, name: &str, kind: &str) -> Result<Reader<'_>, DriveFileError> {
        match self.block.get(name) {
            Some((Value::Block(block), _)) if block.kind == kind => {
                Ok(Reader { file: self.file, block })
            }
            Some((Value::Block(block), line)) => {
                let what = format!("'{name}' is a '{}': only '{kind}' is known", block.kind);
                Err(self.wrong(line, what))
            }
            Some((_, line)) => Err(self.wrong(line, format!("expected a block for '{name}'"))),
            None => Err(self.missing(name)),
        }
    }

    pub(super) fn unknown_code(&self, name: &str, code: u64, known: &str) -> DriveFileError {
        self.wrong(self.line(name), format!("'{name}' has the unknown code {code}: {known}"))
    }
}
