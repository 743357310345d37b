//! What a choice costs: the cells that no other beats in throughput and latency at once.

use super::{FrontCell, changes};
use crate::{ComparedCell, Group, Metric};
use plan::LossKind;
use record::Run;
use std::collections::BTreeSet;

/// A cell's figures over its baseline's.
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
    let baseline = Figures { cell: group.baseline.cell, changes: 0, throughput: 1.0, p99: 1.0 };
    let all: Vec<Figures> = std::iter::once(baseline)
        .chain(group.cells.iter().filter_map(|cell| figures(run, cell)))
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

fn figures(run: &Run, cell: &ComparedCell) -> Option<Figures> {
    let ratio = |metric| cell.comparison(metric).map(|comparison| comparison.ratio);
    Some(Figures {
        cell: cell.summary.cell,
        changes: changes(run, cell.summary.cell).len(),
        throughput: ratio(Metric::Throughput)?,
        // Where there is no 99th percentile there is nothing to pay with.
        p99: ratio(Metric::P99).unwrap_or(1.0),
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
