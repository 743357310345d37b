//! CSV of the MSR Cambridge traces: `128166372003061629,hm,1,Read,383496192,32768,413`.

use super::{Line, sectors, unexpected, whole};
use crate::{LineError, Request, TraceOp};
use units::Nanos;

/// Ticks of 100 ns.
fn ticks(text: &str, field: &'static str) -> Result<Nanos, LineError> {
    let ticks = whole(text.trim(), field)?;
    // Counted from 1601: the difference of two fits even where they wrap.
    Ok(Nanos((ticks % (u64::MAX / 100)) * 100))
}

pub(crate) fn line(line: &str) -> Result<Line, LineError> {
    let columns: Vec<&str> = line.trim().split(',').collect();
    let [time, host, disk, kind, offset, size, response] = columns[..] else {
        return Err(LineError::Columns {
            layout: "timestamp,host,disk,type,offset,size,response",
            found: columns.len(),
        });
    };
    if time == "Timestamp" {
        return Ok(Line::Nothing);
    }
    let op = match kind.trim().to_ascii_lowercase().as_str() {
        "read" => TraceOp::Read,
        "write" => TraceOp::Write,
        other => return Err(unexpected("Read or Write", other)),
    };
    let count = sectors(whole(size.trim(), "size")?, "size")?;
    if count == 0 {
        return Err(LineError::NoBytes);
    }
    Ok(Line::Request(Request {
        at: ticks(time, "timestamp")?,
        op,
        device: format!("{} {}", host.trim(), whole(disk.trim(), "disk number")?),
        start: sectors(whole(offset.trim(), "offset")?, "offset")?,
        count,
        preflush: false,
        fua: false,
        process: String::new(),
        service: Some(ticks(response, "response time")?),
    }))
}
