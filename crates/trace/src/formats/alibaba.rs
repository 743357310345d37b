//! CSV of Alibaba's block traces: `device_id,opcode,offset,length,timestamp`, bytes and µs.

use super::{Line, letter, sectors, some_sectors, time, whole};
use crate::{LineError, entry::Request, unit::TimeUnit};

pub(crate) fn line(line: &str, unit: TimeUnit) -> Result<Line, LineError> {
    let columns: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    let [device, kind, offset, length, at] = columns[..] else {
        return Err(LineError::Columns {
            layout: "device_id,opcode,offset,length,timestamp",
            found: columns.len(),
        });
    };
    if (device, at) == ("device_id", "timestamp") {
        return Ok(Line::Nothing);
    }
    let op = letter(kind)?;
    let device = format!("volume {}", whole(device, "device")?);
    let start = sectors(whole(offset, "offset")?, "offset")?;
    let count = some_sectors(length, "length")?;
    Ok(Line::Request(Request::of(time(at, unit, "a timestamp")?, op, device, start, count)))
}
