//! blkparse's default output: `8,0  3  11  0.009507758  697  Q  W 223490 + 8 [kjournald]`.

use super::{Line, whole};
use crate::{Request, TraceOp};
use units::Nanos;

/// Requests are taken when they are queued (`Q`), and end when they complete (`C`). A trace that was
/// recorded without queueing has them when they are issued (`D`).
#[derive(Debug, Default)]
pub(crate) struct Blkparse {
    queues: bool,
}

impl Blkparse {
    pub fn line(&mut self, line: &str) -> Result<Line, String> {
        // What follows the events: sums by processor and in all.
        if line.starts_with("CPU") || line.starts_with("Total (") || line.starts_with("Throughput")
        {
            return Ok(Line::End);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, _processor, _sequence, time, process, action, rest @ ..] = &words[..] else {
            return Err("expected 'major,minor cpu sequence seconds pid action …'".to_owned());
        };
        if !device.split_once(',').is_some_and(|(major, minor)| {
            major.parse::<u32>().is_ok() && minor.parse::<u32>().is_ok()
        }) {
            return Err(format!("expected a device 'major,minor', found '{device}'"));
        }
        let at = seconds(time)?;
        match *action {
            "Q" | "D" | "C" => {}
            // Other steps of a request's life; a message has words of its own.
            _ => return Ok(Line::Nothing),
        }
        let [flags, place @ ..] = rest else {
            return Err(format!("expected what kind of request it is after action {action}"));
        };
        let data = flags.trim_start_matches('F');
        let op = match data.chars().next() {
            Some('R') => TraceOp::Read,
            Some('W') => TraceOp::Write,
            Some('D') => return Ok(if *action == "Q" { Line::Other } else { Line::Nothing }),
            // Nothing but a flush, or a command that moves no data of the disk.
            _ if flags.contains('F') => TraceOp::Flush,
            _ => return Ok(Line::Nothing),
        };
        let (start, count) = match place {
            [start, "+", count, ..] => (whole(start, "sector")?, whole(count, "sectors")?),
            // A write of nothing with a flush before it.
            _ if flags.starts_with('F') => (0, 0),
            _ => return Err("expected 'sector + sectors' after the kind".to_owned()),
        };
        if *action == "C" {
            return Ok(Line::Done { device: (*device).to_owned(), start, at });
        }
        self.queues |= *action == "Q";
        if *action == "D" && self.queues {
            return Ok(Line::Nothing);
        }
        let op = if count == 0 { TraceOp::Flush } else { op };
        Ok(Line::Request(Request {
            at,
            op,
            device: (*device).to_owned(),
            start: if op == TraceOp::Flush { 0 } else { start },
            count,
            process: (*process).to_owned(),
            service: None,
        }))
    }
}

/// `12.345678901` as nanoseconds, exactly.
fn seconds(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("expected seconds such as 0.000012345, found '{text}'");
    let (whole, part) = text.split_once('.').ok_or_else(wrong)?;
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
    whole.checked_mul(1_000_000_000).map(|ns| Nanos(ns + part)).ok_or_else(wrong)
}
