//! fio's terse output: versions 2, 3, 4 and 5, fields between semicolons (fio(1), "TERSE OUTPUT").

use super::{Job, pieces};
use crate::{
    Output, PieceKind,
    formats::{Line, Reading},
    text::{number, whole},
};
use record::{Doubt, Quantity};
use std::collections::BTreeMap;

/// Fields before the first group: version, fio's version, job, group, error.
const HEAD: usize = 5;

pub(super) fn begins(line: &str) -> bool {
    let fields: Vec<&str> = line.trim().split(';').collect();
    matches!(fields[..], ["2", ..]) && fields.len() > 40
        || matches!(fields[..], ["3" | "4" | "5", version, ..] if version.starts_with("fio-"))
}

/// Lines that follow one another: those of one name and group are jobs of one run.
pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let used = lines.iter().take_while(|line| begins(line.text)).count().max(1);
    let mut names: Vec<String> = Vec::new();
    let mut tool = String::new();
    let mut jobs = Vec::new();
    for line in &lines[..used] {
        let (job, by) = job(line, &mut names);
        tool = by;
        jobs.push(job);
    }
    let mut pieces = pieces(jobs, &tool, &lines[..used], 1_000.0);
    for piece in &mut pieces {
        let PieceKind::Run(output) = &mut piece.kind else { continue };
        if output.doubts.iter().any(|it| matches!(it, Doubt::JobsTogether { .. })) {
            output.doubts.push(Doubt::TerseLines);
        }
    }
    Reading { lines: used, pieces }
}

/// The job of a line, and the program that printed it; `names` are those of the lines before.
fn job(line: &Line<'_>, names: &mut Vec<String>) -> (Job, String) {
    let fields: Vec<&str> = line.text.trim().split(';').collect();
    let mut output = Output::default();
    let (tool, places, first) = match fields[0] {
        // 2: version, job, group, error.
        "2" => ("fio".to_owned(), [1, 2, 3], HEAD - 1),
        _ => {
            let version = fields.get(1).map_or("", |it| it.trim_start_matches("fio-"));
            (format!("fio {version}"), [2, 3, 4], HEAD)
        }
    };
    let [name, group_id, error] = places.map(|place| fields.get(place).copied());
    output.conditions.name = name.map(str::to_owned);
    output.conditions.benchmark = "job".to_owned();
    if error.and_then(number).is_some_and(|code| code != 0.0) {
        output.failure = Some(line.quoted());
    }
    let mut at = first;
    let is_five = fields[0] == "5";
    let groups: &[&str] = match fields[0] {
        "4" | "5" => &["read", "write", "trim"],
        _ => &["read", "write"],
    };
    let mut is_complete = true;
    for subject in groups {
        match group(&mut output, subject, &fields[at.min(fields.len())..], is_five, line.number) {
            Some(taken) => at += taken,
            None => is_complete = false,
        }
    }
    if !is_complete {
        output.doubts.push(Doubt::Incomplete { missing: "fields of the terse line".to_owned() });
    }
    let name = name.unwrap_or_default().to_owned();
    let of_name = names.iter().position(|it| *it == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    });
    let group = (of_name as u64, group_id.and_then(whole).unwrap_or_default());
    let (first, last) = (line.number, line.number);
    (Job { output, group, bins: BTreeMap::new(), first, last }, tool)
}

/// One direction: KiB, KiB/s, IOPS, ms; submission, completion, 20 percentiles, total latencies in µs;
/// bandwidth. Says how many fields it took.
fn group(
    output: &mut Output,
    subject: &str,
    fields: &[&str],
    is_five: bool,
    line: u64,
) -> Option<usize> {
    // 4 amounts, 4 submission, 4 completion, 20 percentiles, 4 total, 5 bandwidth; 5 adds samples and IOPS.
    let length = if is_five { 41 + 1 + 5 } else { 41 };
    if fields.len() < 41 {
        return None;
    }
    let value = |place: usize| fields.get(place).and_then(|it| number(it));
    let amounts = [value(0)?, value(1)?, value(2)?, value(3)?];
    if amounts[0] == 0.0 {
        return Some(length);
    }
    output.add(subject, Quantity::Bytes, amounts[0] * 1024.0, line);
    output.add(subject, Quantity::Bandwidth, amounts[1] * 1024.0, line);
    output.add(subject, Quantity::Rate, amounts[2], line);
    output.add(subject, Quantity::Seconds, amounts[3] / 1e3, line);
    output.seconds = Some(output.seconds.unwrap_or(0.0).max(amounts[3] / 1e3));
    let latency = [
        Quantity::LatencyMin,
        Quantity::LatencyMax,
        Quantity::LatencyMean,
        Quantity::LatencyDeviation,
    ];
    for (name, begin) in [("slat", 4), ("", 8), ("lat", 32)] {
        let subject = format!("{subject} {name}");
        for (place, quantity) in latency.iter().enumerate() {
            if let Some(value) = value(begin + place) {
                output.add(subject.trim(), quantity.clone(), value * 1e3, line);
            }
        }
    }
    for field in &fields[12..32] {
        let Some((percent, value)) = field.split_once("%=") else { continue };
        if let (Some(percent), Some(value)) = (number(percent), number(value))
            && (0.0..=100.0).contains(&percent)
            && percent > 0.0
        {
            let milli = (percent * 1000.0).round() as u32;
            output.add(subject, Quantity::Percentile(milli), value * 1e3, line);
        }
    }
    Some(length)
}
