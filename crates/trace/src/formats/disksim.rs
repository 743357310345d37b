//! DiskSim's ASCII: `arrival_ms device block blocks flags`.

use super::{Line, unexpected, whole};
use crate::{LineError, Request, TraceOp};
use units::Nanos;

pub(crate) fn line(line: &str) -> Result<Line, LineError> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let [arrival, device, start, count, flags] = columns[..] else {
        return Err(LineError::Columns {
            layout: "arrival_ms device block blocks flags",
            found: columns.len(),
        });
    };
    let millis: f64 = arrival
        .parse()
        .ok()
        .filter(|ms| (0.0..1e12).contains(ms))
        .ok_or_else(|| unexpected("an arrival in milliseconds", arrival))?;
    let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16)
        .map_err(|_| unexpected("hexadecimal flags", flags))?;
    let count = whole(count, "number of blocks")?;
    if count == 0 {
        return Err(LineError::NoBytes);
    }
    Ok(Line::Request(Request {
        at: Nanos((millis * 1e6).round() as u64),
        op: if flags & 1 == 1 { TraceOp::Read } else { TraceOp::Write },
        device: whole(device, "device")?.to_string(),
        start: whole(start, "block")?,
        count,
        preflush: false,
        fua: false,
        process: String::new(),
        service: None,
    }))
}
