//! The formats: a line of text → what it describes.

mod alibaba;
mod biosnoop;
mod blkparse;
mod blktrace;
mod disksim;
mod fio;
mod mqsim;
mod msr;
mod perf;
mod spc;
mod systor17;
mod tencent;

pub(crate) use blktrace::{is_binary, lines as binary_lines};
pub(crate) use perf::event as event_of_line;

use crate::{
    LineError,
    entry::{Request, TraceOp},
    format::Format,
    unit::TimeUnit,
};
use units::Nanos;

/// What a line describes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A request, where it was queued.
    Request(Request),
    /// A request, where it went to the device: it counts in a trace without queueing alone.
    Issued(Request),
    /// A request at this sector has ended.
    Done {
        /// On which device.
        device: String,
        /// It moved no data.
        flush: bool,
        /// Its first sector.
        start: u64,
        /// Its sectors: all requests that were merged into it have ended with it.
        count: u64,
        /// When.
        at: Nanos,
    },
    /// What was a write with a flush before it, and has no data left: the flush has ended.
    FlushDone {
        /// On which device.
        device: String,
        /// When.
        at: Nanos,
    },
    /// A request of a kind that is not replayed, where it was queued.
    Other,
    /// The same where it went to the device.
    OtherIssued {
        /// A command that is not queued by any layer above: it counts in every trace.
        passes_through: bool,
    },
    /// A request of this device is part of what another asked for.
    Remapped {
        /// The device below.
        device: String,
        /// Its first sector.
        start: u64,
        /// The device above.
        from: String,
    },
    /// Events that the recorder lost.
    Lost(u64),
    /// Nothing of interest.
    Nothing,
    /// Sums: until the next event nothing else follows.
    Sums,
}

/// Linux counts the bytes of a device in 63 bits.
const MAX_SECTORS: u64 = i64::MAX as u64 / 512;

impl Line {
    /// Refuses a request that no device can have.
    pub fn within(self) -> Result<Line, LineError> {
        match &self {
            Line::Request(request) | Line::Issued(request) => {
                let end = request.start.saturating_add(request.count);
                if end > MAX_SECTORS {
                    return Err(LineError::BeyondDevices { end });
                }
            }
            _ => {}
        }
        Ok(self)
    }
}

/// Reads the lines of one trace.
pub(crate) struct Reader {
    format: FormatReader,
    unit: Option<TimeUnit>,
    /// Sums have begun.
    sums: bool,
}

enum FormatReader {
    Blkparse(blkparse::Blkparse),
    Perf,
    Biosnoop(biosnoop::Biosnoop),
    Fio(fio::Fio),
    Msr(msr::Msr),
    Systor17,
    Alibaba,
    Tencent,
    Spc,
    DiskSim,
    Mqsim,
    /// Read as bytes: no line is of this format.
    Blktrace,
}

impl Reader {
    pub fn new(format: Format, unit: Option<TimeUnit>) -> Reader {
        let format = match format {
            Format::Blkparse => FormatReader::Blkparse(blkparse::Blkparse),
            Format::Blktrace => FormatReader::Blktrace,
            Format::Perf => FormatReader::Perf,
            Format::Biosnoop => FormatReader::Biosnoop(biosnoop::Biosnoop::default()),
            Format::Fio => FormatReader::Fio(fio::Fio::default()),
            Format::Msr => FormatReader::Msr(msr::Msr::default()),
            Format::Systor17 => FormatReader::Systor17,
            Format::Alibaba => FormatReader::Alibaba,
            Format::Tencent => FormatReader::Tencent,
            Format::Spc => FormatReader::Spc,
            Format::DiskSim => FormatReader::DiskSim,
            Format::Mqsim => FormatReader::Mqsim,
        };
        Reader { format, unit, sums: false }
    }

    /// Reads the next line.
    pub fn line(&mut self, line: &str) -> Result<Line, LineError> {
        let line_begins = line.trim_start();
        if line_begins.is_empty() || line_begins.starts_with('#') {
            return Ok(Line::Nothing);
        }
        let read = self.of_format(line);
        match read {
            Ok(Line::Sums) => self.sums = true,
            Ok(_) => self.sums = false,
            // Sums have lines of their own.
            Err(_) if self.sums => return Ok(Line::Nothing),
            Err(_) => {}
        }
        read
    }

    fn of_format(&mut self, line: &str) -> Result<Line, LineError> {
        let unit = |default: TimeUnit| self.unit.unwrap_or(default);
        match &mut self.format {
            FormatReader::Blkparse(reader) => reader.line(line),
            FormatReader::Perf => perf::line(line),
            FormatReader::Biosnoop(reader) => reader.line(line),
            FormatReader::Fio(reader) => reader.line(line, self.unit),
            FormatReader::Msr(reader) => reader.line(line, unit(TimeUnit::Ticks)),
            FormatReader::Systor17 => systor17::line(line, unit(TimeUnit::Seconds)),
            FormatReader::Alibaba => alibaba::line(line, unit(TimeUnit::Micros)),
            FormatReader::Tencent => tencent::line(line, unit(TimeUnit::Seconds)),
            FormatReader::Spc => spc::line(line, unit(TimeUnit::Seconds)),
            FormatReader::DiskSim => disksim::line(line, unit(TimeUnit::Millis)),
            FormatReader::Mqsim => mqsim::line(line, unit(TimeUnit::Nanos)),
            FormatReader::Blktrace => Err(unexpected("binary events of blktrace", line)),
        }
    }
}

/// The format of the first line that fits any, among the first twenty that are neither empty nor
/// comments.
pub(crate) fn detect(text: &str) -> Option<Format> {
    content(text).take(20).find_map(|line| {
        Format::ALL.iter().copied().find(|format| {
            matches!(Reader::new(*format, None).line(line), Ok(line) if line != Line::Sums)
        })
    })
}

/// Lines that are neither empty nor comments.
fn content(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    })
}

/// The format whose columns a line resembles most, and what is wrong with the line.
pub(crate) fn nearest(text: &str) -> Option<(Format, usize, LineError)> {
    let (number, line) = text.lines().enumerate().find(|(_, line)| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with('#')
    })?;
    let columns: Vec<&str> = line.split(',').collect();
    let has = |word: &str| columns.iter().any(|column| column.trim().eq_ignore_ascii_case(word));
    let format = match columns.len() {
        6.. if has("read") || has("write") => Format::Msr,
        5.. if has("r") || has("w") => Format::Spc,
        _ if line.contains("(groupid=") || line.contains("fio version") => Format::Fio,
        _ if line.split_whitespace().next().is_some_and(|it| it.contains(',')) => Format::Blkparse,
        _ => return None,
    };
    let error = Reader::new(format, None).line(line).err()?;
    Some((format, number + 1, error))
}

/// The whole number in a column.
fn whole(text: &str, field: &'static str) -> Result<u64, LineError> {
    text.trim().parse().map_err(|_| LineError::NotWhole { field, found: text.to_owned() })
}

/// The bytes in a column, in sectors.
fn sectors(bytes: u64, field: &'static str) -> Result<u64, LineError> {
    match bytes.is_multiple_of(512) {
        true => Ok(bytes / 512),
        false => Err(LineError::NotSectors { field, bytes }),
    }
}

/// Bytes of a request, in sectors: one at least.
fn some_sectors(text: &str, field: &'static str) -> Result<u64, LineError> {
    match sectors(whole(text, field)?, field)? {
        0 => Err(LineError::NoBytes),
        count => Ok(count),
    }
}

/// The time in a column.
fn time(text: &str, unit: TimeUnit, expected: &'static str) -> Result<Nanos, LineError> {
    unit.parse(text).ok_or_else(|| unexpected(expected, text))
}

/// A column contains something else than it should.
fn unexpected(expected: &'static str, found: &str) -> LineError {
    let cut = found.char_indices().nth(60).map_or(found.len(), |(at, _)| at);
    LineError::Value { expected, found: found[..cut].to_owned() }
}

/// `R` or `W`.
fn letter(text: &str) -> Result<TraceOp, LineError> {
    match text.trim() {
        "R" | "r" => Ok(TraceOp::Read),
        "W" | "w" => Ok(TraceOp::Write),
        other => Err(unexpected("R or W", other)),
    }
}
