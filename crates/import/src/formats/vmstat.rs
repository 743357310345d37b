//! vmstat: `bi` and `bo` are blocks of 1 KiB a second.

use super::{Format, Line, Reading};
use crate::{DeviceReport, Piece, PieceKind, text::number};

pub(super) fn begins(line: &str) -> bool {
    is_group(line) || heading(line).is_some()
}

/// `procs -----------memory---------- ---swap-- -----io---- …`.
fn is_group(line: &str) -> bool {
    line.trim_start().starts_with("procs") && line.contains("--") && line.contains("memory")
}

fn heading(line: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let known = ["r", "b", "swpd", "bi", "bo"].iter().all(|name| words.contains(name));
    known.then_some(words)
}

pub(super) fn read(lines: &[Line<'_>]) -> Reading {
    let mut columns: Vec<&str> = Vec::new();
    let mut reports = Vec::new();
    let mut used = 0;
    for line in lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        if let Some(found) = heading(line.text) {
            columns = found;
        } else if !is_group(line.text) && !columns.is_empty() {
            // With -t a date and a time follow.
            let named = columns.iter().filter(|name| !is_time_zone(name)).count();
            let values: Option<Vec<f64>> =
                words.iter().take(named).map(|word| number(word)).collect();
            let Some(values) = values.filter(|values| values.len() == named && named > 0) else {
                match words.is_empty() {
                    true => {
                        used += 1;
                        continue;
                    }
                    false => break,
                }
            };
            reports.push(DeviceReport {
                device: String::new(),
                line: line.number,
                report: reports.len() as u64,
                since_boot: reports.is_empty(),
                columns: columns.iter().map(|name| (*name).to_owned()).zip(values).collect(),
            });
        } else if used > 0 && !is_group(line.text) {
            break;
        }
        used += 1;
    }
    let pieces = match (reports.first(), reports.last()) {
        (Some(_), Some(last)) => vec![Piece {
            format: Format::Vmstat,
            tool: "vmstat".to_owned(),
            first: lines[0].number,
            last: last.line,
            kind: PieceKind::Devices(reports),
        }],
        _ => Vec::new(),
    };
    Reading { lines: used.max(1), pieces }
}

/// The heading of the column of times: a zone's name.
fn is_time_zone(name: &str) -> bool {
    name.len() >= 3 && name.bytes().all(|byte| byte.is_ascii_uppercase())
}
