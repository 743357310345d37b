//! SPC's trace format, of UMass' traces: `ASU,LBA,size,opcode,timestamp` and optional fields; blocks of 512
//! bytes, bytes, seconds.

use super::{Line, letter, some_sectors, time, whole};
use crate::{LineError, entry::Request, unit::TimeUnit};

pub(crate) fn line(line: &str, unit: TimeUnit) -> Result<Line, LineError> {
    let columns: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    let [asu, block, size, kind, at, ..] = columns[..] else {
        return Err(LineError::Columns {
            layout: "ASU,LBA,size,opcode,timestamp[,…]",
            found: columns.len(),
        });
    };
    let op = letter(kind)?;
    let device = format!("ASU {}", whole(asu, "ASU")?);
    let start = whole(block, "block")?;
    let count = some_sectors(size, "size")?;
    Ok(Line::Request(Request::of(time(at, unit, "seconds")?, op, device, start, count)))
}
