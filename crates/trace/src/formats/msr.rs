//! CSV of the MSR Cambridge traces: `128166372003061629,hm,1,Read,383496192,32768,413`; of derivatives with
//! other columns by the names in their first line.

use super::{Line, sectors, some_sectors, time, unexpected, whole};
use crate::{
    LineError,
    entry::{Request, TraceOp},
    unit::TimeUnit,
};

/// Columns of the published files, in their order; derivatives spell them with underscores.
const COLUMNS: [&str; 7] =
    ["timestamp", "hostname", "disknumber", "type", "offset", "size", "responsetime"];

/// Where the columns are, where the first line says it.
#[derive(Debug, Default)]
pub(crate) struct Msr {
    places: Option<[usize; 7]>,
    columns: usize,
}

impl Msr {
    pub fn line(&mut self, line: &str, unit: TimeUnit) -> Result<Line, LineError> {
        let columns: Vec<&str> = line.trim().split(',').map(str::trim).collect();
        if let Some(places) = heading(&columns) {
            (self.places, self.columns) = (Some(places), columns.len());
            return Ok(Line::Nothing);
        }
        let wanted = self.places.map_or(COLUMNS.len(), |_| self.columns);
        if columns.len() != wanted {
            return Err(LineError::Columns {
                layout: "timestamp,host,disk,type,offset,size,response",
                found: columns.len(),
            });
        }
        let [at, host, disk, kind, offset, size, response] =
            self.places.unwrap_or([0, 1, 2, 3, 4, 5, 6]).map(|place| columns[place]);
        let op = match kind.to_ascii_lowercase().as_str() {
            "read" => TraceOp::Read,
            "write" => TraceOp::Write,
            other => return Err(unexpected("Read or Write", other)),
        };
        let device = format!("{host} {}", whole(disk, "disk number")?);
        let start = sectors(whole(offset, "offset")?, "offset")?;
        let count = some_sectors(size, "size")?;
        let took = time(response, unit, "a response time")?;
        Ok(Line::Request(
            Request::of(time(at, unit, "a timestamp")?, op, device, start, count).took(took),
        ))
    }
}

/// Where each column is, if this line has all their names.
fn heading(columns: &[&str]) -> Option<[usize; 7]> {
    let names: Vec<String> =
        columns.iter().map(|name| name.to_ascii_lowercase().replace('_', "")).collect();
    let mut places = [0; 7];
    for (place, wanted) in places.iter_mut().zip(COLUMNS) {
        *place = names.iter().position(|name| name == wanted)?;
    }
    Some(places)
}
