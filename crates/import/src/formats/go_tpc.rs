//! go-tpc (and `tiup bench`): summaries of transactions in the manner of TPC-C.

use super::{Format, Line, Reading};
use crate::{
    Output, Piece, PieceKind, checks,
    text::{number, whole},
};
use record::{Doubt, ImportedRate, Quantity, RateUnit};

pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    summary(line).is_some() || line.starts_with("[Current] ")
}

/// `[Summary] NEW_ORDER - Takes(s): 59.4, Count: 359, …`: the kind, and the rest.
fn summary(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.strip_prefix("[Summary] ")?.split_once(" - ")?;
    rest.contains("Count:").then_some((kind, rest))
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let mut output = Output::default();
    let mut kinds: Vec<String> = Vec::new();
    let mut tpmc = None;
    let (mut used, mut last) = (0, lines[0].number);
    for line in lines {
        let text = line.text.trim();
        if let Some((kind, rest)) = summary(text) {
            // The summary of the next run.
            if kinds.iter().any(|seen| seen == kind) {
                break;
            }
            kinds.push(kind.to_owned());
            of_kind(&mut output, kind, rest, line);
        } else if let Some(value) = text.strip_prefix("tpmC:") {
            let value = value.split([',', ' ']).find(|word| !word.is_empty()).and_then(number);
            tpmc = value.map(|value| (value, line.number));
        } else if let Some(rest) = text.strip_prefix("Finished: ") {
            output.conditions.clients = rest.split(' ').next().and_then(whole);
        } else if let Some(rest) = text.strip_prefix("[Current] ") {
            sample(&mut output, rest);
        } else if used > 0 && !text.is_empty() {
            break;
        }
        if !text.is_empty() {
            last = line.number;
        }
        used += 1;
    }
    if kinds.is_empty() {
        return Reading { lines: used.max(1), pieces: Vec::new() };
    }
    finish(&mut output, &lines[..used], tpmc);
    let kind = PieceKind::Run(Box::new(output));
    let tool = "go-tpc".to_owned();
    let piece = Piece { format: Format::GoTpc, tool, first: lines[0].number, last, kind };
    Reading { lines: used, pieces: vec![piece] }
}

fn sample(output: &mut Output, rest: &str) {
    let Some((kind, rest)) = rest.split_once(" - ") else { return };
    let value = |name: &str| number(rest.split(name).nth(1)?.split(',').next()?);
    if kind == "NEW_ORDER"
        && let (Some(seconds), Some(rate)) = (value("Takes(s): "), value("TPM: "))
    {
        let before = output.samples.last().map_or(0.0, |(at, _)| *at);
        output.samples.push((before + seconds, rate));
    }
}

fn of_kind(output: &mut Output, kind: &str, rest: &str, line: &Line<'_>) {
    let at = line.number;
    let mut latencies = Vec::new();
    let (mut sum, mut count) = (None, None);
    for part in rest.split(", ") {
        let Some((name, value)) = part.split_once(':') else { continue };
        let Some(value) = number(value) else { continue };
        let name: String = name.chars().filter(|c| !c.is_whitespace()).collect();
        match name.as_str() {
            "Takes(s)" => output.add(kind, Quantity::Seconds, value, at),
            "Count" => {
                count = Some(value);
                output.add(kind, Quantity::Count, value, at);
            }
            "TPM" => output.add(kind, Quantity::RatePerMinute, value, at),
            "Sum(ms)" => sum = Some(value),
            "Avg(ms)" => latencies.push((Quantity::LatencyMean, value)),
            "Max(ms)" => latencies.push((Quantity::LatencyMax, value)),
            _ => {
                let percent = name.strip_suffix("th(ms)").and_then(number);
                let percent = percent.filter(|it| (0.0..=100.0).contains(it));
                latencies.extend(percent.map(|percent| {
                    (Quantity::Percentile((percent * 1000.0).round() as u32), value)
                }));
            }
        }
    }
    let mean = latencies.iter().find(|(quantity, _)| *quantity == Quantity::LatencyMean);
    if let (Some(sum), Some(count), Some((_, mean))) = (sum, count, mean)
        && count > 0.0
        // The mean is printed with one decimal, or none.
        && (sum / count - mean).abs() > 0.02 * mean.max(sum / count) + 1.0
    {
        output.doubts.push(Doubt::Contradiction {
            what: format!("mean latency of {kind} (ms); its latencies are not taken"),
            stated: *mean,
            computed: sum / count,
            at: line.quoted(),
            against: line.quoted(),
        });
        return;
    }
    if let Some(sum) = sum {
        output.add(kind, Quantity::LatencySum, sum * 1e6, at);
    }
    for (quantity, value) in latencies {
        output.add(kind, quantity, value * 1e6, at);
    }
}

fn finish(output: &mut Output, lines: &[Line<'_>], tpmc: Option<(f64, u64)>) {
    output.conditions.benchmark = "TPC-C".to_owned();
    let new_orders = output.figure("NEW_ORDER", &Quantity::RatePerMinute).cloned();
    let unit = RateUnit::NewOrdersPerMinute;
    if let Some(figure) = &new_orders {
        output.rate = Some(ImportedRate { value: figure.value, unit, line: figure.line });
        output.seconds = output.value("NEW_ORDER", Quantity::Seconds);
    }
    match (tpmc, &new_orders) {
        (Some((value, line)), Some(figure)) => {
            output.add("tpmC", Quantity::RatePerMinute, value, line);
            let stated = record::ImportedFigure {
                subject: "tpmC".to_owned(),
                quantity: Quantity::RatePerMinute,
                value,
                line,
            };
            checks::expect(output, lines, "tpmC", &stated, (figure.value, figure.line), 0.05);
        }
        (Some((value, line)), None) => output.rate = Some(ImportedRate { value, unit, line }),
        (None, _) => output.doubts.push(Doubt::Incomplete { missing: "the line tpmC".to_owned() }),
    }
    per_minute(output, lines);
    errors(output, lines);
    checks::length(output);
    // Sums, means and percentiles have one decimal of a millisecond, or none in old versions.
    let whole = lines.iter().all(|line| !line.text.contains("Avg(ms)") || !has_decimals(line.text));
    checks::latencies(output, lines, if whole { 500_000.0 } else { 50_000.0 });
    if whole {
        output.doubts.push(Doubt::CoarsePercentiles);
    }
    checks::steadiness(output);
    output.doubts.push(Doubt::NotTpc);
}

fn has_decimals(line: &str) -> bool {
    line.split("Avg(ms):")
        .nth(1)
        .and_then(|it| it.split(',').next())
        .is_some_and(|it| it.contains('.'))
}

/// Counts against rates, and whether all kinds were counted over the same time.
fn per_minute(output: &mut Output, lines: &[Line<'_>]) {
    let kinds: Vec<String> = output
        .figures
        .iter()
        .filter(|figure| figure.quantity == Quantity::RatePerMinute)
        .map(|figure| figure.subject.clone())
        .collect();
    let mut times = Vec::new();
    for kind in kinds {
        let of = |quantity: Quantity| output.figure(&kind, &quantity).cloned();
        if let (Some(rate), Some(count), Some(seconds)) =
            (of(Quantity::RatePerMinute), of(Quantity::Count), of(Quantity::Seconds))
            && seconds.value > 0.0
        {
            let computed = (count.value * 60.0 / seconds.value, count.line);
            checks::expect(output, lines, &format!("TPM of {kind}"), &rate, computed, 0.1);
            if !kind.ends_with("_ERR") {
                times.push(seconds.value);
            }
        }
    }
    let low = times.iter().copied().fold(f64::INFINITY, f64::min);
    let high = times.iter().copied().fold(0.0, f64::max);
    if low.is_finite() && high > low * 1.02 {
        output.doubts.push(Doubt::UnequalTimes { low, high });
    }
}

fn errors(output: &mut Output, lines: &[Line<'_>]) {
    let errors: Vec<_> = output
        .figures
        .iter()
        .filter(|figure| figure.subject.ends_with("_ERR") && figure.quantity == Quantity::Count)
        .map(|figure| (figure.value, figure.line))
        .collect();
    let count: f64 = errors.iter().map(|(count, _)| count).sum();
    if let Some((_, line)) = errors.first().filter(|_| count > 0.0) {
        let at = super::quoted(lines, *line);
        output.doubts.push(Doubt::Errors { count: count as u64, at });
    }
}
