//! As CSV: a row for each cell, for a spreadsheet. The raw figures of each trial are in the run file.

use analysis::{Analysis, CellSummary, ComparedCell, Group, Metric, SessionAnalysis};
use record::Run;
use std::collections::BTreeSet;

/// A header and a row for each cell. Latencies in nanoseconds; changes as ratios; one column for each
/// factor and each counter.
///
/// Of a run with several sessions the first columns are the session's number and its level.
pub fn csv(run: &Run, analysis: &Analysis) -> String {
    let Some(together) = SessionAnalysis::of(run) else {
        return rows(&[(Vec::new(), run, analysis)], &[]);
    };
    let sessions = run.sessions();
    let analyses: Vec<Analysis> = sessions.iter().map(Analysis::of).collect();
    let all: Vec<(Vec<String>, &Run, &Analysis)> = sessions
        .iter()
        .zip(&analyses)
        .enumerate()
        .map(|(place, (session, analysis))| {
            let level = &together.levels[together.sessions[place].level].name;
            (vec![(place + 1).to_string(), level.clone()], session, analysis)
        })
        .collect();
    rows(&all, &["session".to_owned(), together.factor.to_string()])
}

/// The rows of sessions, with what each begins with, under `first` columns and those of a session.
fn rows(sessions: &[(Vec<String>, &Run, &Analysis)], first: &[String]) -> String {
    let Some((_, run, _)) = sessions.first() else { return String::new() };
    let counters: BTreeSet<&String> = sessions
        .iter()
        .flat_map(|(_, _, analysis)| &analysis.groups)
        .flat_map(|group| {
            std::iter::once(&group.baseline).chain(group.cells.iter().map(|c| &c.summary))
        })
        .flat_map(|summary| summary.counters.keys())
        .collect();
    let mut header: Vec<String> = first.to_vec();
    header.extend(["cell".into(), "baseline".into()]);
    header.extend(run.plan.factors.iter().map(ToString::to_string));
    let fixed = [
        "trials",
        "lost",
        "iops",
        "iops_std_err",
        "bytes_per_second",
        "p50_ns",
        "p99_ns",
        "p999_ns",
        "max_ns",
        "fairness",
        "generator_ns_per_operation",
        "queries_per_second",
        "retries_per_second",
        "errors_per_second",
        "background_iops",
        "background_bytes_per_second",
    ];
    // What is counted is in the column's name: no transaction is an I/O operation.
    let counted = |name: &str| match run.plan.is_of_databases() {
        true => name.replace("iops", "transactions_per_second"),
        false => name.to_owned(),
    };
    header.extend(fixed.map(|name| match name.starts_with("iops") {
        true => counted(name),
        false => name.to_owned(),
    }));
    for metric in ["throughput", "p99", "fairness"] {
        header.extend(["ratio", "low", "high", "verdict"].map(|what| format!("{metric}_{what}")));
    }
    header.extend(counters.iter().map(|name| (*name).clone()));
    let mut out = line(&header);
    for (begin, run, analysis) in sessions {
        for group in &analysis.groups {
            let row = |summary: &CellSummary, cell: Option<&ComparedCell>| {
                line(&[begin.clone(), row(run, group, summary, cell, &counters)].concat())
            };
            out += &row(&group.baseline, None);
            for cell in &group.cells {
                out += &row(&cell.summary, Some(cell));
            }
        }
    }
    out
}

fn row(
    run: &Run,
    group: &Group,
    summary: &CellSummary,
    compared: Option<&ComparedCell>,
    counters: &BTreeSet<&String>,
) -> Vec<String> {
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let mut cells = vec![
        summary.cell.to_string(),
        compared.map(|_| group.baseline.cell.to_string()).unwrap_or_default(),
    ];
    for factor in &run.plan.factors {
        let level = run.plan.cells[summary.cell].level(factor);
        cells.push(level.map(ToString::to_string).unwrap_or_default());
    }
    cells.extend([summary.valid.to_string(), summary.lost.len().to_string()]);
    cells.push(number(summary.throughput.map(|t| t.mean)));
    cells.push(number(summary.throughput.map(|t| t.std_err).filter(|e| e.is_finite())));
    cells.push(summary.bytes_per_second.to_string());
    let latency = summary.latency.as_ref();
    for value in [
        latency.map(|l| l.p50),
        latency.map(|l| l.p99),
        latency.map(|l| l.p999),
        latency.map(|l| l.max),
    ] {
        cells.push(value.map(|nanos| nanos.0.to_string()).unwrap_or_default());
    }
    cells.push(number(summary.fairness));
    cells.push(number(summary.generator_ns_per_operation));
    let transactions = summary.transactions.as_ref();
    cells.push(number(transactions.map(|t| t.queries_per_second)));
    cells.push(number(transactions.map(|t| t.retries_per_second.values().sum())));
    cells.push(number(transactions.map(|t| t.errors_per_second.values().sum())));
    cells.push(number(summary.background.map(|b| b.operations_per_second)));
    cells.push(number(summary.background.map(|b| b.bytes_per_second)));
    for metric in Metric::ALL {
        match compared.and_then(|cell| cell.comparison(metric)) {
            Some(c) => {
                cells.extend([c.ratio, c.low, c.high].map(|value| {
                    if value.is_finite() { value.to_string() } else { String::new() }
                }));
                cells.push(crate::verdict_word(c.verdict).to_owned());
            }
            None => cells.extend(std::iter::repeat_n(String::new(), 4)),
        }
    }
    for name in counters {
        cells.push(number(summary.counters.get(*name).copied()));
    }
    cells
}

/// One line; quoted as RFC 4180 says.
fn line(cells: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    // Memory takes every record.
    let _ = writer.write_record(cells);
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
