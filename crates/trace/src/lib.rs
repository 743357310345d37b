//! Traces of block I/O that other programs recorded: text → [`Trace`].
//!
//! What lives here: the formats, one file each in `formats/`; how their requests become one trace
//! (`trace`, `layout`, `clock`); what is wrong with lines that do not fit (`error`).
//! What does not: opening files, and replaying (`simulate`). Pure.

mod clock;
mod entry;
mod error;
mod event;
mod format;
mod formats;
mod layout;
mod plausible;
mod trace;
mod unit;

pub use entry::{Entry, TraceOp};
pub use error::{LineError, TraceError};
pub use event::{BlockEvent, BlockStage, write_event, write_lost};
pub use format::{Format, UnknownFormat};
pub use trace::Trace;
pub use unit::{TimeUnit, UnknownUnit};

/// How a trace is to be read; what is left open its first lines tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How {
    /// Its format.
    pub format: Option<Format>,
    /// The unit of its times, where it is not its format's own.
    pub unit: Option<TimeUnit>,
    /// Skip and count lines that do not fit.
    pub skip_bad: bool,
}

/// The block event of a line of the kernel's trace file; `None` where there is none.
pub fn event_of_line(line: &str) -> Option<BlockEvent<'_>> {
    formats::event_of_line(line)
}

/// Reads a trace from text: as [`read`] does, in its format's own unit of time.
pub fn parse(
    file: &str,
    text: &str,
    format: Option<Format>,
    skip_bad: bool,
) -> Result<Trace, TraceError> {
    read(file, text.as_bytes(), &How { format, skip_bad, unit: None })
}

/// Reads a trace; `file` is its name in errors. Without a format its first lines decide. A line that
/// does not fit is an error, or is counted and skipped with `skip_bad`.
///
/// Lines may be out of order by up to a second, as those of several processors are. A clock that goes
/// back further was set back, and time continues from the latest request before; a clock that had
/// jumped ahead and comes back leaves no gap. Both are counted in [`Trace::clock_steps`].
pub fn read(file: &str, bytes: &[u8], how: &How) -> Result<Trace, TraceError> {
    let is_binary = formats::is_binary(bytes);
    if !is_binary {
        plausible::is_text(file, bytes)?;
    }
    let text = if is_binary { "".into() } else { String::from_utf8_lossy(bytes) };
    let found = match is_binary {
        true => Some(Format::Blktrace),
        false => how.format.or_else(|| formats::detect(&text)),
    };
    let Some(format) = found else { return Err(plausible::unknown(file, &text)) };
    if how.unit.is_some() && format.has_unit() {
        return Err(TraceError::UnitIsKnown { file: file.to_owned(), format });
    }
    let mut builder = trace::Builder::default();
    let mut bad_lines = 0;
    let mut last = 1;
    let mut take = |number: usize, line: Result<formats::Line, LineError>| match line {
        Ok(line) => {
            builder.take(line);
            Ok(())
        }
        Err(_) if how.skip_bad => {
            bad_lines += 1;
            Ok(())
        }
        Err(source) => Err(TraceError::Line { file: file.to_owned(), line: number, source }),
    };
    if is_binary {
        for (place, line) in formats::binary_lines(bytes).enumerate() {
            take(place + 1, line.and_then(formats::Line::within))?;
            last = place + 1;
        }
    } else {
        let mut reader = formats::Reader::new(format, how.unit);
        for (place, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            take(place + 1, reader.line(line).and_then(formats::Line::within))?;
            last = place + 1;
        }
    }
    let trace = builder.build(format, bad_lines);
    if trace.entries.is_empty() {
        return Err(TraceError::NoRequests { file: file.to_owned(), line: last, format });
    }
    if how.unit.is_none() {
        plausible::times(file, &trace)?;
    }
    Ok(trace)
}

#[cfg(test)]
mod tests;
