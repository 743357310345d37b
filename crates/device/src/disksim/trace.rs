//! Traces of a real drive: what was asked, how long it took, how long the host then thought.

use crate::drive_files::DriveFileError;
use crate::{Op, Request};
use units::{Nanos, Sectors};

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Read or write.
    pub op: Op,
    /// First sector.
    pub start: Sectors,
    /// Sectors.
    pub count: Sectors,
    /// Issue to completion, as measured on the drive.
    pub service: Nanos,
    /// From this completion to the next issue.
    pub think: Nanos,
}

impl TraceEntry {
    /// As a request with this id.
    pub fn request(&self, id: u64) -> Request {
        Request { id, op: self.op, start: self.start, count: self.count, fua: false }
    }
}

/// Reads `R|W flag LBN count service_µs think_µs` lines.
pub fn parse_trace(file: &str, text: &str) -> Result<Vec<TraceEntry>, DriveFileError> {
    let mut entries = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: String| DriveFileError::new(file, number + 1, what);
        let [op, _flag, start, count, service, think] = words[..] else {
            let what = format!(
                "expected 6 columns 'R|W flag LBN count service_us think_us', found {}",
                words.len()
            );
            return Err(wrong(what));
        };
        let op = match op {
            "R" | "r" => Op::Read,
            "W" | "w" => Op::Write,
            other => return Err(wrong(format!("expected R or W, found '{other}'"))),
        };
        let whole = |text: &str, name: &str| {
            text.parse::<u64>()
                .map_err(|_| wrong(format!("expected a whole number for {name}, found '{text}'")))
        };
        let micros = |text: &str, name: &str| match text.parse::<f64>() {
            Ok(value) if (0.0..1e12).contains(&value) => Ok(Nanos((value * 1e3).round() as u64)),
            _ => Err(wrong(format!("expected microseconds for {name}, found '{text}'"))),
        };
        let count = whole(count, "the count")?;
        if count == 0 {
            return Err(wrong("a request of 0 sectors".to_owned()));
        }
        entries.push(TraceEntry {
            op,
            start: Sectors(whole(start, "the LBN")?),
            count: Sectors(count),
            service: micros(service, "the service time")?,
            think: micros(think, "the think time")?,
        });
    }
    match entries.is_empty() {
        true => Err(DriveFileError::new(file, 1, "no requests in the trace")),
        false => Ok(entries),
    }
}
