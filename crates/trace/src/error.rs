//! What can be wrong in a trace, and the words for it.

use crate::Format;

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// None of the first lines fits a format.
    #[error(
        "{file}, line 1: no trace format that is known: expected the output of blkparse, an iolog of \
         fio, CSV of the MSR Cambridge traces, or DiskSim's ASCII"
    )]
    UnknownFormat {
        /// The file.
        file: String,
    },
    /// A line does not fit the format.
    #[error("{file}, line {line}: {source}; --skip-bad leaves such lines out and counts them")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: LineError,
    },
    /// There is no request in it.
    #[error("{file}, line {line}: no requests in this {format} trace")]
    NoRequests {
        /// The file.
        file: String,
        /// Its last line, from 1.
        line: usize,
        /// The format it was read as.
        format: Format,
    },
}

/// Why a line does not fit its format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Too few or too many columns.
    #[error("expected '{layout}', found {found} columns")]
    Columns {
        /// The columns of such a line.
        layout: &'static str,
        /// How many there are.
        found: usize,
    },
    /// Something else than a whole number.
    #[error("expected a whole number for the {field}, found '{found}'")]
    NotWhole {
        /// The column.
        field: &'static str,
        /// What is there.
        found: String,
    },
    /// Bytes that are no whole number of sectors.
    #[error("the {field} of {bytes} bytes is not a multiple of 512")]
    NotSectors {
        /// The column.
        field: &'static str,
        /// What is there.
        bytes: u64,
    },
    /// Something else than the column contains.
    #[error("expected {expected}, found '{found}'")]
    Value {
        /// What the column contains.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// A column is missing.
    #[error("expected {expected} after '{after}'")]
    Missing {
        /// What is missing.
        expected: &'static str,
        /// The column before it.
        after: String,
    },
    /// A read or a write of nothing.
    #[error("a request of no bytes")]
    NoBytes,
}

/// There is no trace format of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trace format '{0}' is not known: there are {all}", all = names())]
pub struct UnknownFormat(pub String);

fn names() -> String {
    let names: Vec<String> = Format::ALL.iter().map(Format::to_string).collect();
    names.join(", ")
}
