//! What another program printed about a run that it made: figures, each with the line that it stands on.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use units::{Bytes, Nanos};
use workload::WordError;

/// A run of another program, as its output describes it. It holds summaries alone: what the program
/// computed, not the latencies that it computed them from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The program and, where the output says it, its version: `sysbench 1.0.20`.
    pub tool: String,
    /// Where the output stands.
    pub excerpt: Excerpt,
    /// The figure on which cells are compared.
    pub rate: Option<ImportedRate>,
    /// All figures, in the order of their lines.
    pub figures: Vec<ImportedFigure>,
    /// What is wrong with them, or limits what they can show.
    pub doubts: Vec<Doubt>,
}

/// A part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Excerpt {
    /// The file, as the user named it.
    pub file: String,
    /// Its first line, from 1.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
}

/// How much was done in a time, as the program printed it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedRate {
    /// The value.
    pub value: f64,
    /// What it counts.
    pub unit: RateUnit,
    /// The line, from 1.
    pub line: u64,
}

/// What a rate counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateUnit {
    /// Reads and writes a second.
    Iops,
    /// Transactions a second.
    TransactionsPerSecond,
    /// New-order transactions a minute: what programs in the manner of TPC-C print as tpmC, TpmC or NOPM.
    NewOrdersPerMinute,
    /// Blocks of 1 KiB a second, as vmstat counts them.
    BlocksPerSecond,
}

impl RateUnit {
    /// As a table's column is called.
    pub fn heading(self) -> &'static str {
        match self {
            RateUnit::Iops => "IOPS",
            RateUnit::TransactionsPerSecond => "trans/s",
            RateUnit::NewOrdersPerMinute => "new orders/min",
            RateUnit::BlocksPerSecond => "blocks/s",
        }
    }
}

/// A figure as it was printed, in a unit that does not depend on the program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedFigure {
    /// What it is about: `read`, `write`, `fsync`, `transactions`, `NEW_ORDER`, a device's name.
    pub subject: String,
    /// What it is.
    #[serde(with = "as_word")]
    pub quantity: Quantity,
    /// Its value: counts, seconds, bytes, bytes a second, events a second, latencies in nanoseconds.
    pub value: f64,
    /// The line, from 1.
    pub line: u64,
}

/// What a figure is, and with it its unit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// How many.
    Count,
    /// How many a second.
    Rate,
    /// How many a minute.
    RatePerMinute,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    Bandwidth,
    /// How long, in seconds.
    Seconds,
    /// The shortest latency, ns.
    LatencyMin,
    /// The mean latency, ns.
    LatencyMean,
    /// The standard deviation of latencies, ns.
    LatencyDeviation,
    /// The longest latency, ns.
    LatencyMax,
    /// All latencies together, ns.
    LatencySum,
    /// A percentile of latencies, in thousandths of a percent: 99000 is the 99th; ns.
    Percentile(u32),
    /// Events a thread, mean.
    PerThread,
    /// Their standard deviation.
    PerThreadDeviation,
    /// A column of a program that prints tables, by its heading.
    Column(String),
}

impl Quantity {
    /// Whether it is about how long operations took.
    pub fn is_latency(&self) -> bool {
        matches!(
            self,
            Quantity::LatencyMin
                | Quantity::LatencyMean
                | Quantity::LatencyDeviation
                | Quantity::LatencyMax
                | Quantity::LatencySum
                | Quantity::Percentile(_)
        )
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Quantity::Count => "count",
            Quantity::Rate => "rate",
            Quantity::RatePerMinute => "rate_per_minute",
            Quantity::Bytes => "bytes",
            Quantity::Bandwidth => "bandwidth",
            Quantity::Seconds => "seconds",
            Quantity::LatencyMin => "latency_min",
            Quantity::LatencyMean => "latency_mean",
            Quantity::LatencyDeviation => "latency_deviation",
            Quantity::LatencyMax => "latency_max",
            Quantity::LatencySum => "latency_sum",
            Quantity::Percentile(milli) => {
                return f.pad(&format!("p{}", f64::from(*milli) / 1000.0));
            }
            Quantity::PerThread => "per_thread",
            Quantity::PerThreadDeviation => "per_thread_deviation",
            Quantity::Column(name) => return f.pad(&format!("column {name}")),
        };
        f.pad(word)
    }
}

impl FromStr for Quantity {
    type Err = WordError;
    fn from_str(word: &str) -> Result<Self, WordError> {
        if let Some(name) = word.strip_prefix("column ") {
            return Ok(Quantity::Column(name.to_owned()));
        }
        Ok(match word {
            "count" => Quantity::Count,
            "rate" => Quantity::Rate,
            "rate_per_minute" => Quantity::RatePerMinute,
            "bytes" => Quantity::Bytes,
            "bandwidth" => Quantity::Bandwidth,
            "seconds" => Quantity::Seconds,
            "latency_min" => Quantity::LatencyMin,
            "latency_mean" => Quantity::LatencyMean,
            "latency_deviation" => Quantity::LatencyDeviation,
            "latency_max" => Quantity::LatencyMax,
            "latency_sum" => Quantity::LatencySum,
            "per_thread" => Quantity::PerThread,
            "per_thread_deviation" => Quantity::PerThreadDeviation,
            other => {
                let percent = other.strip_prefix('p').and_then(|it| it.parse::<f64>().ok());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                Quantity::Percentile(percent.map(|it| (it * 1000.0).round() as u32).ok_or_else(
                    || WordError::new(format!("'{other}' is no quantity of an imported figure")),
                )?)
            }
        })
    }
}

/// A quantity as its word.
mod as_word {
    use super::Quantity;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(quantity: &Quantity, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(quantity)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A line of a file, and what stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// The line, from 1.
    pub line: u64,
    /// Its text, cut where it is long.
    pub text: String,
}

/// What is wrong with imported figures, or limits what they can show. Data alone: `report` has the words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Doubt {
    /// Two printed figures contradict each other.
    Contradiction {
        /// What the figure is: `transactions a second`.
        what: String,
        /// What the output says.
        stated: f64,
        /// What follows from the other line.
        computed: f64,
        /// Where it is said.
        at: Quoted,
        /// What it contradicts.
        against: Quoted,
    },
    /// A table of the text has another figure than the output that it summarises.
    Misprint {
        /// What the table says.
        stated: f64,
        /// What the output says.
        measured: f64,
        /// The row.
        at: Quoted,
        /// The line of the output.
        against: Quoted,
    },
    /// The run was far too short.
    TooShort {
        /// How long it was.
        length: Nanos,
    },
    /// Figures that a device does not reach: a cache answered.
    Cache {
        /// What shows it.
        sign: CacheSign,
        /// Where it is said.
        at: Quoted,
    },
    /// The latencies are of several kinds of operations together.
    MixedLatencies {
        /// Reads and writes.
        data: f64,
        /// Calls of fsync.
        syncs: f64,
    },
    /// There were more calls of fsync than writes.
    MoreSyncsThanWrites {
        /// Calls of fsync a second.
        syncs: f64,
        /// Writes a second.
        writes: f64,
    },
    /// There is one percentile alone.
    OnePercentile {
        /// In percent.
        percent: f64,
    },
    /// There is a mean alone: nothing says how long the longest took.
    NoPercentiles,
    /// Percentiles are the ends of wide buckets.
    CoarsePercentiles,
    /// The program caps latencies.
    CappedLatency {
        /// The cap.
        at: Nanos,
    },
    /// A value that cannot have been measured, and is not taken.
    Impossible {
        /// What it is.
        what: String,
        /// Where it is said.
        at: Quoted,
    },
    /// A figure that the program does not print in this way: the output was edited.
    Edited {
        /// What shows it.
        sign: EditSign,
        /// Where it is said.
        at: Quoted,
    },
    /// Jobs ran at the same time: together they are one run.
    JobsTogether {
        /// How many.
        jobs: u64,
        /// Percentiles are those of one of them.
        of_one: bool,
    },
    /// Terse lines do not say whether they are of one run.
    TerseLines,
    /// Latencies are of one direction, and the rate is of several.
    LatenciesOfOne {
        /// Of which: `read`.
        subject: String,
        /// Its share of the operations, in percent.
        percent: f64,
    },
    /// Jobs that were asked for different things stand together in one group.
    MixedGroup {
        /// Bytes an operation, mean.
        mean: f64,
        /// Bytes an operation, as asked of the job that is named.
        asked: u64,
    },
    /// Reports count from the beginning, not from the report before: only the last one is taken.
    Cumulative {
        /// How many reports.
        reports: u64,
    },
    /// The report is the mean since boot.
    SinceBoot {
        /// Where it is.
        at: Quoted,
    },
    /// Samples differ much.
    Unsteady {
        /// The lowest.
        low: f64,
        /// The highest.
        high: f64,
    },
    /// The program does not check what the specification of TPC-C demands.
    NotTpc,
    /// Clients wait for one another's rows.
    SmallScale {
        /// The scale.
        scale: u64,
        /// The clients.
        clients: u64,
    },
    /// The device did much less than was asked of it: neighbouring operations were merged.
    Merged {
        /// Operations that the program counted.
        operations: f64,
        /// Requests that the device did.
        requests: f64,
    },
    /// The device's figures cover more time than the program's.
    DeviceTimeDiffers {
        /// The program's time.
        measured: Nanos,
        /// The time from start to end.
        elapsed: Nanos,
    },
    /// The same name stands several times in one object.
    RepeatedName {
        /// The name.
        name: String,
        /// How often.
        times: u64,
    },
    /// Shares that should be a whole are more.
    SharesAboveWhole {
        /// What they are of.
        what: String,
        /// Their sum in percent.
        percent: f64,
    },
    /// The kernel counts flushes as reads, too.
    FlushesCountedAsReads {
        /// The device.
        device: String,
        /// Flushes a second.
        flushes: f64,
        /// The queue's mean length without them.
        queue: f64,
    },
    /// Requests waited long on a device that was mostly idle.
    Stalls {
        /// The device.
        device: String,
        /// Mean requests in the queue.
        queue: f64,
        /// Its busy share in percent.
        busy: f64,
    },
    /// Operations that the program says went wrong.
    Errors {
        /// How many.
        count: u64,
        /// Where it is said.
        at: Quoted,
    },
    /// The program's own totals are missing, and the rate is the mean of its interval lines.
    MeanOfSamples {
        /// How many.
        samples: u64,
        /// Lines that are left out: clients had begun to end.
        left_out: u64,
    },
    /// The output ends before its figures are complete.
    Incomplete {
        /// What is missing.
        missing: String,
    },
    /// Kinds of transactions were counted over different times.
    UnequalTimes {
        /// The shortest, in seconds.
        low: f64,
        /// The longest.
        high: f64,
    },
    /// Part of the output could not be read.
    Unread {
        /// Where.
        at: Quoted,
    },
}

/// What shows that a cache answered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "sign", rename_all = "snake_case")]
pub enum CacheSign {
    /// The shortest latency is below what a device takes.
    Latency {
        /// It.
        shortest: Nanos,
    },
    /// All data fit in the memory that the output names.
    FitsMemory {
        /// The data.
        data: Bytes,
        /// The memory.
        memory: Bytes,
    },
}

/// What shows that an output was edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditSign {
    /// Digits are grouped.
    GroupedDigits,
    /// The mean and the rate fit each other to the last digit, which clients that also do other things do
    /// not reach.
    TooExact,
}

impl Imported {
    /// A figure's value, if it was printed.
    pub fn figure(&self, subject: &str, quantity: &Quantity) -> Option<&ImportedFigure> {
        let wanted = |it: &&ImportedFigure| it.subject == subject && it.quantity == *quantity;
        self.figures.iter().find(wanted)
    }

    /// A latency of what the rate counts; where that has none of its own, of the subject that has the most
    /// operations.
    pub fn latency(&self, quantity: &Quantity) -> Option<Nanos> {
        let of_rate = self.figures.iter().find(|it| {
            matches!(it.quantity, Quantity::Rate | Quantity::RatePerMinute)
                && self.rate.is_some_and(|rate| rate.line == it.line)
        });
        if let Some(own) = of_rate.and_then(|it| self.figure(&it.subject, quantity)) {
            return Some(Nanos(own.value.round().max(0.0) as u64));
        }
        let mut found: Option<(&ImportedFigure, f64)> = None;
        for figure in self.figures.iter().filter(|it| it.quantity == *quantity) {
            let weight = [Quantity::Count, Quantity::Rate]
                .iter()
                .find_map(|it| self.figure(&figure.subject, it))
                .map_or(0.0, |it| it.value);
            if found.is_none_or(|(_, best)| weight > best) {
                found = Some((figure, weight));
            }
        }
        found.map(|(figure, _)| Nanos(figure.value.round().max(0.0) as u64))
    }

    /// Percentiles that were printed, in thousandths of a percent, ascending.
    pub fn percentiles(&self) -> Vec<u32> {
        let all = self.figures.iter().filter_map(|it| match it.quantity {
            Quantity::Percentile(milli) => Some(milli),
            _ => None,
        });
        all.collect::<std::collections::BTreeSet<u32>>().into_iter().collect()
    }

    /// Bytes a second of reads and writes together, if they were printed.
    pub fn bandwidth(&self) -> Option<f64> {
        // Of all directions together.
        if let Some(mixed) = self.figure("mixed", &Quantity::Bandwidth) {
            return Some(mixed.value);
        }
        let all = self.figures.iter().filter(|it| it.quantity == Quantity::Bandwidth);
        all.map(|it| it.value).reduce(|a, b| a + b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_back_as_written() {
        for quantity in [
            Quantity::Count,
            Quantity::LatencyMean,
            Quantity::Percentile(99_950),
            Quantity::Percentile(50_000),
            Quantity::Column("r/s".to_owned()),
        ] {
            assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
        }
        assert!("colour".parse::<Quantity>().is_err());
        assert!("p101".parse::<Quantity>().is_err());
    }
}
