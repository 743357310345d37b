//! CSV of SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`, times in seconds.

use super::{Line, letter, sectors, some_sectors, time, whole};
use crate::{LineError, entry::Request, unit::TimeUnit};

pub(crate) fn line(line: &str, unit: TimeUnit) -> Result<Line, LineError> {
    let columns: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    let [at, response, kind, lun, offset, size] = columns[..] else {
        return Err(LineError::Columns {
            layout: "Timestamp,Response,IOType,LUN,Offset,Size",
            found: columns.len(),
        });
    };
    if (at, kind) == ("Timestamp", "IOType") {
        return Ok(Line::Nothing);
    }
    let at = time(at, unit, "a timestamp in seconds")?;
    let device = format!("LUN {}", whole(lun, "LUN")?);
    let start = sectors(whole(offset, "offset")?, "offset")?;
    // Some lines do not say what was done.
    if kind.is_empty() {
        return Ok(Line::Other);
    }
    let (op, count) = (letter(kind)?, some_sectors(size, "size")?);
    let request = Request::of(at, op, device, start, count);
    Ok(Line::Request(match response {
        "" => request,
        response => request.took(time(response, unit, "a response time in seconds")?),
    }))
}
