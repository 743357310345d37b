//! The formats: a line of text → what it describes.

mod blkparse;
mod disksim;
mod fio;
mod msr;

use crate::{Format, LineError, Request};
use units::Nanos;

/// What a line describes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A request.
    Request(Request),
    /// A request at this sector has ended.
    Done {
        /// On which device.
        device: String,
        /// It moved no data.
        flush: bool,
        /// Its first sector.
        start: u64,
        /// When.
        at: Nanos,
    },
    /// A request of a kind that is not replayed.
    Other,
    /// Nothing of interest.
    Nothing,
    /// The end of the trace: what follows is no part of it.
    End,
}

/// Reads the lines of one trace.
pub(crate) enum Reader {
    Blkparse(blkparse::Blkparse),
    Fio(fio::Fio),
    Msr,
    DiskSim,
}

impl Reader {
    pub fn new(format: Format) -> Reader {
        match format {
            Format::Blkparse => Reader::Blkparse(blkparse::Blkparse::default()),
            Format::Fio => Reader::Fio(fio::Fio::default()),
            Format::Msr => Reader::Msr,
            Format::DiskSim => Reader::DiskSim,
        }
    }

    /// Reads the next line.
    pub fn line(&mut self, line: &str) -> Result<Line, LineError> {
        let line_begins = line.trim_start();
        if line_begins.is_empty() || line_begins.starts_with('#') {
            return Ok(Line::Nothing);
        }
        match self {
            Reader::Blkparse(reader) => reader.line(line),
            Reader::Fio(reader) => reader.line(line),
            Reader::Msr => msr::line(line),
            Reader::DiskSim => disksim::line(line),
        }
    }
}

/// The format of the first line that fits any, among the first twenty that are neither empty nor
/// comments.
pub(crate) fn detect(text: &str) -> Option<Format> {
    let has_content = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    };
    let first = text.lines().filter(has_content).take(20);
    first.into_iter().find_map(|line| {
        Format::ALL
            .iter()
            .copied()
            .find(|format| matches!(Reader::new(*format).line(line), Ok(line) if line != Line::End))
    })
}

/// The whole number in a column.
fn whole(text: &str, field: &'static str) -> Result<u64, LineError> {
    text.parse().map_err(|_| LineError::NotWhole { field, found: text.to_owned() })
}

/// The bytes in a column, in sectors.
fn sectors(bytes: u64, field: &'static str) -> Result<u64, LineError> {
    match bytes.is_multiple_of(512) {
        true => Ok(bytes / 512),
        false => Err(LineError::NotSectors { field, bytes }),
    }
}

/// A column contains something else than it should.
fn unexpected(expected: &'static str, found: &str) -> LineError {
    LineError::Value { expected, found: found.to_owned() }
}
