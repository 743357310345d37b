//! fio: normal output, JSON and JSON+, terse output; 2.0 to 3.42.

mod json;
mod terse;
mod text;

use super::{Line, Reading};
use crate::{Output, checks};
use record::{Doubt, ImportedRate, Quantity, RateUnit};
use workload::{Order, Pattern};

pub(super) fn begins(line: &str) -> bool {
    json::begins(line) || terse::begins(line) || text::begins(line)
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let first = lines.first().map_or("", |line| line.text);
    if json::begins(first) {
        json::read(lines)
    } else if terse::begins(first) {
        terse::read(lines)
    } else {
        text::read(lines)
    }
}

/// The pattern of fio's `rw=`.
fn pattern(word: &str, read_percent: u8) -> Option<Pattern> {
    let sequential = Order::Sequential { streams: 1 };
    Some(match word {
        "randread" => Pattern { order: Order::Random, read_percent: 100 },
        "randwrite" => Pattern { order: Order::Random, read_percent: 0 },
        "randrw" => Pattern { order: Order::Random, read_percent },
        "read" => Pattern { order: sequential, read_percent: 100 },
        "write" => Pattern { order: sequential, read_percent: 0 },
        "rw" | "readwrite" => Pattern { order: sequential, read_percent },
        _ => return None,
    })
}

/// What is done with every job once it is read: its rate, and what contradicts what. `rounding` is half of
/// the last digit of a latency, in ns.
fn finish(output: &mut Output, lines: &[Line<'_>], rounding: f64) {
    let rates: Vec<_> = ["read", "write"]
        .into_iter()
        .filter_map(|subject| output.figure(subject, &Quantity::Rate).cloned())
        .filter(|figure| figure.value > 0.0)
        .collect();
    if let Some(largest) = rates.iter().max_by(|a, b| a.value.total_cmp(&b.value)) {
        let value = rates.iter().map(|it| it.value).sum();
        output.rate = Some(ImportedRate { value, unit: RateUnit::Iops, line: largest.line });
    }
    checks::length(output);
    for subject in ["read", "write"] {
        // fio prints no more than three or four digits of a rate in its normal output.
        checks::rate_of_bytes(output, lines, subject);
        checks::bandwidth_of_bytes(output, lines, subject);
        checks::latency_sum(output, lines, subject);
    }
    checks::latencies(output, lines, rounding);
    checks::percentiles(output);
    if output.rate.is_none() && output.failure.is_none() {
        output.doubts.push(Doubt::Incomplete { missing: "a rate of reads or writes".to_owned() });
    }
}
