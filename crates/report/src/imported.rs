//! Runs that other programs measured: what they printed, what contradicts it, and what cannot be said.

use crate::{Align, Table, sentences, words};
use analysis::{Analysis, CellSummary, Group, Metric};
use record::{Doubt, Imported, Quantity, Run};
use std::fmt::Write;
use units::Nanos;

/// Percentiles that tables show, in thousandths of a percent.
const SHOWN: [u32; 4] = [50_000, 95_000, 99_000, 99_900];

/// What a report is made of.
enum Part {
    Heading(String),
    Text(String),
    Table(Table),
}

/// For a terminal.
pub(crate) fn terminal(run: &Run, analysis: &Analysis, width: usize) -> String {
    let mut out = String::new();
    for part in parts(run, analysis) {
        match part {
            Part::Heading(text) => {
                let _ = writeln!(out, "\n{}\n", words::wrap(&text, width, 2));
            }
            Part::Text(text) => {
                let _ = writeln!(out, "{}", words::wrap(&text, width, 2));
            }
            Part::Table(table) => {
                out.push_str(&table.text(width));
                out.push('\n');
            }
        }
    }
    out
}

/// As Markdown.
pub(crate) fn markdown(run: &Run, analysis: &Analysis) -> String {
    let mut out = format!("# {}\n", run.name);
    for part in parts(run, analysis) {
        let _ = match part {
            Part::Heading(text) => writeln!(out, "\n## {}", text.trim_end_matches(':')),
            Part::Text(text) => writeln!(out, "\n{text}"),
            Part::Table(table) => write!(out, "\n{}", table.markdown()),
        };
    }
    out
}

fn parts(run: &Run, analysis: &Analysis) -> Vec<Part> {
    let mut parts =
        vec![Part::Text(format!("{} (imported), {}", run.name, words::date(run.started_at)))];
    let host = [&run.environment.hostname, &run.environment.kernel];
    let host: Vec<&str> = host.iter().map(|it| it.as_str()).filter(|it| !it.is_empty()).collect();
    if !host.is_empty() {
        parts.push(Part::Text(format!("On {}", host.join(", Linux "))));
    }
    for caveat in &run.environment.caveats {
        parts.push(Part::Text(format!("Beware: {}", sentences::caveat(caveat))));
    }
    for group in &analysis.groups {
        let heading = match group.condition.as_str() {
            "" => fixed(run, group),
            condition => format!("With {condition}:"),
        };
        parts.push(Part::Heading(heading));
        parts.push(Part::Table(figures(run, group)));
        for summary in all(group).filter(|summary| !summary.lost.is_empty()) {
            parts.push(Part::Text(format!(
                "{}: {} run{} failed and {} no result; {}.",
                summary.label,
                summary.lost.len(),
                if summary.lost.len() == 1 { "" } else { "s" },
                if summary.lost.len() == 1 { "is" } else { "are" },
                sentences::lost(&summary.lost[0])
            )));
        }
        parts.push(Part::Text(format!("Verdict: {}", sentences::imported_verdict(group))));
    }
    let doubts = doubts(run);
    if !doubts.is_empty() {
        parts.push(Part::Heading("In doubt:".to_owned()));
        parts.extend(doubts.into_iter().map(|text| Part::Text(format!("- {text}."))));
    }
    parts
}

/// What the programs were asked to do.
pub(crate) fn workload(run: &Run) -> String {
    let mut all: Vec<String> = Vec::new();
    for cell in &run.plan.cells {
        let benchmark = cell.level(&plan::Factor::Benchmark).map(ToString::to_string);
        all.extend(benchmark.filter(|benchmark| !all.contains(benchmark)));
    }
    all.join("; ")
}

/// How often, and how long at the most.
pub(crate) fn timing(run: &Run) -> String {
    format!("{} runs of up to {}", run.trials.len(), run.plan.timing.measure)
}

fn all(group: &Group) -> impl Iterator<Item = &CellSummary> {
    std::iter::once(&group.baseline).chain(group.cells.iter().map(|cell| &cell.summary))
}

/// What all cells were asked to do, where there is one condition alone.
fn fixed(run: &Run, group: &Group) -> String {
    let cell = &run.plan.cells[group.baseline.cell];
    let conditions: Vec<plan::Factor> = cell
        .levels
        .keys()
        .filter(|factor| factor.role() == plan::Role::Condition)
        .cloned()
        .collect();
    format!("{}:", cell.label(&conditions))
}

/// The runs of a cell.
fn of_cell(run: &Run, cell: usize) -> Vec<&Imported> {
    run.trials
        .iter()
        .filter(|trial| trial.id.cell == cell)
        .filter_map(|trial| trial.measurement()?.imported.as_ref())
        .collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let all: Vec<f64> = values.collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn figures(run: &Run, group: &Group) -> Table {
    use Align::{Left, Right};
    let cells: Vec<Vec<&Imported>> = all(group).map(|it| of_cell(run, it.cell)).collect();
    let every = || cells.iter().flatten();
    let unit = every().find_map(|it| it.rate).map_or("rate", |rate| rate.unit.heading());
    let mut percentiles: Vec<u32> = SHOWN
        .into_iter()
        .filter(|milli| every().any(|it| it.percentiles().contains(milli)))
        .collect();
    if percentiles.is_empty() {
        percentiles.extend(every().find_map(|it| it.percentiles().last().copied()));
    }
    let has_bandwidth = every().any(|it| it.bandwidth().is_some());
    let queries = |it: &Imported| it.figure("queries", &Quantity::Rate).map(|figure| figure.value);
    let has_queries = every().any(|it| queries(it).is_some());
    let names: Vec<String> =
        percentiles.iter().map(|milli| format!("p{}", f64::from(*milli) / 1000.0)).collect();
    let mut columns = vec![("", Left), (unit, Right)];
    if has_bandwidth {
        columns.push(("MiB/s", Right));
    }
    if has_queries {
        columns.push(("queries/s", Right));
    }
    columns.push(("mean", Right));
    columns.extend(names.iter().map(|name| (name.as_str(), Right)));
    columns.extend([("max", Right), ("runs", Right), ("change", Right)]);
    let mut table = Table::new(&columns);
    for (place, (summary, runs)) in all(group).zip(&cells).enumerate() {
        let mark = if place == 0 { "* " } else { "  " };
        let mut row = vec![format!("{mark}{}", summary.label)];
        let shown = |value: Option<f64>| value.map_or("-".to_owned(), exact);
        row.push(shown(mean(runs.iter().filter_map(|it| it.rate).map(|rate| rate.value))));
        if has_bandwidth {
            let bytes = mean(runs.iter().filter_map(|it| it.bandwidth()));
            row.push(shown(bytes.map(|bytes| bytes / f64::from(1 << 20))));
        }
        if has_queries {
            row.push(shown(mean(runs.iter().filter_map(|it| queries(it)))));
        }
        let latency = |quantity: Quantity| {
            let all = runs.iter().filter_map(|it| it.latency(&quantity));
            let mean = mean(all.map(|latency| latency.0 as f64));
            mean.map_or("-".to_owned(), |ns| Nanos(ns.round() as u64).to_string())
        };
        row.push(latency(Quantity::LatencyMean));
        row.extend(percentiles.iter().map(|milli| latency(Quantity::Percentile(*milli))));
        row.push(latency(Quantity::LatencyMax));
        row.push(summary.valid.to_string());
        let compared = group.cells.iter().find(|cell| cell.summary.cell == summary.cell);
        let change = compared.and_then(|cell| cell.comparison(Metric::Throughput));
        row.push(change.map_or(String::new(), |it| words::percent(it.ratio)));
        table.row(row);
    }
    table
}

/// As it was printed: two decimals, so that a reader finds it in the output.
fn exact(value: f64) -> String {
    format!("{value:.2}")
}

/// Doubts, each with the cells that it is about: what is said of a figure is said of each, what is said of a
/// program's way to print once.
pub(crate) fn doubts(run: &Run) -> Vec<String> {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    let several = run.plan.cells.len() > 1;
    let mut mention = |text: String, cell: &str| match said.iter_mut().find(|(it, _)| *it == text) {
        Some((_, cells)) if cells.iter().any(|it| it == cell) => {}
        Some((_, cells)) => cells.push(cell.to_owned()),
        None => said.push((text, vec![cell.to_owned()])),
    };
    for trial in &run.trials {
        let Some(imported) = trial.measurement().and_then(|it| it.imported.as_ref()) else {
            continue;
        };
        let label = run.plan.cells[trial.id.cell].label(&run.plan.factors);
        let mut all: Vec<&Doubt> = imported.doubts.iter().collect();
        // What is wrong comes before what limits.
        all.sort_by_key(|doubt| {
            !matches!(
                doubt,
                Doubt::Misprint { .. } | Doubt::Contradiction { .. } | Doubt::Edited { .. }
            )
        });
        for doubt in all {
            mention(sentences::doubt(doubt), &label);
        }
    }
    said.into_iter()
        .map(|(text, cells)| match several {
            true if cells.len() < run.plan.cells.len() => format!("{}: {text}", cells.join("; ")),
            true => format!("all: {text}"),
            false => text,
        })
        .collect()
}
