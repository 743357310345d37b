//! What a comparison comes to: which cell to take, or why to keep the baseline.

use crate::{
    ComparedCell, Group, Metric, Verdict,
    confounder::{Confounder, confounder},
    recommendation::{changes, is_worse},
};
use record::Run;
use serde::Serialize;

/// What to do under one condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// The cell to take, by its index in the plan; the baseline's when that is to be kept.
    pub cell: usize,
    /// Why.
    pub choice: Choice,
    /// A cell that is better still, and can lose what the baseline cannot: never the decision's own
    /// choice.
    pub less_durable: Option<LessDurable>,
}

/// A cell that is better and can lose more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LessDurable {
    /// The cell, by its index in the plan.
    pub cell: usize,
    /// The figure in which it is better.
    pub metric: Metric,
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
    /// No cell differs in a figure that decides: those of [`Group::objectives`].
    NoDifference,
    /// What is better in throughput is worse in latency, or the reverse where a rate is offered.
    Traded,
    /// What is better is so by less than this run can tell from chance.
    WithinNoise,
    /// Nothing is shown to be better, and more rounds could settle the rest.
    Open,
    /// Every cell is settled, and none is better.
    NothingBetter,
    /// What is better can lose what the baseline cannot.
    LessDurable,
    /// What is better may be so only because trials had not settled.
    Unsteady,
    /// What is better may be so only because of what its trials left to those after them.
    OrderEffect,
}

impl Decision {
    /// Whether the baseline is to be kept.
    pub fn keeps(&self) -> bool {
        matches!(self.choice, Choice::Keep(_))
    }
}

/// What to do in a group. A cell is worth a change when it is better in throughput and not worse in
/// latency, or better in latency and not worse in throughput; among several the one whose gain is
/// largest at the near end of its interval, or the one with the fewest changes of those that cannot be told apart from
/// it. Where a rate is offered throughput is given, and latency alone is wanted. A gain has to be as large as
/// what the run can tell from chance ([`Group::is_shown`]): the best of several cells is the best by chance, too. A
/// cell that can lose what the baseline cannot is none of
/// them: whether its gain is worth that is not for figures to say. Where something else may have made the
/// gain ([`Confounder`]), the baseline is kept.
pub fn decide(run: &Run, group: &Group) -> Decision {
    let durable = |cell: &ComparedCell| cell.summary.losses.is_subset(&group.baseline.losses);
    let shown = |cell: &ComparedCell, metric| group.is_shown(cell, metric);
    let found = best(group, &|cell, metric| durable(cell) && shown(cell, metric))
        .map(|(cell, metric)| (simplest(run, group, cell, metric, &durable), metric));
    let risky = best(group, &|cell, metric| !durable(cell) && shown(cell, metric));
    let risky = risky.filter(|(cell, metric)| match found {
        // What is no better than what can be had without the risk needs no word.
        Some((other, in_metric)) => {
            *metric == in_metric && sure_gain(cell, *metric) > sure_gain(other, in_metric)
        }
        None => true,
    });
    let less_durable = risky.map(|(cell, metric)| LessDurable { cell: cell.summary.cell, metric });
    let baseline = group.baseline.cell;
    // What is better by less than is shown may have its reason, too.
    let confounder = found
        .or_else(|| best(group, &|cell, _| durable(cell)))
        .and_then(|(cell, metric)| confounder(run, baseline, cell, metric));
    let reason = match (found, confounder) {
        (Some((cell, metric)), None) => {
            let cell = cell.summary.cell;
            return Decision { cell, choice: Choice::Take(metric), less_durable };
        }
        (_, Some(Confounder::Unsteady)) => KeepReason::Unsteady,
        (_, Some(Confounder::OrderEffect)) => KeepReason::OrderEffect,
        (None, None) if less_durable.is_some() => KeepReason::LessDurable,
        (None, None) => keep_reason(group, &durable),
    };
    Decision { cell: baseline, choice: Choice::Keep(reason), less_durable }
}

/// The cell among some that is worth a change, and the figure in which it is better.
fn best<'a>(
    group: &'a Group,
    among: &dyn Fn(&ComparedCell, Metric) -> bool,
) -> Option<(&'a ComparedCell, Metric)> {
    let better_in = |wanted: Metric| {
        harmless(group, wanted, &|cell| among(cell, wanted))
            .max_by(|a, b| sure_gain(a, wanted).total_cmp(&sure_gain(b, wanted)))
            .map(|cell| (cell, wanted))
    };
    group.objectives().iter().find_map(|metric| better_in(*metric))
}

/// The cells among some that are better in a figure and not worse in the other.
fn harmless<'a>(
    group: &'a Group,
    wanted: Metric,
    among: &dyn Fn(&ComparedCell) -> bool,
) -> impl Iterator<Item = &'a ComparedCell> {
    let other = if wanted == Metric::P99 { Metric::Throughput } else { Metric::P99 };
    group.cells.iter().filter(move |cell| {
        among(cell)
            && verdict(cell, wanted) == Verdict::Better
            && verdict(cell, other) != Verdict::Worse
    })
}

/// The one with the fewest changes among the best and those that cannot be told apart from it.
fn simplest<'a>(
    run: &Run,
    group: &'a Group,
    best: &'a ComparedCell,
    metric: Metric,
    among: &dyn Fn(&ComparedCell) -> bool,
) -> &'a ComparedCell {
    let count = |cell: &ComparedCell| changes(run, cell.summary.cell).len();
    let (most, best_cell) = (count(best), best.summary.cell);
    let alike = |cell: &&ComparedCell| {
        let worse = |metric| is_worse(run, metric, cell.summary.cell, best_cell);
        count(cell) < most && !worse(Metric::Throughput) && !worse(Metric::P99)
    };
    harmless(group, metric, among)
        .filter(|cell| group.is_shown(cell, metric))
        .filter(alike)
        .min_by(|a, b| {
            let gain = |cell| sure_gain(cell, metric);
            count(a).cmp(&count(b)).then(gain(b).total_cmp(&gain(a)))
        })
        .unwrap_or(best)
}

fn verdict(cell: &ComparedCell, metric: Metric) -> Verdict {
    cell.comparison(metric).map_or(Verdict::NotSettled, |comparison| comparison.verdict)
}

/// The end of the interval that is nearer to no gain, as a gain.
fn sure_gain(cell: &ComparedCell, metric: Metric) -> f64 {
    cell.comparison(metric)
        .map_or(0.0, |c| if metric.more_is_better() { c.low } else { 1.0 / c.high })
}

fn keep_reason(group: &Group, durable: &dyn Fn(&ComparedCell) -> bool) -> KeepReason {
    if group.cells.is_empty() {
        return KeepReason::NothingToCompare;
    }
    if group.baseline.valid == 0 {
        return KeepReason::NoBaseline;
    }
    let objectives = group.objectives();
    let first = objectives[0];
    let better = |durably, metric| {
        let cells = group.cells.iter().filter(|cell| durable(cell) == durably);
        cells.into_iter().any(|cell| verdict(cell, metric) == Verdict::Better)
    };
    let not_shown = |metric: &Metric| {
        let of = |cell: &ComparedCell| durable(cell) && verdict(cell, *metric) == Verdict::Better;
        group.cells.iter().any(|cell| of(cell) && !group.is_shown(cell, *metric))
    };
    let open = |cell: &ComparedCell| {
        objectives.iter().any(|metric| verdict(cell, *metric) == Verdict::NotSettled)
    };
    if group.no_difference(objectives) {
        KeepReason::NoDifference
    } else if objectives.iter().any(not_shown) {
        KeepReason::WithinNoise
    } else if better(true, first) {
        KeepReason::Traded
    } else if better(false, first) {
        KeepReason::LessDurable
    } else if group.cells.iter().any(open) {
        KeepReason::Open
    } else {
        KeepReason::NothingBetter
    }
}
