//! blktrace's binary files.

use super::{Line, unexpected};
use crate::{
    LineError,
    entry::{Request, TraceOp},
    event,
};
use units::Nanos;

/// Whether a file begins with an event, of a machine of either byte order.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    order(bytes).is_some()
}

/// How an event's numbers are read.
#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

fn order(bytes: &[u8]) -> Option<Order> {
    let first: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let is_magic = |value: u32| value & 0xffff_ff00 == event::MAGIC;
    match (is_magic(u32::from_le_bytes(first)), is_magic(u32::from_be_bytes(first))) {
        (true, _) => Some(Order::Little),
        (_, true) => Some(Order::Big),
        _ => None,
    }
}

/// What the events of a file say, one after the other; an error where one is cut or damaged, and then no
/// more.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = Result<Line, LineError>> + '_ {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((line, used)) = first(rest) else {
            rest = &[];
            return Some(Err(unexpected("a whole event", "the end of the file, or other bytes")));
        };
        rest = &rest[used..];
        Some(Ok(line))
    })
}

/// The first event, and its bytes.
fn first(bytes: &[u8]) -> Option<(Line, usize)> {
    let order = order(bytes)?;
    let head = bytes.get(..event::LENGTH)?;
    let four = |at: usize| {
        let part = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        match order {
            Order::Little => u32::from_le_bytes(part),
            Order::Big => u32::from_be_bytes(part),
        }
    };
    let eight = |at: usize| match order {
        Order::Little => u64::from(four(at)) | u64::from(four(at + 4)) << 32,
        Order::Big => u64::from(four(at)) << 32 | u64::from(four(at + 4)),
    };
    let two = match order {
        Order::Little => u16::from_le_bytes([head[46], head[47]]),
        Order::Big => u16::from_be_bytes([head[46], head[47]]),
    };
    let end = event::LENGTH + usize::from(two);
    let data = bytes.get(event::LENGTH..end)?;
    let read = Event {
        at: Nanos(eight(8)),
        sector: eight(16),
        bytes: four(24),
        action: four(28),
        pid: four(32),
        device: device(four(36)),
        data,
    };
    Some((read.line(), end))
}

fn device(number: u32) -> String {
    format!("{},{}", number >> 20, number & 0xf_ffff)
}

struct Event<'a> {
    at: Nanos,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: String,
    data: &'a [u8],
}

impl Event<'_> {
    fn line(self) -> Line {
        let (kind, category) = (self.action & 0xffff, self.action >> 16);
        if category & event::NOTE != 0 {
            return self.note(kind);
        }
        let operation = event::operation(category, self.bytes);
        let flush = operation == Some(TraceOp::Flush);
        let start = if flush { 0 } else { self.sector };
        match (kind, operation) {
            (event::QUEUE, None) => Line::Other,
            (event::ISSUE, None) => {
                Line::OtherIssued { passes_through: category & event::PASS_THROUGH != 0 }
            }
            (event::COMPLETE, Some(_)) => Line::Done {
                device: self.device,
                flush,
                start,
                count: u64::from(self.bytes / 512),
                at: self.at,
            },
            (event::COMPLETE, None) if self.bytes == 0 && category & event::WRITE != 0 => {
                match self.sector {
                    0 => Line::FlushDone { device: self.device, at: self.at },
                    start => Line::Done {
                        device: self.device,
                        flush: false,
                        start,
                        count: 0,
                        at: self.at,
                    },
                }
            }
            (event::QUEUE, Some(op)) => Line::Request(self.request(op, category, start)),
            (event::ISSUE, Some(op)) => Line::Issued(self.request(op, category, start)),
            (event::REMAP, _) => match self.data.get(..4) {
                // The device above, in the network's byte order.
                Some(&[a, b, c, d]) => Line::Remapped {
                    device: self.device,
                    start: self.sector,
                    from: device(u32::from_be_bytes([a, b, c, d])),
                },
                _ => Line::Nothing,
            },
            _ => Line::Nothing,
        }
    }

    fn note(&self, kind: u32) -> Line {
        let text = std::str::from_utf8(self.data).ok().filter(|_| kind == event::MESSAGE);
        let lost = text.and_then(|text| text.strip_prefix(event::LOST)?.parse().ok());
        lost.map_or(Line::Nothing, Line::Lost)
    }

    fn request(self, op: TraceOp, category: u32, start: u64) -> Request {
        let write = op == TraceOp::Write;
        Request {
            at: self.at,
            op,
            device: self.device,
            start,
            count: u64::from(self.bytes / 512),
            preflush: write && category & event::FLUSH != 0,
            fua: write && category & event::FUA != 0,
            process: self.pid.to_string(),
            service: None,
        }
    }
}
