//! Traces of block I/O that other programs recorded: text → [`Trace`].
//!
//! What lives here: the formats, one file each in `formats/`, and what is wrong with lines that do not
//! fit (`error`).
//! What does not: opening files, and replaying (`simulate`). Pure.

mod clock;
mod error;
mod formats;

pub use error::{LineError, TraceError, UnknownFormat};

use formats::Line;
use std::{collections::BTreeMap, fmt, str::FromStr};
use strum::VariantArray;
use units::{Nanos, Sectors};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOp {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Makes what was written durable.
    Flush,
}

/// A request as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When it was issued, from the trace's beginning.
    pub at: Nanos,
    /// What it does.
    pub op: TraceOp,
    /// Its first sector; the devices or files of a trace are laid out one after the other.
    pub start: Sectors,
    /// How many sectors; none in a flush.
    pub count: Sectors,
    /// A write before which the device's cache has to be flushed (REQ_PREFLUSH).
    pub preflush: bool,
    /// A write that is done when it is on the medium (REQ_FUA).
    pub fua: bool,
    /// Its process, numbered from 0 in the order of their first requests.
    pub process: u32,
    /// How long it took when it was recorded, if the trace says so.
    pub service: Option<Nanos>,
}

/// A trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its format.
    pub format: Format,
    /// Requests in the order in which they were issued.
    pub entries: Vec<Entry>,
    /// Lines that were skipped because they did not fit the format.
    pub bad_lines: u64,
    /// Times the recording clock was set back, or jumped ahead and came back; see [`parse`].
    pub clock_steps: u64,
    /// Requests that are neither reads, writes nor flushes (discards), and were left out.
    pub others: u64,
    /// How many processes there are.
    pub processes: u32,
    /// Sectors that all devices of the trace need.
    pub span: Sectors,
}

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum Format {
    /// What blkparse prints (blkparse(1), default output).
    Blkparse,
    /// fio's iolog, version 2 or 3 (fio(1), "TRACE FILE FORMAT").
    Fio,
    /// CSV of the MSR Cambridge traces (SNIA IOTTA): timestamp in 100 ns, host, disk, type, offset
    /// and size in bytes, response time in 100 ns.
    Msr,
    /// DiskSim's ASCII: arrival in ms, device, block, blocks, flags of which bit 0 is read
    /// (CMU-PDL-08-101).
    DiskSim,
}

impl Format {
    /// All of them.
    pub const ALL: &'static [Format] = Format::VARIANTS;
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Blkparse => "blkparse",
            Format::Fio => "fio",
            Format::Msr => "msr",
            Format::DiskSim => "disksim",
        })
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let named = Format::ALL.iter().copied().find(|format| format.to_string() == text);
        named.ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Reads a trace; `file` is its name in errors. Without a `format` its first lines decide. A line that
/// does not fit is an error, or is counted and skipped with `skip_bad`.
///
/// Lines may be out of order by up to a second, as those of several processors are. A clock that goes
/// back further was set back, and time continues from the latest request before; a clock that had
/// jumped ahead and comes back leaves no gap. Both are counted in [`Trace::clock_steps`].
pub fn parse(
    file: &str,
    text: &str,
    format: Option<Format>,
    skip_bad: bool,
) -> Result<Trace, TraceError> {
    let file = file.to_owned();
    let Some(format) = format.or_else(|| formats::detect(text)) else {
        return Err(TraceError::UnknownFormat { file });
    };
    let mut reader = formats::Reader::new(format);
    let mut builder = Builder::default();
    let mut bad_lines = 0;
    for (number, line) in text.lines().enumerate() {
        match reader.line(line) {
            Ok(Line::Nothing) => {}
            Ok(Line::Other) => builder.others += 1,
            Ok(Line::End) => break,
            Ok(Line::Done { device, flush, start, at }) => {
                builder.done(&device, flush, start, at);
            }
            Ok(Line::Request(request)) => builder.add(request),
            Err(_) if skip_bad => bad_lines += 1,
            Err(source) => return Err(TraceError::Line { file, line: number + 1, source }),
        }
    }
    let trace = builder.build(format, bad_lines);
    match trace.entries.is_empty() {
        true => {
            let line = text.lines().count().max(1);
            Err(TraceError::NoRequests { file, line, format })
        }
        false => Ok(trace),
    }
}

/// A request as a line describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    at: Nanos,
    op: TraceOp,
    device: String,
    start: u64,
    count: u64,
    preflush: bool,
    fua: bool,
    process: String,
    service: Option<Nanos>,
}

/// What has been read so far.
#[derive(Default)]
struct Builder {
    requests: Vec<(Request, usize)>,
    devices: Vec<(String, u64)>,
    processes: BTreeMap<String, u32>,
    /// The latest request at a device's sector that has not ended; flushes apart.
    open: BTreeMap<(usize, bool, u64), usize>,
    others: u64,
}

/// Devices of a trace begin at multiples of this many sectors: 1 MiB.
const ALIGNMENT: u64 = 2048;

impl Builder {
    fn device(&mut self, name: &str) -> usize {
        if let Some(index) = self.devices.iter().position(|(other, _)| other == name) {
            return index;
        }
        self.devices.push((name.to_owned(), 0));
        self.devices.len() - 1
    }

    fn add(&mut self, request: Request) {
        let device = self.device(&request.device);
        let span = &mut self.devices[device].1;
        *span = (*span).max(request.start + request.count);
        let next = self.processes.len() as u32;
        self.processes.entry(request.process.clone()).or_insert(next);
        if request.service.is_none() {
            let flush = request.op == TraceOp::Flush;
            self.open.insert((device, flush, request.start), self.requests.len());
        }
        self.requests.push((request, device));
    }

    fn done(&mut self, device: &str, flush: bool, start: u64, at: Nanos) {
        let device = self.device(device);
        if let Some(index) = self.open.remove(&(device, flush, start)) {
            let request = &mut self.requests[index].0;
            request.service = Some(at.saturating_sub(request.at));
        }
    }

    fn build(mut self, format: Format, bad_lines: u64) -> Trace {
        let mut bases = Vec::new();
        let mut span = 0u64;
        for (_, sectors) in &self.devices {
            bases.push(span);
            span += sectors.next_multiple_of(ALIGNMENT);
        }
        let clock_steps = clock::straighten(self.requests.iter_mut().map(|(r, _)| &mut r.at));
        // Lines of several processors may be a little out of order.
        self.requests.sort_by_key(|(request, _)| request.at);
        let entries = self.requests.iter().map(|(request, device)| Entry {
            at: request.at,
            op: request.op,
            start: Sectors(bases[*device] + request.start),
            count: Sectors(request.count),
            preflush: request.preflush,
            fua: request.fua,
            process: self.processes.get(&request.process).copied().unwrap_or_default(),
            service: request.service,
        });
        Trace {
            format,
            entries: entries.collect(),
            bad_lines,
            clock_steps,
            others: self.others,
            processes: self.processes.len() as u32,
            span: Sectors(span),
        }
    }
}

#[cfg(test)]
mod tests;
