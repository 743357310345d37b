//! What to set, for a whole run: one setting for all conditions that count, or the baseline.
//!
//! A cell is worth a change when it is better than its baseline in what is wanted and not worse in
//! what is not to be paid with, under every condition that counts. Among those that cannot be told
//! apart from the best, the one with the fewest changes is taken. A cell that can lose what the
//! baseline cannot is no candidate unless the user accepts that loss by name.

mod front;
mod weighing;

use crate::{
    Analysis, Correction, FindingKind, Keeping, Limit, Metric, Verdict,
    blocks::{Trials, log_ratios},
    compare,
    confounder::Confounder,
    findings,
};
use plan::{Factor, Level, LossKind, Role};
use record::Run;
use serde::Serialize;
use std::collections::BTreeSet;
use weighing::{Candidate, Weighing};

/// What a user wants of a recommendation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wish {
    /// What shall get better; without one, throughput, or where nothing is better in that, p99
    /// latency; where a rate is offered, p99 latency alone.
    pub objective: Option<Metric>,
    /// What has to be kept. A figure that is limited may get worse within its limit.
    pub limits: Vec<Limit>,
    /// Losses that are accepted.
    pub accepted: BTreeSet<LossKind>,
    /// The condition that counts, by its place among the groups; without one, all do.
    pub condition: Option<usize>,
}

/// What to set, and what a reader must know before doing so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recommendation {
    /// What was wanted.
    pub wish: Wish,
    /// The figures that decide, the first before the others.
    pub objectives: Vec<Metric>,
    /// What to do.
    pub answer: Answer,
    /// The group whose figures stand for the answer, by its place.
    pub group: usize,
    /// The same setting in every condition of the run.
    pub conditions: Vec<Standing>,
    /// What it costs: cells of the group that no other beats in throughput and p99 latency, with the
    /// baseline and the answer, the most throughput first.
    pub front: Vec<FrontCell>,
    /// Cells of the group that change more and cannot be told apart from the answer.
    pub tied: Vec<usize>,
    /// A cell that is better still and is none to recommend, with the reason.
    pub passed_over: Option<PassedOver>,
    /// Whether answer and baseline keep the limits.
    pub limits: Vec<LimitKeeping>,
    /// The smallest true difference that the run would have shown four times in five, in the
    /// objective, in the condition where it is largest.
    pub detectable: Option<f64>,
    /// Findings about the answer's cell or its baseline, which may explain or weaken the figures.
    pub findings: Vec<FindingKind>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Set what this cell has.
    Take {
        /// The cell, by its index in the plan, under the condition of [`Recommendation::group`].
        cell: usize,
        /// The figure that decided.
        metric: Metric,
        /// Why it.
        why: TakeReason,
    },
    /// Change nothing.
    Keep {
        /// Why.
        why: StayReason,
    },
}

/// Why a cell is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeReason {
    /// It is better than the baseline.
    Better,
    /// A screening shows it to be better as the mean over all conditions.
    BetterOverAll,
    /// It keeps the limits, and the baseline is not shown to.
    KeepsLimits,
}

/// Why nothing is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StayReason {
    /// There is no other cell.
    NothingToCompare,
    /// No trial of the baseline counts.
    NoBaseline,
    /// No cell is shown to keep the limits, the baseline neither.
    LimitsMissed,
    /// No cell differs in what was wanted, or without a wish in any figure that decides.
    NoDifference,
    /// What is better is so by less than this run can tell from chance.
    WithinNoise,
    /// What is better in one figure is worse in another.
    Traded,
    /// What is better under one condition is worse under another.
    Conditions,
    /// A screening's leader is better as the mean over all conditions, and something speaks against it under one of them.
    BetterOverAllAlone,
    /// What is better can lose what the baseline cannot.
    LessDurable,
    /// What is better may be so only because trials had not settled: longer ones could say the opposite.
    Unsteady,
    /// What is better may be so only because of what its trials left to those after them.
    OrderEffect,
    /// Nothing is shown to be better, and more rounds could settle the rest.
    Open,
    /// Every cell is settled, and none is better.
    NothingBetter,
}

/// How a setting stands under one condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// The group, by its place.
    pub group: usize,
    /// Whether it counted for the decision.
    pub counted: bool,
    /// The cell that has the setting there; `None` where it was not tested.
    pub cell: Option<usize>,
    /// The verdict in the figure that decided.
    pub wanted: Option<Verdict>,
    /// The verdicts in the others.
    pub others: Vec<(Metric, Verdict)>,
}

/// A cell beside which none is better in both throughput and p99 latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FrontCell {
    /// The cell, by its index in the plan.
    pub cell: usize,
    /// Settings that differ from the baseline's.
    pub changes: usize,
    /// Whether it can lose what the baseline cannot, and that was not accepted.
    pub unsafe_cell: bool,
}

/// A cell that is better and not the answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PassedOver {
    /// The cell, by its index in the plan.
    pub cell: usize,
    /// The figure in which it is better.
    pub metric: Metric,
    /// Why it is not taken.
    pub why: PassedOverReason,
}

/// Why a better cell is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PassedOverReason {
    /// It can lose what the baseline cannot.
    LessDurable,
    /// It is worse in this figure.
    Worse(Metric),
    /// It is worse under the condition of this group.
    WorseUnder(usize),
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitKeeping {
    /// The limit.
    pub limit: Limit,
    /// By the baseline, under the condition where it is worst.
    pub baseline: Keeping,
    /// By the answer's cell; the baseline's where that is kept.
    pub answer: Keeping,
}

/// A setting that a cell has and its baseline has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    /// What.
    pub factor: Factor,
    /// What the baseline has; `None` where it has no such setting.
    pub from: Option<Level>,
    /// What the cell has.
    pub to: Level,
}

impl Recommendation {
    /// The cell to take; `None` when the baseline is to be kept.
    pub fn cell(&self) -> Option<usize> {
        match self.answer {
            Answer::Take { cell, .. } => Some(cell),
            Answer::Keep { .. } => None,
        }
    }

    /// Whether limits were set and neither the answer nor the baseline is shown to keep them.
    pub fn misses_limits(&self) -> bool {
        self.limits.iter().any(|it| it.answer != Keeping::Kept)
    }
}

/// What a cell changes of its baseline's settings, in the order of the plan's factors.
pub fn changes(run: &Run, cell: usize) -> Vec<SettingChange> {
    let Some(this) = run.plan.cells.get(cell) else { return Vec::new() };
    let baseline = this.baseline.and_then(|place| run.plan.cells.get(place));
    let differs = |(factor, level): (&Factor, &Level)| {
        let from = baseline.and_then(|baseline| baseline.level(factor));
        let real = factor.role() != Role::Condition && *factor != Factor::Placebo;
        (real && from != Some(level)).then(|| SettingChange {
            factor: factor.clone(),
            from: from.cloned(),
            to: level.clone(),
        })
    };
    baseline.map(|_| this.levels.iter().filter_map(differs).collect()).unwrap_or_default()
}

/// What to set.
pub fn recommend(run: &Run, analysis: &Analysis, wish: &Wish) -> Recommendation {
    let weighing = Weighing::of(run, analysis, wish);
    let metrics = match wish.objective {
        Some(metric) => vec![metric],
        None => weighing.objectives().to_vec(),
    };
    let screened = weighing.screened(run, analysis).filter(|_| metrics[0] == Metric::Throughput);
    let taken = screened.map(|it| (Metric::Throughput, it, TakeReason::BetterOverAll));
    let taken = taken.or_else(|| {
        metrics.iter().find_map(|metric| {
            let (best, why) = weighing.best(*metric)?;
            Some((*metric, simplest(run, &weighing, best, *metric), why))
        })
    });
    let metric = taken.as_ref().map_or(metrics[0], |(metric, ..)| *metric);
    let confounder = match taken {
        Some((metric, candidate, TakeReason::Better | TakeReason::BetterOverAll)) => {
            weighing.confounder(run, candidate, metric)
        }
        Some(_) => None,
        // What is better by less than is shown may have its reason, too.
        None => metrics
            .iter()
            .find_map(|metric| weighing.confounder(run, weighing.best_unshown(*metric)?, *metric)),
    };
    let (answer, chosen) = match (taken, confounder) {
        (_, Some(Confounder::Unsteady)) => (Answer::Keep { why: StayReason::Unsteady }, None),
        (_, Some(Confounder::OrderEffect)) => (Answer::Keep { why: StayReason::OrderEffect }, None),
        (Some((metric, candidate, why)), None) => {
            let cell = candidate.cell(weighing.shown(candidate, metric));
            (Answer::Take { cell, metric, why }, Some(candidate))
        }
        (None, None) => (
            Answer::Keep { why: weighing.stay_reason(&metrics, analysis.screening.as_ref()) },
            None,
        ),
    };
    let group = chosen.map_or(weighing.counted[0], |it| weighing.shown(it, metric));
    let cells = match answer {
        Answer::Take { cell, .. } => vec![analysis.groups[group].baseline.cell, cell],
        Answer::Keep { .. } => vec![analysis.groups[group].baseline.cell],
    };
    let limits = wish.limits.iter().enumerate().map(|(place, limit)| LimitKeeping {
        limit: *limit,
        baseline: weighing.baseline_keeping[place],
        answer: chosen.map_or(weighing.baseline_keeping[place], |it| it.keeping[place]),
    });
    Recommendation {
        wish: wish.clone(),
        objectives: metrics,
        answer,
        group,
        conditions: weighing.standings(chosen, metric),
        front: front::front(run, &analysis.groups[group], &wish.accepted, &cells),
        tied: chosen.map_or_else(Vec::new, |it| tied(run, &weighing, it, metric, group)),
        passed_over: weighing.passed_over(chosen, metric),
        limits: limits.collect(),
        detectable: weighing.detectable(metric),
        findings: findings(run, analysis)
            .into_iter()
            .filter(|finding| finding.cells.iter().any(|cell| cells.contains(cell)))
            .map(|finding| finding.kind)
            .collect(),
    }
}

/// Of the best candidate and those that cannot be told apart from it, the one with the fewest
/// changes; of several with as few, the one with the largest gain.
fn simplest<'a>(
    run: &Run,
    weighing: &'a Weighing<'a>,
    best: &'a Candidate<'a>,
    metric: Metric,
) -> &'a Candidate<'a> {
    let simpler = |it: &&Candidate| {
        it.changes < best.changes && !is_distinguished(run, weighing, best, it, metric)
    };
    weighing
        .worth_taking(metric)
        .filter(simpler)
        .min_by(|a, b| {
            let gain = |it: &Candidate| weighing.gain(it, metric);
            a.changes.cmp(&b.changes).then(gain(b).total_cmp(&gain(a)))
        })
        .unwrap_or(best)
}

fn tied(
    run: &Run,
    weighing: &Weighing,
    chosen: &Candidate,
    metric: Metric,
    group: usize,
) -> Vec<usize> {
    weighing
        .worth_taking(metric)
        .filter(|it| {
            !std::ptr::eq(*it, chosen)
                && it.changes >= chosen.changes
                && !is_distinguished(run, weighing, chosen, it, metric)
                && !is_distinguished(run, weighing, it, chosen, metric)
        })
        .map(|it| it.cell(group))
        .collect()
}

/// Whether a cell is shown to be worse than another of its group.
pub(crate) fn is_worse(run: &Run, metric: Metric, cell: usize, than: usize) -> bool {
    // Of each pair alone: a wider interval would call more of them alike.
    let logs = log_ratios(run, metric, Trials::of(cell), Trials::of(than));
    compare(metric, &logs, Correction::ALONE, run.plan.margin)
        .is_some_and(|found| found.verdict == Verdict::Worse)
}

/// Whether `other` is shown to be worse than `best` under a condition that counts: in the figure that
/// is wanted, or in latency or throughput where no limit says how much of it may be paid.
fn is_distinguished(
    run: &Run,
    weighing: &Weighing,
    best: &Candidate,
    other: &Candidate,
    metric: Metric,
) -> bool {
    let figures = std::iter::once(metric).chain(weighing.guards(metric));
    figures.into_iter().any(|metric| {
        weighing
            .counted
            .iter()
            .any(|group| is_worse(run, metric, other.cell(*group), best.cell(*group)))
    })
}
