//! CSV of Tencent's block traces: `Timestamp,Offset,Size,IOType,VolumeID`: seconds, sectors, 0 for a read.

use super::{Line, time, unexpected, whole};
use crate::{
    LineError,
    entry::{Request, TraceOp},
    unit::TimeUnit,
};

pub(crate) fn line(line: &str, unit: TimeUnit) -> Result<Line, LineError> {
    let columns: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    let [at, offset, size, kind, volume] = columns[..] else {
        return Err(LineError::Columns {
            layout: "Timestamp,Offset,Size,IOType,VolumeID",
            found: columns.len(),
        });
    };
    if (at, kind) == ("Timestamp", "IOType") {
        return Ok(Line::Nothing);
    }
    let op = match kind {
        "0" => TraceOp::Read,
        "1" => TraceOp::Write,
        other => return Err(unexpected("0 (a read) or 1 (a write)", other)),
    };
    let start = whole(offset, "offset")?;
    let count = whole(size, "size")?;
    if count == 0 {
        return Err(LineError::NoBytes);
    }
    let device = format!("volume {}", whole(volume, "volume")?);
    Ok(Line::Request(Request::of(time(at, unit, "a timestamp")?, op, device, start, count)))
}
