//! blkparse's default output: `8,0  3  11  0.009507758  697  Q  W 223490 + 8 [kjournald]`.

use super::{Line, unexpected, whole};
use crate::{LineError, Request, TraceOp};
use std::collections::BTreeSet;
use units::Nanos;

/// Requests are taken when they are queued (`Q`), and end when they complete (`C`). A trace that was
/// recorded without queueing has them when they are issued (`D`), each once: one that was requeued
/// (`R`) is issued again.
#[derive(Debug, Default)]
pub(crate) struct Blkparse {
    queues: bool,
    requeued: BTreeSet<(String, u64)>,
}

/// What the letters say (blkparse(1), "RWBS"): `F` before the operation is a flush before it, after
/// it FUA; a barrier (`B`, kernels before 2.6.37) was both.
struct Kind {
    op: Option<TraceOp>,
    discard: bool,
    preflush: bool,
    fua: bool,
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
        }
    }
}

impl Blkparse {
    pub fn line(&mut self, line: &str) -> Result<Line, LineError> {
        // The events are followed by sums for each processor and in total.
        if line.starts_with("CPU") || line.starts_with("Total (") || line.starts_with("Throughput")
        {
            return Ok(Line::End);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, _processor, _sequence, time, process, action, rest @ ..] = &words[..] else {
            return Err(LineError::Columns {
                layout: "major,minor cpu sequence seconds pid action …",
                found: words.len(),
            });
        };
        if !device.split_once(',').is_some_and(|(major, minor)| {
            major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok()
        }) {
            return Err(unexpected("a device 'major,minor'", device));
        }
        let at = seconds(time)?;
        match *action {
            "Q" | "D" | "C" | "R" => {}
            // Other stages of a request, and messages.
            _ => return Ok(Line::Nothing),
        }
        let [flags, range @ ..] = rest else {
            let expected = "the kind of request (RWBS)";
            return Err(LineError::Missing { expected, after: (*action).to_owned() });
        };
        let kind = Kind::of(flags);
        if kind.discard {
            return Ok(if *action == "Q" { Line::Other } else { Line::Nothing });
        }
        let Some(op) = kind.op else { return Ok(Line::Nothing) };
        let (start, count) = match range {
            [start, "+", count, ..] => (whole(start, "sector")?, whole(count, "sectors")?),
            // A flush has no sectors, whatever it is a flush of.
            _ if flags.starts_with('F') => (0, 0),
            // blkparse leaves the sectors out of a completion of none.
            [start, ..] if *action == "C" => (whole(start, "sector")?, 0),
            _ => {
                let expected = "sector + sectors";
                return Err(LineError::Missing { expected, after: (*flags).to_owned() });
            }
        };
        let flush = op == TraceOp::Flush || (count == 0 && flags.starts_with('F'));
        let start = if flush { 0 } else { start };
        if *action == "C" {
            return Ok(Line::Done { device: (*device).to_owned(), flush, start, at });
        }
        if *action == "R" {
            self.requeued.insert(((*device).to_owned(), start));
            return Ok(Line::Nothing);
        }
        self.queues |= *action == "Q";
        if *action == "D" {
            let again = self.requeued.remove(&((*device).to_owned(), start));
            if self.queues || again {
                return Ok(Line::Nothing);
            }
        }
        if count == 0 && !flush {
            // Commands of other kinds are shown as reads and writes of nothing.
            return Ok(Line::Nothing);
        }
        let op = if flush { TraceOp::Flush } else { op };
        Ok(Line::Request(Request {
            at,
            op,
            device: (*device).to_owned(),
            start,
            count,
            preflush: kind.preflush && !flush,
            fua: kind.fua && !flush,
            process: (*process).to_owned(),
            service: None,
        }))
    }
}

/// `12.345678901` as nanoseconds, exactly.
fn seconds(text: &str) -> Result<Nanos, LineError> {
    let wrong = || unexpected("seconds such as 0.000012345", text);
    let (whole, part) = text.split_once('.').ok_or_else(wrong)?;
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
    whole.checked_mul(1_000_000_000).map(|ns| Nanos(ns + part)).ok_or_else(wrong)
}
