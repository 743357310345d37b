//! What others published, beside ours; and what difference each mechanism makes.

use crate::{Align, Table, words};
use analysis::{Analysis, CellSummary, Metric};
use plan::{Factor, Level, OPERATIONS, Published};
use record::Run;
use std::collections::BTreeMap;

/// Every cell of the analysis.
pub(crate) fn summaries(analysis: &Analysis) -> impl Iterator<Item = &CellSummary> {
    analysis.groups.iter().flat_map(|group| {
        std::iter::once(&group.baseline).chain(group.cells.iter().map(|cell| &cell.summary))
    })
}

/// A cell's figure under the name that a plan file gives it.
pub(crate) fn figure(summary: &CellSummary, name: &str) -> Option<f64> {
    match name {
        OPERATIONS => summary.throughput.as_ref().map(|throughput| throughput.mean),
        name => match counters::lookup(name) {
            // In the unit of the name that was published.
            Some((counter, scale)) => summary.counters.get(counter.id).map(|value| value / scale),
            None => summary.counters.get(name).copied(),
        },
    }
}

/// Published figures beside ours; none where the plan has none. Cells with a mechanism switched off
/// are no match for anything that was measured.
pub(crate) fn published(run: &Run, analysis: &Analysis) -> Option<Table> {
    use Align::{Left, Right};
    if run.plan.published.is_empty() {
        return None;
    }
    let mut table = Table::new(&[
        ("beside what was published", Left),
        ("figure", Left),
        ("published", Right),
        ("ours", Right),
        ("ratio", Right),
    ]);
    for published in &run.plan.published {
        let mut any = false;
        for summary in summaries(analysis) {
            let cell = &run.plan.cells[summary.cell];
            let whole = cell.level(&Factor::Without).is_none_or(|Level(word)| word == "nothing");
            if !published.is_of(cell) || !whole {
                continue;
            }
            any = true;
            let ours = figure(summary, &published.figure);
            table.row([
                cell.label(&run.plan.factors),
                published.figure.clone(),
                range(published),
                ours.map_or("no data".to_owned(), words::count),
                ours.map_or(String::new(), |ours| ratio(ours, published)),
            ]);
        }
        if !any {
            let levels: Vec<String> =
                published.cell.iter().map(|(factor, level)| format!("{factor} {level}")).collect();
            table.row([
                levels.join(", "),
                published.figure.clone(),
                range(published),
                "not run".to_owned(),
            ]);
        }
    }
    Some(table)
}

fn range(published: &Published) -> String {
    match published.low == published.high {
        true => words::count(published.low),
        false => format!("{}–{}", words::count(published.low), words::count(published.high)),
    }
}

/// Ours to what was published: to the nearer end of a range, and 1 within it.
fn ratio(ours: f64, published: &Published) -> String {
    let nearest = ours.clamp(published.low, published.high);
    format!("{:.2}", ours / nearest)
}

/// Who published them, once each.
pub(crate) fn sources(run: &Run) -> Vec<String> {
    let mut sources: Vec<String> = Vec::new();
    for published in &run.plan.published {
        if !sources.contains(&published.source) {
            sources.push(published.source.clone());
        }
    }
    sources
}

/// How each cell's throughput compares with its baseline's, with all mechanisms and without one and
/// another; none where nothing was switched off.
pub(crate) fn differences(run: &Run, analysis: &Analysis) -> Option<Table> {
    if !run.plan.factors.contains(&Factor::Without) {
        return None;
    }
    let without = |cell: usize| run.plan.cells[cell].level(&Factor::Without).cloned();
    let mut levels: Vec<Level> = Vec::new();
    // What is compared, with the other conditions → level → ratio.
    let mut rows: BTreeMap<(usize, String), BTreeMap<String, String>> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for group in &analysis.groups {
        let Some(level) = without(group.baseline.cell) else { continue };
        if !levels.contains(&level) {
            levels.push(level.clone());
        }
        for cell in &group.cells {
            let mut conditions = run.plan.conditions();
            conditions.retain(|factor| *factor != Factor::Without);
            let condition = run.plan.cells[cell.summary.cell].label(&conditions);
            let label = match conditions.is_empty() {
                true => format!("{} / {}", cell.summary.label, group.baseline.label),
                false => format!("{} / {}, {condition}", cell.summary.label, group.baseline.label),
            };
            let place = order.iter().position(|known| *known == label).unwrap_or_else(|| {
                order.push(label.clone());
                order.len() - 1
            });
            let change = cell.comparison(Metric::Throughput).map_or_else(
                || {
                    let mean = |summary: &CellSummary| {
                        summary.throughput.as_ref().map(|throughput| throughput.mean)
                    };
                    match (mean(&cell.summary), mean(&group.baseline)) {
                        (Some(ours), Some(base)) if base > 0.0 => format!("×{:.2}", ours / base),
                        _ => "-".to_owned(),
                    }
                },
                |comparison| format!("×{:.2}", comparison.ratio),
            );
            rows.entry((place, label)).or_default().insert(level.0.clone(), change);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let names: Vec<String> = levels
        .iter()
        .map(|Level(level)| match level.as_str() {
            "nothing" => "all on".to_owned(),
            level => format!("no {level}"),
        })
        .collect();
    let columns: Vec<(&str, Align)> = std::iter::once(("what makes the difference", Align::Left))
        .chain(names.iter().map(|name| (name.as_str(), Align::Right)))
        .collect();
    let mut table = Table::new(&columns);
    for ((_, label), ratios) in rows {
        let cells =
            levels.iter().map(|Level(level)| ratios.get(level).cloned().unwrap_or_default());
        table.row(std::iter::once(label).chain(cells));
    }
    Some(table)
}
