//! Drives that are published as DiskSim's parameter files, and traces in its validation format.
//!
//! The formats are those of the DiskSim 4.0 reference manual (CMU-PDL-08-101) and of its Diskmodel
//! library's manual: `*.diskspecs` (electronics), `*.model` (layout and arm), `*.seek` (measured
//! seek times), `*.parv` (the bus), `*.trace` (requests with their measured times).

mod arm;
mod files;
mod import;
mod index;
mod layout;
mod parse;
mod reader;
mod trace;

pub use files::DriveFiles;
pub use import::{Imported, import};
pub use trace::{TraceEntry, parse_trace};

/// What is wrong in a drive's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {what}")]
pub struct DriveFileError {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub what: String,
}

impl DriveFileError {
    /// An error in `file` at `line`.
    pub fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        DriveFileError { file: file.to_owned(), line, what: what.into() }
    }
}
