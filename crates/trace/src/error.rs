//! What can be wrong in a trace, and the words for it.

use crate::{format::Format, unit::TimeUnit};
use units::Nanos;

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// None of the first lines fits a format.
    #[error(
        "{file}, line 1: no trace format that is known: expected what blkparse, perf script or biosnoop \
         print, blktrace's binary files, an iolog of fio, CSV of MSR Cambridge, SYSTOR '17, Alibaba, Tencent \
         or SPC/UMass, or DiskSim's ASCII"
    )]
    UnknownFormat {
        /// The file.
        file: String,
    },
    /// The first line resembles a format, and does not fit it.
    #[error("{file}, line {line}: looks like {format}, but: {source}")]
    Resembles {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The format.
        format: Format,
        /// What is wrong with it.
        source: LineError,
    },
    /// It is packed, or another program's own file.
    #[error("{file}: this is {what}: {instead}")]
    NotText {
        /// The file.
        file: String,
        /// What it is.
        what: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// Times that nobody recorded: the unit is another.
    #[error(
        "{file}: read in {unit}, its {requests} requests took {length}, which looks wrong: in {other} they \
         took {instead}; say which with --replay-unit {other}, or --replay-unit {unit} to keep it"
    )]
    Units {
        /// The file.
        file: String,
        /// The unit that it was read in.
        unit: TimeUnit,
        /// Requests.
        requests: usize,
        /// From the first to the last.
        length: Nanos,
        /// A unit that would make sense.
        other: TimeUnit,
        /// The length in that.
        instead: Nanos,
    },
    /// The format says its unit.
    #[error("{file}: the times of {format} have a unit: leave --replay-unit out")]
    UnitIsKnown {
        /// The file.
        file: String,
        /// The format.
        format: Format,
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
    /// There are flushes in it, and nothing else.
    #[error(
        "{file}: nothing but flushes ({flushes}): there is nothing to replay; to compare flushes, \
         measure writes with --sync fdatasync"
    )]
    FlushesAlone {
        /// The file.
        file: String,
        /// How many.
        flushes: usize,
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
    /// A request beyond what Linux can address.
    #[error("a request up to sector {end}, beyond the largest device that Linux can have")]
    BeyondDevices {
        /// Its end.
        end: u64,
    },
    /// A read or a write of nothing.
    #[error("a request of no bytes")]
    NoBytes,
}
