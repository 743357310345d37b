//! Files to import, and the cells that the user says they are of.

use crate::{ImportError, settings::scheduler_named};
use plan::{Factor, Level};
use std::collections::BTreeMap;

/// A file to import.
pub struct Source<'a> {
    /// As the user named it.
    pub file: String,
    /// What is in it.
    pub bytes: &'a [u8],
    /// The cell that all of it is of, where the user says so.
    pub cell: Option<CellFile>,
}

/// A cell's name, from `--cell NAME=FILE`: levels, or a label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellFile {
    /// Factors to levels.
    pub levels: BTreeMap<Factor, Level>,
}

impl CellFile {
    /// `noop` (a scheduler), `nr_requests:128,scheduler:noop` (factors), or any other label.
    pub fn parse(name: &str) -> Result<CellFile, ImportError> {
        let wrong = |source| ImportError::Cell { name: name.to_owned(), source };
        let mut levels = BTreeMap::new();
        for part in name.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (factor, level) = match part.split_once(':') {
                Some((factor, level)) => (factor.parse::<Factor>().map_err(wrong)?, level),
                None if scheduler_named(part).is_some() => (Factor::Scheduler, part),
                None => (Factor::Label, part),
            };
            let level = factor.level(level).map_err(wrong)?;
            levels.insert(factor, level);
        }
        match levels.is_empty() {
            true => Err(wrong(workload::WordError::new("the name is empty".to_owned()))),
            false => Ok(CellFile { levels }),
        }
    }
}
