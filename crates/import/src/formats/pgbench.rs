//! pgbench of PostgreSQL 9 and later.

use super::{Format, Line, Reading};
use crate::{
    Output, Piece, PieceKind, checks,
    text::{field, number, number_with_unit, whole},
};
use record::{Doubt, EditSign, ImportedFigure, ImportedRate, Quantity, RateUnit};

/// By how much a run of -T may be longer, in seconds: 0.05 was seen on a busy machine.
const LATE_S: f64 = 0.25;

pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("transaction type:") || progress(line).is_some() || version(line).is_some()
}

/// `pgbench (15.2)`.
fn version(line: &str) -> Option<&str> {
    line.strip_prefix("pgbench (")?.split([')', ' ']).next()
}

/// `progress: 36.0 s, 615.5 tps, lat 13.039 ms stddev 11.438, 0 failed`: seconds and rate.
fn progress(line: &str) -> Option<(f64, f64)> {
    let rest = line.strip_prefix("progress:")?;
    let mut parts = rest.split(',');
    let seconds = number(parts.next()?.trim().strip_suffix('s')?)?;
    let rate = number(parts.next()?.trim().strip_suffix("tps")?)?;
    Some((seconds, rate))
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let mut reader = Reader::default();
    let mut used = 0;
    for line in lines {
        let text = line.text.trim();
        let is_next = reader.typed && begins(text);
        let is_other =
            Format::ALL.iter().any(|format| *format != Format::Pgbench && format.begins(text));
        if used > 0 && (is_next || is_other) {
            break;
        }
        if reader.line(line) {
            reader.last = line.number;
        }
        used += 1;
    }
    let first = lines[0].number;
    let pieces = match reader.output.figures.is_empty() && reader.output.samples.is_empty() {
        true => Vec::new(),
        false => {
            let last = reader.last;
            let tool = match &reader.version {
                Some(version) => format!("pgbench {version}"),
                None => "pgbench".to_owned(),
            };
            let output = reader.finish(&lines[..used]);
            let kind = PieceKind::Run(Box::new(output));
            vec![Piece { format: Format::Pgbench, tool, first, last, kind }]
        }
    };
    Reading { lines: used, pieces }
}

#[derive(Default)]
struct Reader {
    output: Output,
    version: Option<String>,
    typed: bool,
    threads: Option<u64>,
    /// Lines with digits in groups.
    grouped: bool,
    last: u64,
}

impl Reader {
    fn line(&mut self, line: &Line<'_>) -> bool {
        let text = line.text.trim();
        let at = line.number;
        if let Some(found) = version(text) {
            self.version = Some(found.to_owned());
            return true;
        }
        if let Some(sample) = progress(text) {
            self.output.samples.push(sample);
            return true;
        }
        if let Some(rest) = text.strip_prefix("tps = ") {
            return self.rate(rest, at);
        }
        // `latency average = 21.392 ms`, before 10 `latency average: 10.491 ms`.
        for (name, quantity) in
            [("average", Quantity::LatencyMean), ("stddev", Quantity::LatencyDeviation)]
        {
            if let Some(rest) = text.strip_prefix("latency ").and_then(|it| it.strip_prefix(name)) {
                let value = rest.trim_start_matches([' ', '=', ':']);
                if let Some((value, _)) = number_with_unit(value) {
                    self.output.add("transactions", quantity, value * 1e6, at);
                }
                return true;
            }
        }
        let Some((name, value)) = field(text) else {
            return text.starts_with("initial connection");
        };
        let conditions = &mut self.output.conditions;
        match name {
            "transaction type" => {
                self.typed = true;
                let kind = value.trim_matches(['<', '>']);
                let kind = kind.strip_prefix("builtin:").map_or(kind, str::trim);
                conditions.benchmark = kind.to_owned();
            }
            "scaling factor" => conditions.scale = whole(value),
            "number of clients" => conditions.clients = whole(value),
            "number of threads" => self.threads = whole(value),
            "duration" => {
                let seconds = number(value.trim_end_matches('s'));
                self.output.seconds = seconds;
                if let Some(seconds) = seconds {
                    self.output.add("run", Quantity::Seconds, seconds, at);
                }
            }
            "number of transactions actually processed" => self.count(value, line),
            "number of failed transactions" => {
                let count = value.split_whitespace().next().and_then(number).unwrap_or(0.0);
                self.output.add("errors", Quantity::Count, count, at);
                if count > 0.0 {
                    let at = line.quoted();
                    self.output.doubts.push(Doubt::Errors { count: count as u64, at });
                }
            }
            "query mode" | "maximum number of tries" | "number of transactions per client" => {}
            _ => return false,
        }
        true
    }

    /// `95324`, or of a number that was asked for `10000/10000`.
    fn count(&mut self, value: &str, line: &Line<'_>) {
        let done = value.split('/').next().unwrap_or_default().trim();
        if done.contains(',') {
            self.grouped = true;
            let (sign, at) = (EditSign::GroupedDigits, line.quoted());
            self.output.doubts.push(Doubt::Edited { sign, at });
        }
        if let Some(count) = whole(&done.replace(',', "")) {
            self.output.add("transactions", Quantity::Count, count as f64, line.number);
        }
    }

    /// Up to 13 there are two, with and without the time to connect; later the one without.
    fn rate(&mut self, rest: &str, at: u64) -> bool {
        let Some(value) = rest.split_whitespace().next().and_then(number) else { return false };
        let subject = match rest.contains("including") {
            true => "transactions and connections",
            false => "transactions",
        };
        self.output.add(subject, Quantity::Rate, value, at);
        if subject == "transactions" || self.output.rate.is_none() {
            let unit = RateUnit::TransactionsPerSecond;
            self.output.rate = Some(ImportedRate { value, unit, line: at });
        }
        true
    }

    fn finish(mut self, lines: &[Line<'_>]) -> Output {
        let output = &mut self.output;
        if output.conditions.benchmark.is_empty() {
            output.conditions.benchmark = "transactions".to_owned();
        }
        checks::length(output);
        // The time to connect is part of the duration, and not of this rate: up to a few percent.
        let what = ("transactions", "transactions a second");
        checks::rate_of_count(output, lines, what, LATE_S);
        clients_and_latency(output, lines, self.threads);
        if let (Some(scale), Some(clients)) = (output.conditions.scale, output.conditions.clients)
            && scale < clients
            && output.conditions.benchmark.starts_with("TPC-B")
        {
            output.doubts.push(Doubt::SmallScale { scale, clients });
        }
        if output.figure("transactions", &Quantity::LatencyMean).is_some() {
            output.doubts.push(Doubt::NoPercentiles);
        }
        output.rate_of_samples(lines[0].number, 0);
        if output.rate.is_none() {
            let missing = "the rate of transactions".to_owned();
            output.doubts.push(Doubt::Incomplete { missing });
        }
        checks::steadiness(output);
        self.output
    }
}

/// Little's law, where no transaction failed (the mean is of those that did not): clients are busy for the mean latency a transaction, so that the mean is at most clients
/// over rate, and near it.
fn clients_and_latency(output: &mut Output, lines: &[Line<'_>], threads: Option<u64>) {
    let (Some(mean), Some(rate), Some(clients)) = (
        output.figure("transactions", &Quantity::LatencyMean).cloned(),
        output.rate,
        output.conditions.clients,
    ) else {
        return;
    };
    let failed = output.value("errors", Quantity::Count).is_some_and(|count| count > 0.0);
    if rate.value <= 0.0 || failed {
        return;
    }
    let computed = clients as f64 / rate.value * 1e3;
    let stated = ImportedFigure { value: mean.value / 1e6, ..mean.clone() };
    checks::expect(output, lines, "mean latency (ms)", &stated, (computed, rate.line), 0.0005);
    // Many clients a thread wait for their thread, and a deviation of a quarter of the mean is not seen then.
    let deviation = output.value("transactions", Quantity::LatencyDeviation);
    let crowded = threads.is_some_and(|threads| threads > 0 && clients >= 20 * threads);
    let rounded = clients as f64 / rate.value.trunc() * 1e3;
    let is_exact = (stated.value - rounded).abs() < 0.000_51;
    if crowded
        && is_exact
        && rate.value.fract() > 0.0
        && deviation.is_some_and(|deviation| deviation < mean.value * 0.3)
    {
        let at = super::quoted(lines, mean.line);
        output.doubts.push(Doubt::Edited { sign: EditSign::TooExact, at });
    }
}
