//! MQSim's ASCII: `arrival_ns device sector sectors type`, 1 for a read and 0 for a write.

use super::{Line, disksim, unexpected};
use crate::{LineError, entry::TraceOp, unit::TimeUnit};

pub(crate) fn line(line: &str, unit: TimeUnit) -> Result<Line, LineError> {
    let columns = disksim::columns(line, "arrival_ns device sector sectors type")?;
    let op = match columns[4] {
        "1" => TraceOp::Read,
        "0" => TraceOp::Write,
        other => return Err(unexpected("1 (a read) or 0 (a write)", other)),
    };
    disksim::request(columns, op, unit)
}
