//! The formats: a line of text → what it says.

mod blkparse;
mod disksim;
mod fio;
mod msr;

use crate::{Format, Request};
use units::Nanos;

/// What a line says.
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
    /// Nothing that matters.
    Nothing,
    /// What follows is no part of the trace.
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

    /// What the next line says, or why it says nothing.
    pub fn line(&mut self, line: &str) -> Result<Line, String> {
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

/// The format of the first line that fits any, among the first twenty that say something.
pub(crate) fn detect(text: &str) -> Option<Format> {
    let says_something = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    };
    let first = text.lines().filter(says_something).take(20);
    first.into_iter().find_map(|line| {
        Format::ALL
            .into_iter()
            .find(|format| matches!(Reader::new(*format).line(line), Ok(said) if said != Line::End))
    })
}

/// A whole number, or what was expected.
fn whole(text: &str, what: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number for the {what}, found '{text}'"))
}

/// Sectors of so many bytes.
fn sectors(bytes: u64, what: &str) -> Result<u64, String> {
    match bytes.is_multiple_of(512) {
        true => Ok(bytes / 512),
        false => Err(format!("the {what} of {bytes} bytes is not a multiple of 512")),
    }
}
