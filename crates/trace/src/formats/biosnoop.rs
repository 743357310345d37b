//! biosnoop of bcc: `TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)`, a line for each completion.

use super::{Line, some_sectors, time, unexpected, whole};
use crate::{
    LineError,
    entry::{Request, TraceOp},
    unit::TimeUnit,
};

/// Headings, by which columns are known.
#[derive(Debug, Default)]
pub(crate) struct Biosnoop {
    columns: Vec<String>,
}

impl Biosnoop {
    pub fn line(&mut self, line: &str) -> Result<Line, LineError> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() == Some(&"TIME(s)") && words.contains(&"SECTOR") {
            self.columns = words.into_iter().map(str::to_owned).collect();
            return Ok(Line::Nothing);
        }
        let Some(name) = self.columns.iter().position(|column| column == "COMM") else {
            return Err(unexpected(
                "the headings TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)",
                line,
            ));
        };
        if words.len() < self.columns.len() {
            return Err(LineError::Columns {
                layout: "a column for each heading",
                found: words.len(),
            });
        }
        // A process's name may have spaces.
        let spaces = words.len() - self.columns.len();
        let column = |heading: &str| {
            let place = self.columns.iter().position(|it| it == heading)?;
            words.get(if place <= name { place } else { place + spaces }).copied()
        };
        let of = |heading: &'static str| {
            column(heading).ok_or_else(|| unexpected(heading, "no such column"))
        };
        let ended = time(of("TIME(s)")?, TimeUnit::Seconds, "seconds")?;
        let took = time(of("LAT(ms)")?, TimeUnit::Millis, "milliseconds")?;
        let op = match of("T")? {
            "R" => TraceOp::Read,
            "W" => TraceOp::Write,
            _ => return Ok(Line::Other),
        };
        let start = whole(of("SECTOR")?, "sector")?;
        let count = some_sectors(of("BYTES")?, "bytes")?;
        let device = of("DISK")?.to_owned();
        let mut request =
            Request::of(ended.saturating_sub(took), op, device, start, count).took(took);
        request.process = of("PID")?.to_owned();
        Ok(Line::Request(request))
    }
}
