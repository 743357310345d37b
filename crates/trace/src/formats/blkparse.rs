//! blkparse's default output: `device cpu sequence seconds pid action flags sector + sectors [process]`.

use super::{Line, time, unexpected, whole};
use crate::{
    LineError,
    entry::{Request, TraceOp},
    unit::TimeUnit,
};
use units::Nanos;

/// Requests are taken when they are queued (`Q`), and end when they complete (`C`). In a trace that was
/// recorded without queueing they are taken when they are issued (`D`).
#[derive(Debug)]
pub(crate) struct Blkparse;

/// What the letters say (blkparse(1), "RWBS"): `F` before the operation is a flush before it, after
/// it FUA; a barrier (`B`, kernels before 2.6.37) was both.
struct Kind {
    op: Option<TraceOp>,
    discard: bool,
    preflush: bool,
    fua: bool,
    barrier: bool,
}

impl Kind {
    fn of(letters: &str) -> Kind {
        let operation = letters.trim_start_matches('F');
        let flush = operation.len() < letters.len();
        let after = operation.get(1..).unwrap_or_default();
        let op = match operation.chars().next() {
            Some('R') => Some(TraceOp::Read),
            Some('W') => Some(TraceOp::Write),
            // Nothing but a flush; else a command that moves no data of the disk.
            _ => flush.then_some(TraceOp::Flush),
        };
        let writes = op == Some(TraceOp::Write);
        let barrier = after.contains('B');
        Kind {
            op,
            discard: operation.starts_with('D'),
            preflush: writes && (flush || barrier),
            fua: writes && (after.contains('F') || barrier),
            barrier: writes && barrier,
        }
    }
}

/// A request at one stage, as blkparse and the kernel's trace events name it.
pub(super) struct Stage<'a> {
    /// `Q`, `D`, `C` or `A`.
    pub action: &'a str,
    pub device: &'a str,
    /// Its kind, RWBS.
    pub letters: &'a str,
    pub at: Nanos,
    pub pid: &'a str,
    /// What follows the letters.
    pub range: &'a [&'a str],
}

impl Blkparse {
    pub fn line(&mut self, line: &str) -> Result<Line, LineError> {
        // The events are followed by sums for each processor and in total.
        if line.starts_with("CPU") || line.starts_with("Total (") || line.starts_with("Throughput")
        {
            return Ok(Line::Sums);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, _processor, _sequence, seconds, pid, action, rest @ ..] = &words[..] else {
            return Err(LineError::Columns {
                layout: "major,minor cpu sequence seconds pid action …",
                found: words.len(),
            });
        };
        if !is_device(device) {
            return Err(unexpected("a device 'major,minor'", device));
        }
        if !seconds.contains('.') {
            return Err(unexpected("seconds such as 0.000012345", seconds));
        }
        let at = time(seconds, TimeUnit::Seconds, "seconds such as 0.000012345")?;
        match *action {
            "Q" | "D" | "C" | "A" => {}
            // Other stages of a request, and messages.
            _ => return Ok(Line::Nothing),
        }
        let [letters, range @ ..] = rest else {
            let expected = "the kind of request (RWBS)";
            return Err(LineError::Missing { expected, after: (*action).to_owned() });
        };
        Stage { action, device, letters, at, pid, range }.line()
    }
}

/// `8,0`.
pub(super) fn is_device(text: &str) -> bool {
    text.split_once(',')
        .is_some_and(|(major, minor)| major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok())
}

impl Stage<'_> {
    pub fn line(&self) -> Result<Line, LineError> {
        if self.action == "A" {
            return Ok(self.remapped());
        }
        let kind = Kind::of(self.letters);
        let other = |passes_through: bool| match self.action {
            "Q" => Line::Other,
            "D" => Line::OtherIssued { passes_through },
            _ => Line::Nothing,
        };
        if kind.discard {
            return Ok(other(false));
        }
        // A command that passes through has its bytes in parentheses, or an operation of its own.
        let has_command = self.range.iter().take(2).any(|word| word.starts_with('('))
            && self.range.get(1) != Some(&"+");
        let Some(op) = kind.op.filter(|_| !has_command) else { return Ok(other(true)) };
        let named = self.range.first().is_none_or(|word| word.starts_with('['));
        let (start, count) = match self.range {
            [start, "+", count, ..] => (whole(start, "sector")?, whole(count, "sectors")?),
            // A flush has no sectors, whatever it is a flush of.
            _ if self.letters.starts_with('F') || (named && kind.barrier) => (0, 0),
            // Commands of other kinds are shown as reads and writes of nothing.
            _ if named => return Ok(other(true)),
            // blkparse leaves the sectors out of a completion of none.
            [start, ..] if self.action == "C" => (whole(start, "sector")?, 0),
            _ => {
                let expected = "sector + sectors";
                return Err(LineError::Missing { expected, after: self.letters.to_owned() });
            }
        };
        let empty_flush = count == 0 && (self.letters.starts_with('F') || kind.barrier);
        let flush = op == TraceOp::Flush || empty_flush;
        let start = if flush { 0 } else { start };
        let device = self.device.to_owned();
        let at = self.at;
        match self.action {
            // What was a write with a flush before it, and had no data.
            "C" if !flush && (start, count) == (0, 0) && op == TraceOp::Write => {
                Ok(Line::FlushDone { device, at })
            }
            "C" => Ok(Line::Done { device, flush, start, count, at }),
            action if count == 0 && !flush => {
                Ok(if action == "Q" { Line::Other } else { other(true) })
            }
            action => {
                let mut request = Request {
                    at,
                    op: if flush { TraceOp::Flush } else { op },
                    device,
                    start,
                    count,
                    preflush: kind.preflush && !flush,
                    fua: kind.fua && !flush,
                    process: self.pid.to_owned(),
                    service: None,
                };
                if action == "Q" {
                    return Ok(Line::Request(request));
                }
                if self.is_of_kernel() {
                    // A worker issues what others queued.
                    request.process = String::new();
                }
                Ok(Line::Issued(request))
            }
        }
    }

    /// Whether a thread of the kernel that works for others, or none at all, was on the CPU.
    fn is_of_kernel(&self) -> bool {
        let name = self.range.last().map_or("", |word| word.trim_start_matches('['));
        self.pid == "0"
            || ["kworker/", "ksoftirqd/", "swapper", "irq/", "migration/", "rcu_"]
                .iter()
                .any(|worker| name.starts_with(worker))
    }

    /// `A  WS 29630736 + 8 <- (259,0) 29628688`.
    fn remapped(&self) -> Line {
        let arrow = self.range.iter().position(|word| *word == "<-");
        let from = arrow.and_then(|place| self.range.get(place + 1));
        let start = self.range.first().and_then(|start| start.parse().ok());
        match (from, start) {
            (Some(from), Some(start)) => Line::Remapped {
                device: self.device.to_owned(),
                start,
                from: from.trim_matches(['(', ')']).to_owned(),
            },
            _ => Line::Nothing,
        }
    }
}
