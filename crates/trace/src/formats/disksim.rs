//! DiskSim's ASCII: `arrival_ms device block blocks flags`.

use super::{Line, time, unexpected, whole};
use crate::{
    LineError,
    entry::{Request, TraceOp},
    unit::TimeUnit,
};

/// Columns of DiskSim's and of MQSim's traces, which mean the same but for the last.
pub(super) fn columns<'a>(line: &'a str, layout: &'static str) -> Result<[&'a str; 5], LineError> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let found = columns.len();
    columns.try_into().map_err(|_| LineError::Columns { layout, found })
}

/// A request of such columns.
pub(super) fn request(
    [arrival, device, start, count, _]: [&str; 5],
    op: TraceOp,
    unit: TimeUnit,
) -> Result<Line, LineError> {
    let at = time(arrival, unit, "an arrival time")?;
    let count = whole(count, "number of blocks")?;
    if count == 0 {
        return Err(LineError::NoBytes);
    }
    let device = whole(device, "device")?.to_string();
    Ok(Line::Request(Request::of(at, op, device, whole(start, "block")?, count)))
}

pub(crate) fn line(line: &str, unit: TimeUnit) -> Result<Line, LineError> {
    let columns = columns(line, "arrival_ms device block blocks flags")?;
    let flags = u64::from_str_radix(columns[4].trim_start_matches("0x"), 16)
        .map_err(|_| unexpected("hexadecimal flags", columns[4]))?;
    let op = if flags & 1 == 1 { TraceOp::Read } else { TraceOp::Write };
    request(columns, op, unit)
}
