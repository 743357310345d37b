//! DiskSim's ASCII: `arrival_ms device block blocks flags`.

use super::{Line, whole};
use crate::{Request, TraceOp};
use units::Nanos;

pub(crate) fn line(line: &str) -> Result<Line, String> {
    let columns: Vec<&str> = line.split_whitespace().collect();
    let [arrival, device, start, count, flags] = columns[..] else {
        return Err(format!(
            "expected 5 columns 'arrival_ms device block blocks flags', found {}",
            columns.len()
        ));
    };
    let millis: f64 = arrival
        .parse()
        .ok()
        .filter(|ms| (0.0..1e12).contains(ms))
        .ok_or_else(|| format!("expected milliseconds for the arrival, found '{arrival}'"))?;
    let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16)
        .map_err(|_| format!("expected hexadecimal flags, found '{flags}'"))?;
    let count = whole(count, "number of blocks")?;
    if count == 0 {
        return Err("a request of no blocks".to_owned());
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
