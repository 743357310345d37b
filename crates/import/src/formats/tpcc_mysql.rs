//! tpcc-mysql: transactions in the manner of TPC-C, by Percona.

use super::{Format, Line, Reading};
use crate::{
    Output, Piece, PieceKind, checks,
    text::{number, whole},
};
use record::{Doubt, ImportedRate, Quantity, RateUnit};

/// The kinds, in the order of its lines.
const KINDS: [&str; 5] = ["NEW_ORDER", "PAYMENT", "ORDER_STATUS", "DELIVERY", "STOCK_LEVEL"];

pub(super) fn begins(line: &str) -> bool {
    let line = line.trim();
    line.contains("###easy### TPC-C Load Generator") || line == "<Raw Results>" || line == "<TpmC>"
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let mut output = Output::default();
    let mut section = String::new();
    let (mut used, mut last) = (0, lines[0].number);
    for line in lines {
        let text = line.text.trim();
        let is_next = used > 0 && text.contains("###easy### TPC-C Load Generator");
        let is_again = output.rate.is_some() && (text == "<Raw Results>" || text == "<TpmC>");
        if is_next || is_again {
            break;
        }
        if used > 0 && Format::ALL.iter().any(|it| *it != Format::TpccMysql && it.begins(text)) {
            break;
        }
        if text.starts_with('<') && text.ends_with('>') {
            text.clone_into(&mut section);
            last = line.number;
        } else if understood(&mut output, &section, text, line) {
            last = line.number;
        }
        used += 1;
    }
    if output.figures.is_empty() && output.samples.is_empty() {
        return Reading { lines: used.max(1), pieces: Vec::new() };
    }
    finish(&mut output, &lines[..used]);
    let kind = PieceKind::Run(Box::new(output));
    let tool = "tpcc-mysql".to_owned();
    let piece = Piece { format: Format::TpccMysql, tool, first: lines[0].number, last, kind };
    Reading { lines: used, pieces: vec![piece] }
}

fn understood(output: &mut Output, section: &str, text: &str, line: &Line<'_>) -> bool {
    let bracketed = |name: &str| {
        let rest = text.strip_prefix('[')?.split_once(']')?;
        (rest.0.trim() == name).then(|| rest.1.trim_start_matches([':', ' ']))
    };
    if let Some(value) = bracketed("warehouse") {
        output.conditions.scale = whole(value);
        return true;
    }
    if let Some(value) = bracketed("connection") {
        output.conditions.clients = whole(value);
        return true;
    }
    if let Some(value) = bracketed("measure") {
        output.seconds = number(value.split_whitespace().next().unwrap_or_default());
        if let Some(seconds) = output.seconds {
            output.add("run", Quantity::Seconds, seconds, line.number);
        }
        return true;
    }
    if section == "<Raw Results>" {
        return raw(output, text, line);
    }
    if let Some(value) = text.strip_suffix("TpmC").and_then(|it| number(it.trim())) {
        let unit = RateUnit::NewOrdersPerMinute;
        output.add("NEW_ORDER", Quantity::RatePerMinute, value, line.number);
        output.rate = Some(ImportedRate { value, unit, line: line.number });
        return true;
    }
    sample(output, text)
}

/// `[0] sc:1234  lt:56  rt:0  fl:0 avg_rt: 5.0 (5)`: in time, late, retried, failed.
fn raw(output: &mut Output, text: &str, line: &Line<'_>) -> bool {
    let Some((place, rest)) = text.strip_prefix('[').and_then(|it| it.split_once(']')) else {
        return false;
    };
    let Some(kind) = whole(place).and_then(|place| KINDS.get(place as usize)) else { return false };
    let value = |name: &str| {
        let rest = rest.split(name).nth(1)?.trim_start();
        number(rest.split_whitespace().next()?)
    };
    let in_time = value("sc:").unwrap_or(0.0);
    let late = value("lt:").unwrap_or(0.0);
    if output.figure(kind, &Quantity::Count).is_none() {
        output.add(kind, Quantity::Count, in_time + late, line.number);
    }
    let failed = value("fl:").unwrap_or(0.0);
    if failed > 0.0 {
        let at = line.quoted();
        output.doubts.push(Doubt::Errors { count: failed as u64, at });
    }
    true
}

/// `10, trx: 12920, 95%: 9.483, 99%: 18.738, max_rt: 213.169, …`, or `10, 1234(0):1.5|2.0, …` of older
/// versions: new orders in the interval.
fn sample(output: &mut Output, text: &str) -> bool {
    let Some((seconds, rest)) = text.split_once(',') else { return false };
    let Some(seconds) = number(seconds.trim()) else { return false };
    let rest = rest.trim();
    let count = match rest.strip_prefix("trx:") {
        Some(rest) => rest.split(',').next(),
        None => rest.split('(').next().filter(|_| rest.contains("):")),
    };
    let Some(count) = count.and_then(|count| number(count.trim())) else { return false };
    let before = output.samples.last().map_or(0.0, |(at, _)| *at);
    if seconds > before {
        output.samples.push((seconds, count * 60.0 / (seconds - before)));
    }
    true
}

fn finish(output: &mut Output, lines: &[Line<'_>]) {
    output.conditions.benchmark = "TPC-C".to_owned();
    checks::length(output);
    if let (Some(rate), Some(count), Some(seconds)) = (
        output.figure("NEW_ORDER", &Quantity::RatePerMinute).cloned(),
        output.figure("NEW_ORDER", &Quantity::Count).cloned(),
        output.seconds.filter(|seconds| *seconds > 0.0),
    ) {
        let computed = (count.value * 60.0 / seconds, count.line);
        checks::expect(output, lines, "TpmC", &rate, computed, 0.5);
    }
    if output.rate.is_none() {
        output.doubts.push(Doubt::Incomplete { missing: "the line with TpmC".to_owned() });
    }
    output.doubts.push(Doubt::NotTpc);
    checks::steadiness(output);
}
