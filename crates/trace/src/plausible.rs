//! Whether a file is a trace, and whether its times can be.

use crate::{error::TraceError, format::Format, formats, trace::Trace, unit::TimeUnit};
use units::Nanos;

/// What packed files and other programs' own files begin with.
const OTHERS: [(&[u8], &str, &str); 8] = [
    (b"\x1f\x8b", "packed with gzip", "unpack it first (gunzip)"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "unpack it first (zstd -d)"),
    (b"\xfd7zXZ", "packed with xz", "unpack it first (xz -d)"),
    (b"BZh", "packed with bzip2", "unpack it first (bunzip2)"),
    (b"PK\x03\x04", "a zip archive", "unpack it first (unzip)"),
    (
        b"PERFILE2",
        "a file of perf record",
        "`perf script -i FILE` prints the events that can be read",
    ),
    (b"SQLite format 3", "an SQLite database", "`spindle report` reads run files"),
    (b"tracing", "a file of trace-cmd", "`trace-cmd report` prints the events that can be read"),
];

/// Refuses what is packed, or of another program, by its name.
pub(crate) fn is_text(file: &str, bytes: &[u8]) -> Result<(), TraceError> {
    let begins = |magic: &[u8]| {
        bytes.starts_with(magic)
            || bytes.get(3..).is_some_and(|rest| magic == b"tracing" && rest.starts_with(magic))
    };
    match OTHERS.iter().find(|(magic, ..)| begins(magic)) {
        Some((_, what, instead)) => {
            Err(TraceError::NotText { file: file.to_owned(), what, instead })
        }
        None => Ok(()),
    }
}

/// Why a text is no trace: what it resembles, if anything.
pub(crate) fn unknown(file: &str, text: &str) -> TraceError {
    let file = file.to_owned();
    match formats::nearest(text) {
        Some((format, line, source)) => TraceError::Resembles { file, line, format, source },
        None => TraceError::UnknownFormat { file },
    }
}

/// A mean time between requests that no trace of a busy device has: nobody traces for hours to see a request
/// every minute and a half.
const LONG_GAP: Nanos = Nanos::from_secs(100);

/// Fewer requests have no mean worth the name.
const MIN_REQUESTS: usize = 3;

/// Refuses times that make sense in another unit alone.
pub(crate) fn times(file: &str, trace: &Trace) -> Result<(), TraceError> {
    // Their units are columns' conventions, and other programs write the same columns in another unit.
    let unit = match trace.format {
        Format::DiskSim => TimeUnit::Millis,
        Format::Fio | Format::Alibaba => TimeUnit::Micros,
        Format::Mqsim => TimeUnit::Nanos,
        _ => return Ok(()),
    };
    let requests = trace.entries.len();
    let length = match (trace.entries.first(), trace.entries.last()) {
        (Some(first), Some(last)) => last.at.saturating_sub(first.at),
        _ => return Ok(()),
    };
    if requests < MIN_REQUESTS || length / (requests as u64 - 1) < LONG_GAP {
        return Ok(());
    }
    // The largest unit in which requests follow one another within a second.
    let fits = |other: &TimeUnit| {
        let ratio = unit.length().0 / other.length().0.max(1);
        ratio > 1 && length.0 / ratio / (requests as u64 - 1) < 1_000_000_000
    };
    let others = [TimeUnit::Micros, TimeUnit::Nanos];
    let Some(other) = others.into_iter().find(fits) else { return Ok(()) };
    let instead = Nanos(length.0 / (unit.length().0 / other.length().0));
    let file = file.to_owned();
    Err(TraceError::Units { file, unit, requests, length, other, instead })
}
