//! fio: normal output, JSON and JSON+, terse output; 2.0 to 3.42.

mod json;
mod terse;
mod text;
mod together;

use super::{Format, Line, Reading};
use crate::{Output, Piece, PieceKind, checks};
use record::{Doubt, ImportedRate, Quantity, RateUnit};
use together::{Job, together};
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
        // What Spindle's own patterns have no word for is named by fio's.
        _ => return None,
    })
}

/// What is done with every job once it is read: its rate, and what contradicts what. `rounding` is half of
/// the last digit of a latency, in ns.
fn finish(output: &mut Output, lines: &[Line<'_>], rounding: f64) {
    let of = |subjects: &[&str]| -> Vec<_> {
        subjects
            .iter()
            .filter_map(|subject| output.figure(subject, &Quantity::Rate).cloned())
            .filter(|figure| figure.value > 0.0)
            .collect()
    };
    // Where all directions are counted together, each may be there beside them.
    let mixed = of(&["mixed"]);
    let rates = if mixed.is_empty() { of(&["read", "write", "trim"]) } else { mixed };
    if let Some(largest) = rates.iter().max_by(|a, b| a.value.total_cmp(&b.value)) {
        let value = rates.iter().map(|it| it.value).sum();
        let has_latency = |it: &&record::ImportedFigure| {
            output.figure(&it.subject, &Quantity::LatencyMean).is_some()
        };
        if rates.len() > 1 && has_latency(&largest) {
            let (subject, percent) = (largest.subject.clone(), 100.0 * largest.value / value);
            output.doubts.push(Doubt::LatenciesOfOne { subject, percent });
        }
        output.rate = Some(ImportedRate { value, unit: RateUnit::Iops, line: largest.line });
    }
    mixed_group(output);
    checks::length(output);
    for subject in ["read", "write", "trim", "mixed"] {
        // fio prints no more than three or four digits of a rate in its normal output.
        checks::rate_of_bytes(output, lines, subject);
        checks::bandwidth_of_bytes(output, lines, subject);
        checks::latency_sum(output, lines, subject);
        checks::capped(output, subject);
    }
    checks::latencies(output, lines, rounding);
    checks::percentiles(output);
    if output.rate.is_none() && output.failure.is_none() {
        output
            .doubts
            .push(Doubt::Incomplete { missing: "a rate of reads, writes or trims".to_owned() });
    }
}

/// A group's figures are of all its jobs, and what was asked for is printed of one.
fn mixed_group(output: &mut Output) {
    let Some(asked) = output.conditions.block_size else { return };
    let sum = |quantity: Quantity| -> f64 {
        let of = |subject| output.value(subject, quantity.clone());
        of("mixed").unwrap_or_else(|| ["read", "write"].into_iter().filter_map(of).sum())
    };
    let (count, bytes) = (sum(Quantity::Count), sum(Quantity::Bytes));
    let mean = bytes / count;
    // Counts and bytes are printed with three digits or more.
    if count > 0.0 && bytes > 0.0 && (mean / asked as f64 - 1.0).abs() > 0.05 {
        output.doubts.push(Doubt::MixedGroup { mean, asked });
    }
}

/// The runs of an output: jobs that ran together are one.
fn pieces(jobs: Vec<Job>, tool: &str, lines: &[Line<'_>], rounding: f64) -> Vec<Piece> {
    together(jobs)
        .into_iter()
        .map(|Job { mut output, first, last, .. }| {
            if output.conditions.benchmark.is_empty() {
                output.conditions.benchmark = "job".to_owned();
            }
            finish(&mut output, lines, rounding);
            let kind = PieceKind::Run(Box::new(output));
            Piece { format: Format::Fio, tool: tool.to_owned(), first, last, kind }
        })
        .collect()
}
