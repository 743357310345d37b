//! Runs of many hosts as one: for a terminal, as Markdown, as JSON and as a page.

use crate::{
    Align, Table,
    html::{STYLE, escaped},
    sentences, words,
};
use analysis::{FleetAnalysis, FleetCell, FleetGroup, Metric, PooledFigure};
use serde_json::{Value, json};
use std::fmt::Write;

/// What is told of a group, in order: a heading, tables, sentences.
struct GroupText {
    title: String,
    likeness: Vec<String>,
    pooled: Table,
    hosts: Vec<(String, Table)>,
    sentences: Vec<String>,
}

/// For a terminal of `width` columns.
pub fn fleet(analysis: &FleetAnalysis, width: usize) -> String {
    let mut out = format!("{}\n", words::wrap(&heading(analysis), width, 2));
    for (at, group) in analysis.groups.iter().enumerate() {
        let text = text(group, at);
        let _ = writeln!(out, "\n{}", text.title);
        for line in &text.likeness {
            let _ = writeln!(out, "{}", words::wrap_after("  ", line, width, 4));
        }
        if !group.cells.is_empty() {
            let _ = write!(out, "\n{}", text.pooled.text(width));
        }
        for (label, table) in &text.hosts {
            let _ = write!(out, "\n{label}\n{}", table.text(width));
        }
        for sentence in &text.sentences {
            let _ = writeln!(out, "\n{}", words::wrap(sentence, width, 2));
        }
    }
    for note in superseded(analysis) {
        let _ = writeln!(out, "\n{}", words::wrap(&note, width, 2));
    }
    out
}

/// As Markdown.
pub fn fleet_markdown(analysis: &FleetAnalysis) -> String {
    let mut out = format!("# Fleet\n\n{}\n", heading(analysis));
    for (at, group) in analysis.groups.iter().enumerate() {
        let text = text(group, at);
        let _ = write!(out, "\n## {}\n\n", text.title);
        for line in &text.likeness {
            let _ = writeln!(out, "- {line}");
        }
        if !group.cells.is_empty() {
            let _ = write!(out, "\n{}", text.pooled.markdown());
        }
        for (label, table) in &text.hosts {
            let _ = write!(out, "\n### {label}\n\n{}", table.markdown());
        }
        for sentence in &text.sentences {
            let _ = write!(out, "\n{sentence}\n");
        }
    }
    for note in superseded(analysis) {
        let _ = write!(out, "\n{note}\n");
    }
    out
}

/// As JSON.
pub fn fleet_json(analysis: &FleetAnalysis) -> Value {
    let texts: Vec<Value> = analysis
        .groups
        .iter()
        .map(|group| {
            json!({
                "notes": sentences_of(group),
                "decision": sentences::fleet_decision(group),
            })
        })
        .collect();
    json!({ "fleet": analysis, "text": { "groups": texts, "superseded": superseded(analysis) } })
}

/// One HTML file without scripts, which opens in any browser without network.
pub fn fleet_html(analysis: &FleetAnalysis) -> String {
    let mut body = format!("<h1>Fleet</h1>\n<p>{}</p>\n", escaped(&heading(analysis)));
    for (at, group) in analysis.groups.iter().enumerate() {
        let text = text(group, at);
        let _ = writeln!(body, "<section>\n<h2>{}</h2>\n<ul>", escaped(&text.title));
        for line in &text.likeness {
            let _ = writeln!(body, "<li>{}</li>", escaped(line));
        }
        body.push_str("</ul>\n");
        for sentence in &text.sentences {
            let _ = writeln!(body, "<p>{}</p>", escaped(sentence));
        }
        if !group.cells.is_empty() {
            body.push_str(&table(&text.pooled, "All hosts together"));
        }
        for (label, rows) in &text.hosts {
            body.push_str(&table(rows, label));
        }
        body.push_str("</section>\n");
    }
    for note in superseded(analysis) {
        let _ = writeln!(body, "<p>{}</p>", escaped(&note));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n<title>Fleet</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn table(table: &Table, caption: &str) -> String {
    let mut out = format!("<table>\n<caption>{}</caption>\n", escaped(caption));
    for (at, row) in table.cells().enumerate() {
        let tag = if at == 0 { "th" } else { "td" };
        let cells: String =
            row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    out + "</table>\n"
}

fn heading(analysis: &FleetAnalysis) -> String {
    let hosts: usize = analysis.groups.iter().map(|group| group.hosts.len()).sum();
    let world = match analysis.world {
        record::WorldKind::Real => String::new(),
        other => format!(" ({other})"),
    };
    let groups = match analysis.groups.len() {
        1 => "all of one kind".to_owned(),
        many => format!("of {many} kinds, each pooled by itself"),
    };
    format!("{hosts} hosts{world}, {groups}")
}

fn superseded(analysis: &FleetAnalysis) -> Vec<String> {
    let all = analysis.superseded.iter();
    all.map(|(host, was, is)| {
        format!("Not pooled: run {was} of {host}, because {is} of the same host is later.")
    })
    .collect()
}

fn text(group: &FleetGroup, at: usize) -> GroupText {
    let shown = |text: &String| !text.is_empty() && text != "none";
    let likeness = group
        .kind
        .iter()
        .filter(|(_, value)| shown(value))
        .map(|(what, value)| format!("{}: {value}", sentences::likeness(*what)));
    let count = group.hosts.len();
    let plural = if count == 1 { "host" } else { "hosts" };
    GroupText {
        title: format!("Group {}: {count} {plural}", at + 1),
        likeness: likeness.collect(),
        pooled: pooled(group),
        hosts: group
            .cells
            .iter()
            .map(|cell| (sentences::labelled(cell), rows(group, cell)))
            .collect(),
        sentences: sentences_of(group),
    }
}

fn sentences_of(group: &FleetGroup) -> Vec<String> {
    let mut all: Vec<String> = sentences::apart(group).into_iter().collect();
    for cell in &group.cells {
        let figures = figures(cell).map(|figure| sentences::fleet_figure(group, cell, figure));
        all.extend(figures);
    }
    all.push(sentences::fleet_decision(group));
    all
}

/// The figures of a cell that are put into words: fairness is in the JSON alone.
fn figures(cell: &FleetCell) -> impl Iterator<Item = &PooledFigure> {
    [Metric::Throughput, Metric::P99].into_iter().filter_map(|metric| cell.figure(metric))
}

/// A row for each cell.
fn pooled(group: &FleetGroup) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("all hosts", Left),
        ("throughput", Right),
        ("", Left),
        ("p99 latency", Right),
        ("", Left),
    ]);
    for cell in &group.cells {
        let mut row = vec![format!("  {}", sentences::labelled(cell))];
        for metric in [Metric::Throughput, Metric::P99] {
            row.extend(match cell.figure(metric) {
                Some(it) => [
                    words::change_within(it.ratio, it.low, it.high),
                    sentences::fleet_word(it.verdict).to_owned(),
                ],
                None => ["-".to_owned(), String::new()],
            });
        }
        table.row(row);
    }
    table
}

/// A row for each host.
fn rows(group: &FleetGroup, cell: &FleetCell) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("host", Left),
        ("throughput", Right),
        ("", Left),
        ("p99 latency", Right),
        ("", Left),
    ]);
    for (at, (host, _)) in group.hosts.iter().enumerate() {
        let mut row = vec![format!("  {host}")];
        for metric in [Metric::Throughput, Metric::P99] {
            let standing = cell.figure(metric).and_then(|figure| *figure.hosts.get(at)?);
            row.extend(match standing {
                Some(it) => {
                    let word = words::verdict_word(it.verdict);
                    let outlier = if it.outlier { " OUTLIER" } else { "" };
                    let change = match it.high.is_finite() && it.low > 0.0 {
                        true => words::change_within(it.ratio, it.low, it.high),
                        false => words::percent(it.ratio),
                    };
                    [change, format!("{word}{outlier}")]
                }
                None => ["-".to_owned(), String::new()],
            });
        }
        table.row(row);
    }
    table
}
