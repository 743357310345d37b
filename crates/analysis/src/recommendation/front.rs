//! What a choice costs: the cells that no other beats in throughput and latency at once.

use super::{FrontCell, changes};
use crate::{CellSummary, ComparedCell, Group};
use plan::LossKind;
use record::Run;
use std::collections::BTreeSet;

/// A cell's figures as they are shown.
#[derive(Clone, Copy)]
struct Figures {
    cell: usize,
    changes: usize,
    throughput: f64,
    p99: f64,
}

/// The front of a group, with the cells of `always` in it, the most throughput first.
pub fn front(
    run: &Run,
    group: &Group,
    accepted: &BTreeSet<LossKind>,
    always: &[usize],
) -> Vec<FrontCell> {
    let margin = run.plan.margin;
    let cells = group.cells.iter().map(|cell| &cell.summary);
    let all: Vec<Figures> = std::iter::once(&group.baseline)
        .chain(cells)
        .filter_map(|summary| figures(summary, changes(run, summary.cell).len()))
        .collect();
    let mut front: Vec<Figures> = all
        .iter()
        .filter(|it| always.contains(&it.cell) || !all.iter().any(|other| beats(other, it, margin)))
        .copied()
        .collect();
    front.sort_by(|a, b| b.throughput.total_cmp(&a.throughput).then(a.cell.cmp(&b.cell)));
    let risky = |cell: usize| {
        let found = group.cells.iter().find(|it| it.summary.cell == cell);
        found.is_some_and(|it| !is_safe(group, it, accepted))
    };
    let shown =
        |it: Figures| FrontCell { cell: it.cell, changes: it.changes, unsafe_cell: risky(it.cell) };
    front.into_iter().map(shown).collect()
}

/// Whether a cell loses nothing that its baseline cannot lose and that was not accepted.
pub fn is_safe(group: &Group, cell: &ComparedCell, accepted: &BTreeSet<LossKind>) -> bool {
    let mut more = cell.summary.losses.difference(&group.baseline.losses);
    more.all(|loss| accepted.contains(&loss.kind()))
}

fn figures(summary: &CellSummary, changes: usize) -> Option<Figures> {
    Some(Figures {
        cell: summary.cell,
        changes,
        throughput: summary.throughput?.mean,
        // Where there is no 99th percentile there is nothing to pay with.
        p99: summary.latency.map_or(1.0, |latency| latency.p99.0.max(1) as f64),
    })
}

/// Whether a cell is better than another in one figure and not worse in the other, or the same in both
/// with fewer changes. What differs by less than the margin is the same.
fn beats(one: &Figures, other: &Figures, margin: f64) -> bool {
    let width = (1.0 + margin).ln();
    let throughput = (one.throughput / other.throughput).ln();
    let latency = (other.p99 / one.p99).ln();
    let no_worse = throughput >= -width && latency >= -width;
    let better = throughput > width || latency > width;
    no_worse && (better || one.changes < other.changes)
}
