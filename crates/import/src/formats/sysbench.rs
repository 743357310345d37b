//! sysbench: fileio and database tests of 0.4, 0.5, 1.0 and 1.1.

use super::{Format, Line, Reading};
use crate::{
    Output, Piece, PieceKind, checks,
    text::{bytes, field, number, number_with_unit, whole},
};
use record::{Doubt, ImportedRate, Quantity, Quoted, RateUnit};
use units::Nanos;
use workload::{Order, Pattern};

/// Headings of sections; an output that was cut at its beginning begins with one.
const SECTIONS: [&str; 8] = [
    "File operations",
    "Throughput",
    "OLTP test statistics",
    "SQL statistics",
    "General statistics",
    "Test execution summary",
    "Latency (ms)",
    "Threads fairness",
];

/// Latencies above this are counted as this.
const CAP: Nanos = Nanos::from_secs(100);

pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    is_banner(line)
        || line.strip_suffix(':').is_some_and(|line| SECTIONS[..6].contains(&line))
        || line.starts_with("Operations performed:")
        || interval(line).is_some()
}

/// `sysbench 0.4.12:  multi-threaded system evaluation benchmark`, `sysbench 1.0.20 (using …)`.
fn is_banner(line: &str) -> bool {
    line.strip_prefix("sysbench ").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && (rest.contains("multi-threaded") || rest.contains("(using"))
    })
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let mut reader = Reader::default();
    let mut used = 0;
    for line in lines {
        if used > 0 && reader.ends_before(line.text.trim()) {
            break;
        }
        reader.line(line);
        used += 1;
        if reader.complete {
            break;
        }
    }
    let lines = &lines[..used];
    let has_content = !reader.output.figures.is_empty()
        || reader.output.failure.is_some()
        || !reader.intervals.is_empty();
    let mut pieces = Vec::new();
    if has_content {
        let tool = match &reader.version {
            Some(version) => format!("sysbench {version}"),
            None => "sysbench".to_owned(),
        };
        let last = lines[reader.last_known.min(used - 1)].number;
        let output = reader.finish(lines);
        let kind = PieceKind::Run(Box::new(output));
        pieces.push(Piece { format: Format::Sysbench, tool, first: lines[0].number, last, kind });
    }
    Reading { lines: used, pieces }
}

/// `[ 10s ] thds: 8 tps: 491.43 …`: seconds and what follows.
fn interval(line: &str) -> Option<(f64, &str)> {
    let (time, rest) = line.strip_prefix('[')?.split_once(']')?;
    let seconds = number(time.trim().strip_suffix('s')?)?;
    let known = ["thds:", "threads:", "reads:"].iter().any(|word| rest.contains(word));
    known.then_some((seconds, rest))
}

/// A line of an interval.
struct Interval {
    /// Seconds from the beginning.
    at: f64,
    rate: f64,
    /// Whether the rate is one of transactions.
    transactions: bool,
    threads: Option<u64>,
    line: Quoted,
}

#[derive(Default)]
struct Reader {
    output: Output,
    intervals: Vec<Interval>,
    version: Option<String>,
    section: String,
    seen: Vec<String>,
    /// Lines read, and the last of them that was understood.
    at: usize,
    last_known: usize,
    complete: bool,
    file_test: bool,
    database_test: Option<String>,
    old: bool,
}

impl Reader {
    /// Whether a line belongs to another output.
    fn ends_before(&self, line: &str) -> bool {
        let section = line.strip_suffix(':').unwrap_or_default();
        is_banner(line)
            || self.seen.iter().any(|seen| seen == section)
            || (line.starts_with("Operations performed:") && self.output.rate.is_some())
            || Format::ALL.iter().any(|format| *format != Format::Sysbench && format.begins(line))
    }

    fn line(&mut self, line: &Line<'_>) {
        let text = line.text.trim();
        if self.understood(text, line) {
            self.last_known = self.at;
        }
        self.at += 1;
    }

    fn understood(&mut self, text: &str, line: &Line<'_>) -> bool {
        if is_banner(text) {
            let version = text["sysbench ".len()..].split([':', ' ']).next().unwrap_or_default();
            self.version = Some(version.trim_end_matches(':').to_owned());
            return true;
        }
        if let Some((seconds, rest)) = interval(text) {
            return self.interval(seconds, rest, line);
        }
        if text.starts_with("FATAL:") {
            self.output.failure.get_or_insert_with(|| line.quoted());
            return true;
        }
        if let Some(section) = text.strip_suffix(':') {
            if SECTIONS.contains(&section) {
                self.seen.push(section.to_owned());
                section.clone_into(&mut self.section);
                return true;
            }
            return matches!(
                section,
                "queries performed"
                    | "per-request statistics"
                    | "response time"
                    | "Latency histogram (values are in milliseconds)"
            );
        }
        self.option(text) || self.old_file(text, line) || self.named(text, line)
    }

    fn interval(&mut self, at: f64, rest: &str, line: &Line<'_>) -> bool {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let after = |name: &str| {
            let place = words.iter().position(|word| *word == name)?;
            Some(words.get(place + 1)?.trim_end_matches(','))
        };
        let value = |name: &str| after(name).and_then(number);
        let transactions = value("tps:");
        let Some(rate) = transactions.or_else(|| Some(value("reads:")? + value("writes:")?)) else {
            return true;
        };
        let threads = after("thds:").or_else(|| after("threads:")).and_then(whole);
        let transactions = transactions.is_some();
        self.intervals.push(Interval { at, rate, transactions, threads, line: line.quoted() });
        true
    }

    /// The samples that are of the test: before its threads end, and without a counter that went below zero.
    fn samples(&mut self) {
        let (sane, wrong): (Vec<Interval>, Vec<Interval>) =
            std::mem::take(&mut self.intervals).into_iter().partition(|it| it.rate < 1e15);
        let what = "rate of an interval";
        self.output.doubts.extend(
            wrong.into_iter().map(|it| Doubt::Impossible { what: what.to_owned(), at: it.line }),
        );
        let most = sane.iter().filter_map(|it| it.threads).max();
        let first = sane.iter().position(|it| it.threads == most).unwrap_or(0);
        let ends = sane.iter().skip(first).position(|it| it.threads < most);
        // Some had nothing more to do within the interval before.
        let kept = ends.map_or(sane.len(), |ends| (first + ends).saturating_sub(1).max(1));
        let left_out = (sane.len() - kept) as u64;
        self.output.samples = sane[..kept].iter().map(|it| (it.at, it.rate)).collect();
        let of_transactions = sane[..kept].iter().all(|it| it.transactions);
        if self.output.figures.is_empty() && of_transactions {
            self.output.conditions.clients = self.output.conditions.clients.or(most);
            if let Some(first) = sane.first() {
                self.output.rate_of_samples(first.line.line, left_out);
            }
        }
    }

    /// What was asked for.
    fn option(&mut self, text: &str) -> bool {
        let conditions = &mut self.output.conditions;
        if let Some(threads) = text.strip_prefix("Number of threads:") {
            conditions.clients = whole(threads);
        } else if let Some(test) = text.strip_prefix("Doing ") {
            let test = test.trim_end_matches(" test").trim_end_matches(" test.");
            if let Some((name, pattern)) = file_pattern(test) {
                self.file_test = true;
                conditions.pattern = Some(pattern);
                conditions.benchmark = format!("fileio {name}");
            } else if test == "read-only" {
                self.database_test.get_or_insert_default().push_str(" read-only");
            } else if test == "OLTP" {
                self.database_test.get_or_insert_default();
            } else {
                return false;
            }
        } else if let Some(kind) =
            text.strip_prefix("Running ").and_then(|it| it.strip_suffix(" OLTP test"))
        {
            *self.database_test.get_or_insert_default() = kind.to_owned();
        } else if let Some(size) = text.strip_prefix("Block size ") {
            conditions.block_size = bytes(size).map(|size| size as u64);
        } else if let Some(size) = text.strip_suffix(" total file size") {
            conditions.size = bytes(size).map(|size| size as u64);
        } else if let Some(flags) = text.strip_prefix("Extra file open flags:") {
            // O_DIRECT is 16384 on x86, and a word from 1.0 on.
            let flags = flags.trim();
            let direct = whole(flags).is_some_and(|flags| flags & 16384 != 0);
            conditions.direct = Some(direct || flags.contains("direct"));
        } else {
            return false;
        }
        true
    }

    /// The sums of fileio before 1.0.
    fn old_file(&mut self, text: &str, line: &Line<'_>) -> bool {
        let number_at = line.number;
        let output = &mut self.output;
        if let Some(rest) = text.strip_prefix("Operations performed:") {
            self.file_test = true;
            self.old = true;
            for part in rest.split([',', '=']) {
                let mut words = part.split_whitespace();
                let (Some(count), Some(kind)) = (words.next().and_then(whole), words.next()) else {
                    continue;
                };
                let subject = match kind.to_ascii_lowercase().as_str() {
                    "read" | "reads" => "read",
                    "write" | "writes" => "write",
                    "other" => "fsync",
                    _ => "all",
                };
                output.add(subject, Quantity::Count, count as f64, number_at);
            }
            return true;
        }
        if let Some(rest) = text.strip_suffix(" Requests/sec executed") {
            if let Some(value) = number(rest) {
                output.add("all", Quantity::Rate, value, number_at);
                let unit = RateUnit::Iops;
                output.rate = Some(ImportedRate { value, unit, line: number_at });
            }
            return true;
        }
        if text.starts_with("Read ") && text.contains("Written ") {
            for (subject, name) in
                [("read", "Read "), ("write", "Written "), ("all", "transferred ")]
            {
                let value = text.split(name).nth(1).and_then(|it| it.split_whitespace().next());
                if let Some(value) = value.and_then(bytes) {
                    output.add(subject, Quantity::Bytes, value, number_at);
                }
            }
            let rate = text.split('(').nth(1).map(|it| it.trim_end_matches(')'));
            if let Some(value) = rate.and_then(bytes) {
                output.add("all", Quantity::Bandwidth, value, number_at);
            }
            return true;
        }
        false
    }

    /// `name: value`.
    fn named(&mut self, text: &str, line: &Line<'_>) -> bool {
        let Some((name, value)) = field(text) else { return false };
        let first = value.split_whitespace().next().unwrap_or_default();
        let at = line.number;
        match self.section.as_str() {
            "File operations" => self.file_rate(name, value, at),
            "Throughput" => self.throughput(name, value, at),
            "OLTP test statistics" | "SQL statistics" => self.queries(name, value, at),
            "General statistics" | "Test execution summary" | "Latency (ms)" => {
                self.general(name, first, line)
            }
            "Threads fairness" => self.fairness(name, value, at),
            _ => false,
        }
    }

    fn file_rate(&mut self, name: &str, value: &str, at: u64) -> bool {
        let subject = match name {
            "reads/s" => "read",
            "writes/s" => "write",
            "fsyncs/s" => "fsync",
            // 1.1: `read: IOPS=6029.56 94.21 MiB/s (98.79 MB/s)`.
            "read" | "write" | "fsync" if value.starts_with("IOPS=") => {
                let mut words = value["IOPS=".len()..].split_whitespace();
                self.file_test = true;
                if let Some(rate) = words.next().and_then(number) {
                    self.output.add(name, Quantity::Rate, rate, at);
                }
                if let (Some(amount), Some("MiB/s")) = (words.next().and_then(number), words.next())
                {
                    let amount = amount * f64::from(1 << 20);
                    self.output.add(name, Quantity::Bandwidth, amount, at);
                }
                return true;
            }
            _ => return false,
        };
        self.file_test = true;
        if let Some(rate) = number(value) {
            self.output.add(subject, Quantity::Rate, rate, at);
        }
        true
    }

    fn throughput(&mut self, name: &str, value: &str, at: u64) -> bool {
        match name {
            "read, MiB/s" | "written, MiB/s" => {
                let subject = if name.starts_with("read") { "read" } else { "write" };
                if let Some(amount) = number(value) {
                    let amount = amount * f64::from(1 << 20);
                    self.output.add(subject, Quantity::Bandwidth, amount, at);
                }
                true
            }
            "events/s (eps)" => {
                if let Some(rate) = number(value) {
                    self.output.add("events", Quantity::Rate, rate, at);
                }
                true
            }
            "time elapsed" => {
                self.time(value, at);
                true
            }
            "total number of events" => {
                if let Some(count) = number(value) {
                    self.output.add("events", Quantity::Count, count, at);
                }
                true
            }
            "read" | "write" | "fsync" => self.file_rate(name, value, at),
            _ => false,
        }
    }

    fn queries(&mut self, name: &str, value: &str, at: u64) -> bool {
        self.database_test.get_or_insert_default();
        let (subject, is_old) = match name {
            "read" => ("queries read", false),
            "write" => ("queries write", false),
            "other" => ("queries other", false),
            "total" => ("queries", false),
            "transactions" => ("transactions", false),
            "queries" => ("queries", false),
            "read/write requests" => ("read/write requests", true),
            "other operations" => ("other operations", true),
            "deadlocks" => ("deadlocks", true),
            "ignored errors" => ("errors", false),
            "reconnects" => ("reconnects", false),
            _ => return false,
        };
        self.old |= is_old;
        let mut words = value.split_whitespace();
        if let Some(count) = words.next().and_then(number)
            && self.output.figure(subject, &Quantity::Count).is_none()
        {
            self.output.add(subject, Quantity::Count, count, at);
        }
        let rate = value.split('(').nth(1).and_then(|it| it.split_whitespace().next());
        if let Some(rate) = rate.and_then(number) {
            self.output.add(subject, Quantity::Rate, rate, at);
            if subject == "transactions" {
                let unit = RateUnit::TransactionsPerSecond;
                self.output.rate = Some(ImportedRate { value: rate, unit, line: at });
            }
        }
        true
    }

    fn time(&mut self, value: &str, at: u64) {
        if let Some((seconds, "s")) = number_with_unit(value) {
            self.output.seconds = Some(seconds);
            self.output.add("run", Quantity::Seconds, seconds, at);
        }
    }

    fn general(&mut self, name: &str, value: &str, line: &Line<'_>) -> bool {
        let at = line.number;
        let milliseconds = || number_with_unit(value).map(|(value, _)| value * 1e6);
        let quantity = match name {
            "total time" => {
                self.time(value, at);
                return true;
            }
            "total number of events" => {
                if let Some(count) = number(value) {
                    self.output.add("events", Quantity::Count, count, at);
                }
                return true;
            }
            "total time taken by event execution" => {
                if let Some((seconds, _)) = number_with_unit(value) {
                    self.output.add("events", Quantity::LatencySum, seconds * 1e9, at);
                }
                return true;
            }
            "min" => Quantity::LatencyMin,
            "avg" => Quantity::LatencyMean,
            "max" => Quantity::LatencyMax,
            "sum" => Quantity::LatencySum,
            _ => match percentile(name) {
                Some(milli) => Quantity::Percentile(milli),
                None => return false,
            },
        };
        let Some(latency) = milliseconds() else { return true };
        // 2^64 ns − 1: the minimum of no events.
        if latency > 1e18 {
            let what = "shortest latency".to_owned();
            self.output.doubts.push(Doubt::Impossible { what, at: line.quoted() });
            return true;
        }
        self.output.add("events", quantity, latency, at);
        true
    }

    fn fairness(&mut self, name: &str, value: &str, at: u64) -> bool {
        let Some((mean, deviation)) = value.split_once('/') else { return false };
        let (Some(mean), Some(deviation)) = (number(mean), number(deviation)) else { return false };
        match name {
            "events (avg/stddev)" => {
                self.output.add("events", Quantity::PerThread, mean, at);
                self.output.add("events", Quantity::PerThreadDeviation, deviation, at);
            }
            "execution time (avg/stddev)" => {
                self.output.add("time", Quantity::PerThread, mean, at);
                self.output.add("time", Quantity::PerThreadDeviation, deviation, at);
                self.complete = true;
            }
            _ => return false,
        }
        true
    }

    fn finish(mut self, lines: &[Line<'_>]) -> Output {
        self.samples();
        let output = &mut self.output;
        if output.rate.is_none() && self.file_test {
            let rates: Vec<_> = ["read", "write"]
                .into_iter()
                .filter_map(|subject| output.figure(subject, &Quantity::Rate))
                .collect();
            if let Some(largest) = rates.iter().max_by(|a, b| a.value.total_cmp(&b.value)) {
                let value = rates.iter().map(|it| it.value).sum();
                let unit = RateUnit::Iops;
                output.rate = Some(ImportedRate { value, unit, line: largest.line });
            }
        }
        if output.conditions.benchmark.is_empty() {
            let test = self.database_test.unwrap_or_default();
            output.conditions.benchmark = match (self.file_test, test.as_str()) {
                (true, _) => test_of_rates(output),
                (false, "") => "database test".to_owned(),
                (false, test) => format!("oltp {}", test.trim()),
            };
        }
        let has_mean = output.doubts.iter().any(|it| matches!(it, Doubt::MeanOfSamples { .. }));
        if !has_mean
            && output.failure.is_none()
            && output.figure("events", &Quantity::Count).is_none()
        {
            let missing = "total number of events".to_owned();
            output.doubts.push(Doubt::Incomplete { missing });
        }
        checks::sysbench(output, lines, self.old);
        if output.value("events", Quantity::LatencyMax).is_some_and(|max| max >= CAP.0 as f64) {
            output.doubts.push(Doubt::CappedLatency { at: CAP });
        }
        self.output
    }
}

/// `approx.  95 percentile`, `95th percentile`: in thousandths of a percent.
fn percentile(name: &str) -> Option<u32> {
    let words = name.strip_suffix("percentile")?.trim();
    let words = words.strip_prefix("approx.").unwrap_or(words).trim();
    let value = number(words.trim_end_matches(|c: char| c.is_ascii_alphabetic()))?;
    (0.0..=100.0).contains(&value).then(|| (value * 1000.0).round() as u32)
}

/// Its word for a test, from the sentence about it.
fn file_pattern(sentence: &str) -> Option<(&'static str, Pattern)> {
    let sequential = Order::Sequential { streams: 1 };
    Some(match sentence {
        "random read" => ("rndrd", Pattern { order: Order::Random, read_percent: 100 }),
        "random write" => ("rndwr", Pattern { order: Order::Random, read_percent: 0 }),
        // 1.5 reads a write where nothing else is said.
        "random r/w" => ("rndrw", Pattern { order: Order::Random, read_percent: 60 }),
        "sequential read" => ("seqrd", Pattern { order: sequential, read_percent: 100 }),
        "sequential write (creation)" => ("seqwr", Pattern { order: sequential, read_percent: 0 }),
        "sequential rewrite" => ("seqrewr", Pattern { order: sequential, read_percent: 0 }),
        _ => return None,
    })
}

/// What an output that was cut at its beginning says of its test: what was done, not where.
fn test_of_rates(output: &Output) -> String {
    let some = |subject| {
        [Quantity::Rate, Quantity::Count]
            .into_iter()
            .any(|quantity| output.value(subject, quantity).is_some_and(|value| value > 0.0))
    };
    match (some("read"), some("write")) {
        (true, true) => "fileio reads and writes",
        (true, false) => "fileio reads",
        (false, true) => "fileio writes",
        (false, false) => "fileio",
    }
    .to_owned()
}
