//! What a comparison comes to: which cell to take, or why to keep the baseline.

use crate::{ComparedCell, Group, Metric, Verdict};
use serde::Serialize;

/// What to do under one condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The cell to take, by its index in the plan; the baseline's when that is to be kept.
    pub cell: usize,
    /// Why.
    pub choice: Choice,
}

/// Why a cell is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// It is better than the baseline in this figure, and not worse in the other.
    Take(Metric),
    /// It is the baseline.
    Keep(KeepReason),
}

/// Why the baseline is to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeepReason {
    /// There is no other cell.
    NothingToCompare,
    /// No trial of the baseline counts.
    NoBaseline,
    /// No cell differs in throughput.
    NoDifference,
    /// What is better in throughput is worse in latency.
    Traded,
    /// Nothing is shown to be better, and more rounds could settle the rest.
    Open,
    /// Every cell is settled, and none is better.
    NothingBetter,
}

impl Decision {
    /// Whether the baseline is to be kept.
    pub fn keeps(&self) -> bool {
        matches!(self.choice, Choice::Keep(_))
    }
}

/// What to do in a group. A cell is worth a change when it is better in throughput and not worse in
/// latency, or better in latency and not worse in throughput; among several the one whose gain is
/// largest at the near end of its interval.
pub fn decide(group: &Group) -> Decision {
    let better_in = |wanted: Metric, other: Metric| {
        group
            .cells
            .iter()
            .filter(|cell| {
                verdict(cell, wanted) == Verdict::Better && verdict(cell, other) != Verdict::Worse
            })
            .max_by(|a, b| sure_gain(a, wanted).total_cmp(&sure_gain(b, wanted)))
            .map(|cell| (cell, wanted))
    };
    let found = better_in(Metric::Throughput, Metric::P99)
        .or_else(|| better_in(Metric::P99, Metric::Throughput));
    match found {
        Some((cell, metric)) => Decision { cell: cell.summary.cell, choice: Choice::Take(metric) },
        None => Decision { cell: group.baseline.cell, choice: Choice::Keep(keep_reason(group)) },
    }
}

fn verdict(cell: &ComparedCell, metric: Metric) -> Verdict {
    cell.comparison(metric).map_or(Verdict::NotSettled, |comparison| comparison.verdict)
}

/// The end of the interval that is nearer to no gain, as a gain.
fn sure_gain(cell: &ComparedCell, metric: Metric) -> f64 {
    cell.comparison(metric)
        .map_or(0.0, |c| if metric.more_is_better() { c.low } else { 1.0 / c.high })
}

fn keep_reason(group: &Group) -> KeepReason {
    if group.cells.is_empty() {
        return KeepReason::NothingToCompare;
    }
    if group.baseline.valid == 0 {
        return KeepReason::NoBaseline;
    }
    let has = |wanted| group.cells.iter().any(|cell| verdict(cell, Metric::Throughput) == wanted);
    let all = |wanted| group.cells.iter().all(|cell| verdict(cell, Metric::Throughput) == wanted);
    if all(Verdict::NoDifference) {
        KeepReason::NoDifference
    } else if has(Verdict::Better) {
        KeepReason::Traded
    } else if has(Verdict::NotSettled) {
        KeepReason::Open
    } else {
        KeepReason::NothingBetter
    }
}
