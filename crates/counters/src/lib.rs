//! The catalogue of counters: each one's name, unit, how samples of it aggregate, where it comes from;
//! and the formulas of iostat, once.
//!
//! What lives here is data and arithmetic. What does not: reading a counter (`host`, `simulate`,
//! `database`, `emulate`), keeping samples (`record`), or interpreting them (`analysis`). The
//! reference page of counters is written from this catalogue.

mod catalogue;
mod iostat;

pub use catalogue::*;
pub use iostat::{DeviceGrowth, DeviceRates, RequestGrowth};

/// A counter that a run file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name in run files and reports.
    pub id: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// How the samples of a trial become one figure.
    pub aggregate: Aggregate,
    /// What it counts.
    pub meaning: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// The unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Events a second.
    PerSecond,
    /// MiB (2^20 bytes) a second.
    MebibytesPerSecond,
    /// Bytes a second.
    BytesPerSecond,
    /// Bytes.
    Bytes,
    /// KiB.
    Kibibytes,
    /// MiB.
    Mebibytes,
    /// Sectors of 512 bytes.
    Sectors,
    /// Milliseconds.
    Milliseconds,
    /// Milliseconds in each second.
    MillisecondsPerSecond,
    /// Microseconds.
    Microseconds,
    /// Percent.
    Percent,
    /// A share from 0 to 1.
    Share,
    /// A number of things: requests, drives, CPUs.
    Count,
}

impl Unit {
    /// Its symbol, as a table shows it.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::PerSecond => "1/s",
            Unit::MebibytesPerSecond => "MiB/s",
            Unit::BytesPerSecond => "B/s",
            Unit::Bytes => "B",
            Unit::Kibibytes => "KiB",
            Unit::Mebibytes => "MiB",
            Unit::Sectors => "sectors",
            Unit::Milliseconds => "ms",
            Unit::MillisecondsPerSecond => "ms/s",
            Unit::Microseconds => "µs",
            Unit::Percent => "%",
            Unit::Share => "0 to 1",
            Unit::Count => "",
        }
    }
}

/// How the samples of the measured seconds become one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their mean.
    Mean,
    /// The largest.
    Max,
}

impl Aggregate {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Mean => "mean",
            Aggregate::Max => "maximum",
        }
    }
}

/// Names of iostat before version 12 and their successors: old name, today's, and what a value of the
/// old one has to be multiplied by. avgrq-sz is in sectors of 512 bytes, areq-sz in KiB.
const RENAMED: [(&str, &Counter, f64); 2] =
    [("device.avgqu-sz", &DEVICE_AQU_SZ, 1.0), ("device.avgrq-sz", &DEVICE_AREQ_SZ, 0.5)];

/// A counter by its name of any generation, and the factor that makes its values those of today's
/// name; none for one that is not in the catalogue, such as a server's own.
pub fn lookup(name: &str) -> Option<(&'static Counter, f64)> {
    let renamed = RENAMED.iter().find(|(old, ..)| *old == name);
    match renamed {
        Some((_, counter, scale)) => Some((counter, *scale)),
        None => ALL.iter().find(|counter| counter.id == name).map(|counter| (*counter, 1.0)),
    }
}

/// The name of a counter of one device where several are counted: `device.sda.r/s`.
pub fn of_device(id: &str, device: &str) -> String {
    let own = id.strip_prefix("device.").unwrap_or(id);
    format!("device.{device}.{own}")
}

/// How samples of a counter aggregate. Those that a server names itself are rates or levels: their mean.
pub fn aggregate(name: &str) -> Aggregate {
    let of_one_device = || {
        let (_, own) = name.strip_prefix("device.")?.split_once('.')?;
        lookup(&format!("device.{own}"))
    };
    let found = lookup(name).or_else(of_one_device);
    found.map_or(Aggregate::Mean, |(counter, _)| counter.aggregate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_counter_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = ALL.iter().map(|counter| counter.id).collect();
        assert_eq!(names.len(), ALL.len());
        for counter in ALL {
            assert!(!counter.meaning.ends_with('.') && !counter.meaning.is_empty());
        }
    }

    #[test]
    fn both_generations_of_iostats_names_are_known() {
        assert_eq!(lookup("device.avgqu-sz"), Some((&DEVICE_AQU_SZ, 1.0)));
        let (counter, scale) = lookup("device.avgrq-sz").unwrap();
        assert_eq!((counter.id, 16.0 * scale), ("device.areq-sz", 8.0));
        assert_eq!(lookup("device.r/s"), Some((&DEVICE_R, 1.0)));
        assert_eq!(lookup("mariadb.fsyncs/s"), None);
        assert_eq!(of_device("device.r/s", "sda"), "device.sda.r/s");
        assert_eq!(aggregate("device.nvme0c0n1.r/s"), DEVICE_R.aggregate);
    }
}
