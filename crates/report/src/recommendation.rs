//! A recommendation, for a terminal and as JSON.

use crate::{Align, Table, fragment::fragment, sentences::recommendation::About, terminal, words};
use analysis::{
    Analysis, Answer, CellSummary, Group, Metric, Recommendation, SettingChange, changes,
};
use plan::{Factor, Role};
use record::Run;
use serde_json::{Value, json};
use std::fmt::Write;

/// For a terminal of `width` columns.
pub fn recommendation(
    run: &Run,
    analysis: &Analysis,
    recommendation: &Recommendation,
    width: usize,
) -> String {
    let about = about(run, analysis, recommendation);
    let mut out = String::new();
    let paragraph = |text: &str, indent: usize| {
        format!("{}\n", words::wrap_after(&" ".repeat(indent), text, width, indent + 2))
    };
    let _ = writeln!(out, "Recommendation from {}\n", run.name);
    match recommendation.cell() {
        Some(cell) => {
            out.push_str("Set:\n");
            out.push_str(&settings(&changes(run, cell)).text(width));
        }
        None => out.push_str("Keep what you have.\n"),
    }
    out.push_str("\nWhy:\n");
    for text in about.reason().iter().chain(&about.notes()) {
        out.push_str(&paragraph(text, 2));
    }
    if recommendation.front.len() > 1 {
        out.push_str("\nWhat it costs (cells that no other beats, and * what you have):\n");
        out.push_str(&front(&analysis.groups[recommendation.group], recommendation).text(width));
    }
    out.push_str("\nHow far it carries:\n");
    for text in about.reach() {
        out.push_str(&paragraph(&text, 2));
    }
    if let Some(text) = recommendation.cell().and_then(|cell| fragment(run, cell)) {
        let _ = write!(out, "\nFor the server's configuration:\n\n{text}");
    }
    if let Some(next) = next(run, recommendation) {
        let _ = write!(out, "\n{}", paragraph(&next, 0));
    }
    out
}

fn about<'a>(
    run: &'a Run,
    analysis: &'a Analysis,
    recommendation: &'a Recommendation,
) -> About<'a> {
    let workload = terminal::workload_line(&run.plan, run.environment.world);
    About { run, analysis, recommendation, workload }
}

/// As JSON: the decision with its figures, and the words.
pub fn recommendation_json(
    run: &Run,
    analysis: &Analysis,
    recommendation: &Recommendation,
) -> Value {
    let about = about(run, analysis, recommendation);
    let cell = recommendation.cell();
    let compared = |cell: usize| {
        let mut all = analysis.groups.iter().flat_map(|group| &group.cells);
        all.find(|it| it.summary.cell == cell)
    };
    json!({
        "run": run.name,
        "keep": cell.is_none(),
        "settings": cell.map(|cell| changes(run, cell)).unwrap_or_default(),
        "comparisons": cell.and_then(compared).map(|it| &it.comparisons),
        "recommendation": recommendation,
        "configuration": cell.and_then(|cell| fragment(run, cell)),
        "text": {
            "reason": about.reason(),
            "notes": about.notes(),
            "reach": about.reach(),
        },
    })
}

/// What changes, a row each.
pub(crate) fn settings(changes: &[SettingChange]) -> Table {
    let mut table = Table::new(&[("", Align::Left), ("now", Align::Left), ("then", Align::Left)]);
    for change in changes {
        let from = change.from.as_ref().map_or("-".to_owned(), ToString::to_string);
        table.row([format!("  {}", change.factor), from, change.to.to_string()]);
    }
    table
}

/// The cells of the front: the answer and the baseline are marked.
fn front(group: &Group, recommendation: &Recommendation) -> Table {
    use Align::{Left, Right};
    let mut table = Table::new(&[
        ("", Left),
        ("throughput", Right),
        ("p99", Right),
        ("against what you have", Left),
        ("changes", Right),
    ]);
    for point in &recommendation.front {
        let compared = group.cells.iter().find(|it| it.summary.cell == point.cell);
        let summary = compared.map_or(&group.baseline, |it| &it.summary);
        let mark = match (recommendation.cell() == Some(point.cell), compared) {
            (true, _) => "> ",
            (false, None) => "* ",
            (false, Some(_)) => "  ",
        };
        let ratios = compared.map_or("what you have".to_owned(), |it| {
            let of =
                |metric| it.comparison(metric).map_or("-".to_owned(), |c| words::percent(c.ratio));
            format!("{}, p99 {}", of(Metric::Throughput), of(Metric::P99))
        });
        let danger = if point.unsafe_cell { " (can lose data)" } else { "" };
        table.row([
            format!("{mark}{}{danger}", summary.label),
            throughput(summary),
            summary.latency.map_or("-".to_owned(), |latency| latency.p99.to_string()),
            ratios,
            point.changes.to_string(),
        ]);
    }
    table
}

fn throughput(summary: &CellSummary) -> String {
    summary.throughput.map_or("-".to_owned(), |it| format!("{}/s", words::count(it.mean)))
}

/// What to do now.
fn next(run: &Run, recommendation: &Recommendation) -> Option<String> {
    let Answer::Take { cell, .. } = recommendation.answer else { return None };
    let host = |change: &SettingChange| change.factor.role() == Role::HostSetting;
    let all = changes(run, cell);
    let real = run.environment.world == record::WorldKind::Real;
    if real && all.iter().any(host) {
        let name = &run.name;
        return Some(format!(
            "Next: spindle apply {name} --dry-run shows what would be set; --for 1h sets it for an hour, \
             --persist for good."
        ));
    }
    let choices: Vec<String> = all
        .iter()
        .filter(|it| !host(it) && !matches!(it.factor, Factor::Variable { .. } | Factor::Variables))
        .map(|it| it.factor.to_string())
        .collect();
    (!choices.is_empty()).then(|| {
        format!(
            "Next: {} is chosen where the database is set up; spindle does not set it.",
            choices.join(", ")
        )
    })
}
