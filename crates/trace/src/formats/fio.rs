//! fio's iolog, versions 2 and 3.

use super::{Line, sectors, unexpected, whole};
use crate::{
    LineError,
    entry::{Request, TraceOp},
    unit::TimeUnit,
};
use units::Nanos;

/// Version 2 has the time in `wait` lines, version 3 on every line, in µs.
#[derive(Debug, Default)]
pub(crate) struct Fio {
    version: Option<u8>,
    /// Version 2: the waits so far.
    clock: Nanos,
}

/// Shorter waits are ignored, as fio does, in µs. Documented: fio(1).
const MIN_WAIT_US: u64 = 100;

impl Fio {
    pub fn line(&mut self, line: &str, unit: Option<TimeUnit>) -> Result<Line, LineError> {
        let unit = unit.unwrap_or(TimeUnit::Micros);
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(version) = self.version else {
            self.version = Some(match words[..] {
                ["fio", "version", "2", "iolog"] => 2,
                ["fio", "version", "3", "iolog"] => 3,
                ["fio", "version", other, "iolog"] => {
                    return Err(unexpected("iolog version 2 or 3", other));
                }
                _ => {
                    return Err(unexpected(
                        "'fio version 2 iolog' or 'fio version 3 iolog'",
                        line.trim(),
                    ));
                }
            });
            return Ok(Line::Nothing);
        };
        let (at, rest) = match (version, &words[..]) {
            (2, rest) => (self.clock, rest),
            (_, [stamp, rest @ ..]) => {
                (super::time(stamp, unit, "a timestamp in microseconds")?, rest)
            }
            (_, []) => return Ok(Line::Nothing),
        };
        match rest {
            [_, "add" | "open" | "close"] => Ok(Line::Nothing),
            [_, "wait", time, _] if version == 2 => {
                let wait = whole(time, "microseconds to wait")?;
                if wait >= MIN_WAIT_US {
                    self.clock += Nanos(wait.saturating_mul(unit.length().0));
                }
                Ok(Line::Nothing)
            }
            [_, "trim", offset, length] => {
                whole(offset, "offset")?;
                whole(length, "length")?;
                Ok(Line::Other)
            }
            [file, action, offset, length] => {
                let (offset, length) = (whole(offset, "offset")?, whole(length, "length")?);
                let op = match *action {
                    "read" => TraceOp::Read,
                    "write" => TraceOp::Write,
                    "sync" | "datasync" => TraceOp::Flush,
                    other => return Err(unexpected("read, write, sync, datasync or trim", other)),
                };
                let flush = op == TraceOp::Flush;
                let start = if flush { 0 } else { sectors(offset, "offset")? };
                let count = if flush { 0 } else { sectors(length, "length")? };
                if count == 0 && !flush {
                    return Err(LineError::NoBytes);
                }
                Ok(Line::Request(Request::of(at, op, (*file).to_owned(), start, count)))
            }
            _ => {
                Err(LineError::Columns { layout: "file action [offset length]", found: rest.len() })
            }
        }
    }
}
