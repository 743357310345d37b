//! CSV of the MSR Cambridge traces: `128166372003061629,hm,1,Read,383496192,32768,413`.

use super::{Line, sectors, whole};
use crate::{Request, TraceOp};
use units::Nanos;

/// Ticks of 100 ns.
fn ticks(text: &str, what: &str) -> Result<Nanos, String> {
    let ticks = whole(text.trim(), what)?;
    // From 1601 to the 22nd century: what is counted is a difference, which fits easily.
    Ok(Nanos((ticks % (u64::MAX / 100)) * 100))
}

pub(crate) fn line(line: &str) -> Result<Line, String> {
    let columns: Vec<&str> = line.trim().split(',').collect();
    let [time, host, disk, kind, offset, size, response] = columns[..] else {
        return Err(format!(
            "expected 7 columns 'timestamp,host,disk,type,offset,size,response', found {}",
            columns.len()
        ));
    };
    if time == "Timestamp" {
        return Ok(Line::Nothing);
    }
    let op = match kind.trim().to_ascii_lowercase().as_str() {
        "read" => TraceOp::Read,
        "write" => TraceOp::Write,
        other => return Err(format!("expected Read or Write, found '{other}'")),
    };
    let count = sectors(whole(size.trim(), "size")?, "size")?;
    if count == 0 {
        return Err("a request of no bytes".to_owned());
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
