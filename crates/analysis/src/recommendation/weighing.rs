//! Every setting of a run, weighed over the conditions that count.

use super::{
    PassedOver, PassedOverReason, Standing, StayReason, TakeReason, Wish, changes, front::is_safe,
};
use crate::{
    Analysis, ComparedCell, Group, Keeping, Metric, Screening, Verdict,
    confounder::{Confounder, confounder},
    estimate::{mean, squares},
    summary::log_ratios,
    t_quantile,
};
use plan::{Factor, Level};
use record::Run;
use std::collections::BTreeMap;

/// A setting, with its cells.
pub struct Candidate<'a> {
    /// Its cell in each group; `None` where it was not tested.
    cells: Vec<Option<&'a ComparedCell>>,
    /// How many settings differ from the baseline's.
    pub changes: usize,
    /// Whether it can lose nothing that is not accepted, under any condition.
    safe: bool,
    /// Whether each limit is kept, under the condition that counts where that is worst.
    pub keeping: Vec<Keeping>,
}

/// All of them.
pub struct Weighing<'a> {
    groups: &'a [Group],
    wish: &'a Wish,
    /// The groups that count, by place.
    pub counted: Vec<usize>,
    candidates: Vec<Candidate<'a>>,
    /// Whether the baseline keeps each limit.
    pub baseline_keeping: Vec<Keeping>,
}

impl Candidate<'_> {
    /// Its cell in a group in which it was tested, by its index in the plan.
    pub fn cell(&self, group: usize) -> usize {
        self.cells[group].map_or(usize::MAX, |cell| cell.summary.cell)
    }

    fn verdict(&self, group: usize, metric: Metric) -> Option<Verdict> {
        Some(self.cells[group]?.comparison(metric)?.verdict)
    }

    fn keeps_limits(&self) -> bool {
        self.keeping.iter().all(|keeping| *keeping == Keeping::Kept)
    }
}

impl<'a> Weighing<'a> {
    pub fn of(run: &'a Run, analysis: &'a Analysis, wish: &'a Wish) -> Weighing<'a> {
        let groups = analysis.groups.as_slice();
        let counted = match wish.condition {
            Some(place) if place < groups.len() => vec![place],
            _ => (0..groups.len()).collect(),
        };
        let worst = |cell_of: &dyn Fn(usize) -> Option<usize>| -> Vec<Keeping> {
            let of = |limit: &crate::Limit| {
                let keeping = |group: &usize| match cell_of(*group) {
                    Some(cell) => limit.keeping(run, cell, analysis.correction),
                    None => Keeping::Open,
                };
                counted.iter().map(keeping).max().unwrap_or(Keeping::Open)
            };
            wish.limits.iter().map(of).collect()
        };
        let candidates = by_setting(run, groups)
            .into_values()
            .map(|cells| Candidate {
                changes: cells.iter().flatten().next().map_or(0, |it| count(run, it)),
                safe: counted.iter().all(|group| {
                    cells[*group].is_none_or(|it| is_safe(&groups[*group], it, &wish.accepted))
                }),
                keeping: worst(&|group| Some(cells[group]?.summary.cell)),
                cells,
            })
            // Levels that differ in name alone change nothing.
            .filter(|candidate| candidate.changes > 0)
            .collect();
        let baseline_keeping = worst(&|group| Some(groups[group].baseline.cell));
        Weighing { groups, wish, counted, candidates, baseline_keeping }
    }

    /// The figures that may not get worse for a gain in another: those that no limit bounds.
    pub fn guards(&self, metric: Metric) -> impl Iterator<Item = Metric> {
        let limited = |metric: Metric| {
            self.wish.limits.iter().any(|limit| limit.figure.metric() == Some(metric))
        };
        let guards: Vec<Metric> = [Metric::Throughput, Metric::P99]
            .into_iter()
            .filter(|guard| *guard != metric && !limited(*guard))
            .collect();
        guards.into_iter()
    }

    fn is_tested(&self, candidate: &Candidate) -> bool {
        let measured = |cell: &ComparedCell| cell.summary.valid > 0;
        self.counted.iter().all(|group| candidate.cells[*group].is_some_and(measured))
    }

    fn any(&self, candidate: &Candidate, metric: Metric, wanted: Verdict) -> bool {
        self.counted.iter().any(|group| candidate.verdict(*group, metric) == Some(wanted))
    }

    /// Whether it is better by as much as the run can tell from chance, under a condition that counts.
    fn is_shown(&self, candidate: &Candidate, metric: Metric) -> bool {
        self.counted.iter().any(|group| {
            candidate.verdict(*group, metric) == Some(Verdict::Better)
                && candidate.cells[*group]
                    .is_some_and(|cell| self.groups[*group].is_shown(cell, metric))
        })
    }

    /// The figures that decide where none is named: latency alone where a rate is offered under all conditions.
    pub fn objectives(&self) -> &'static [Metric] {
        let offered = |group: &usize| self.groups[*group].is_offered();
        let decides = self.counted.iter().find(|group| !offered(group)).or(self.counted.first());
        decides.map_or(&[Metric::Throughput], |group| self.groups[*group].objectives())
    }

    /// Whether nothing speaks against it but that it may be no better.
    fn is_harmless(&self, candidate: &Candidate, metric: Metric) -> bool {
        candidate.safe
            && self.is_tested(candidate)
            && !self.any(candidate, metric, Verdict::Worse)
            && !self.guards(metric).any(|guard| self.any(candidate, guard, Verdict::Worse))
    }

    /// What may have made the gain of a candidate, under a condition that counts.
    pub fn confounder(
        &self,
        run: &Run,
        candidate: &Candidate,
        metric: Metric,
    ) -> Option<Confounder> {
        let under = |group: &usize| {
            let baseline = self.groups[*group].baseline.cell;
            confounder(run, baseline, candidate.cells[*group]?, metric)
        };
        self.counted.iter().filter_map(under).min()
    }

    fn baseline_keeps_limits(&self) -> bool {
        self.baseline_keeping.iter().all(|keeping| *keeping == Keeping::Kept)
    }

    /// The best of those that are better by less than is shown.
    pub fn best_unshown(&self, metric: Metric) -> Option<&Candidate<'a>> {
        let better = |it: &&Candidate| {
            self.is_harmless(it, metric)
                && it.keeps_limits()
                && self.any(it, metric, Verdict::Better)
        };
        let all = self.candidates.iter().filter(better);
        all.max_by(|a, b| self.gain(a, metric).total_cmp(&self.gain(b, metric)))
    }

    /// The candidates that are worth a change.
    pub fn worth_taking(&self, metric: Metric) -> impl Iterator<Item = &Candidate<'a>> {
        let rescued = !self.baseline_keeps_limits();
        self.candidates.iter().filter(move |it| match rescued {
            // What keeps the limits where the baseline does not need not be better.
            true => it.safe && self.is_tested(it) && it.keeps_limits(),
            false => self.is_harmless(it, metric) && it.keeps_limits() && self.is_shown(it, metric),
        })
    }

    /// A screening's winner, where it is better than the baseline over all conditions and nothing speaks against
    /// it. It has too few rounds under each condition for verdicts of their own.
    pub fn screened(&self, run: &Run, analysis: &Analysis) -> Option<&Candidate<'a>> {
        let screening = analysis.screening.as_ref()?;
        let (leader, better) = (screening.leader(), screening.leader_is_better());
        let all = self.counted.len() == self.groups.len();
        let is_leader = |it: &&Candidate| {
            it.cells.iter().flatten().any(|cell| leader.cells.contains(&Some(cell.summary.cell)))
        };
        let found = self.candidates.iter().find(is_leader).filter(|_| better && all)?;
        let harmless = self.is_harmless(found, Metric::Throughput) && found.keeps_limits();
        let pays = std::iter::once(Metric::Throughput)
            .chain(self.guards(Metric::Throughput))
            .any(|metric| self.pays_somewhere(run, screening, found, metric));
        (harmless && !pays).then_some(found)
    }

    /// Whether a screening's winner is worse than the baseline under a condition, by more than the margin and more than
    /// chance. How its rounds vary is known from all conditions together: under each there are few. At 5 % for each
    /// condition: that one is missed costs more than that one is named for nothing. With a round of each, it is what the
    /// screening's interval of the mean over all of them stands for.
    fn pays_somewhere(
        &self,
        run: &Run,
        screening: &Screening,
        candidate: &Candidate,
        metric: Metric,
    ) -> bool {
        let of_group = |group: &usize| {
            let cell = candidate.cells[*group]?.summary.cell;
            let logs = log_ratios(run, metric, cell, self.groups[*group].baseline.cell);
            (!logs.is_empty()).then_some(logs)
        };
        let all: Vec<Vec<f64>> = self.counted.iter().filter_map(of_group).collect();
        let freedom: usize = all.iter().map(|logs| logs.len() - 1).sum();
        let of_a_round = match freedom {
            0 if metric != Metric::Throughput => return false,
            0 => screening.leader().to_baseline.map_or(f64::INFINITY, |mean| {
                (mean.high / mean.ratio).ln() * (screening.conditions as f64).sqrt()
            }),
            _ => {
                let squares: f64 = all.iter().map(|logs| squares(logs)).sum();
                t_quantile(0.95, freedom as f64) * (squares / freedom as f64).sqrt()
            }
        };
        let better = if metric.more_is_better() { 1.0 } else { -1.0 };
        all.iter().any(|logs| {
            let loss = -better * mean(logs);
            loss > run.plan.margin.ln_1p() && loss > of_a_round / (logs.len() as f64).sqrt()
        })
    }

    /// The candidate with the largest gain, and why it.
    pub fn best(&self, metric: Metric) -> Option<(&Candidate<'a>, TakeReason)> {
        let why = match self.baseline_keeps_limits() {
            true => TakeReason::Better,
            false => TakeReason::KeepsLimits,
        };
        self.worth_taking(metric)
            .max_by(|a, b| self.gain(a, metric).total_cmp(&self.gain(b, metric)))
            .map(|candidate| (candidate, why))
    }

    /// The mean over the conditions that count of the logarithm of the gain at the near end of its
    /// interval. What is not known there counts as no gain.
    pub fn gain(&self, candidate: &Candidate, metric: Metric) -> f64 {
        let of = |group: &usize| {
            let comparison = candidate.cells[*group].and_then(|cell| cell.comparison(metric));
            let near = comparison.map_or(0.0, |it| match metric.more_is_better() {
                true => it.low.ln(),
                false => -it.high.ln(),
            });
            near.clamp(-1.0, 10.0)
        };
        self.counted.iter().map(of).sum::<f64>() / self.counted.len().max(1) as f64
    }

    /// The condition that counts in which a candidate gains most: its figures are shown.
    pub fn shown(&self, candidate: &Candidate, metric: Metric) -> usize {
        let gain = |group: &usize| {
            let comparison = candidate.cells[*group].and_then(|cell| cell.comparison(metric));
            comparison.map_or(f64::NEG_INFINITY, |it| match metric.more_is_better() {
                true => it.low,
                false => 1.0 / it.high,
            })
        };
        let most = self.counted.iter().max_by(|a, b| gain(a).total_cmp(&gain(b)));
        most.copied().unwrap_or_default()
    }

    /// How a candidate stands under each condition.
    pub fn standings(&self, chosen: Option<&Candidate>, metric: Metric) -> Vec<Standing> {
        let of = |group: usize| Standing {
            group,
            counted: self.counted.contains(&group),
            cell: chosen.and_then(|it| Some(it.cells[group]?.summary.cell)),
            wanted: chosen.and_then(|it| it.verdict(group, metric)),
            others: Metric::ALL
                .into_iter()
                .filter(|other| *other != metric)
                .filter_map(|other| Some((other, chosen?.verdict(group, other)?)))
                .collect(),
        };
        (0..self.groups.len()).map(of).collect()
    }

    /// A cell that is better than the answer would be, and why it is not the answer.
    pub fn passed_over(&self, chosen: Option<&Candidate>, metric: Metric) -> Option<PassedOver> {
        let least = chosen.map_or(0.0, |it| self.gain(it, metric));
        let best_group = |it: &Candidate| {
            let better = |group: &&usize| it.verdict(**group, metric) == Some(Verdict::Better);
            self.counted.iter().find(better).copied()
        };
        let found = self
            .candidates
            .iter()
            .filter(|it| {
                self.is_tested(it)
                    && best_group(it).is_some()
                    && self.most(it, metric) > least
                    && self.against(it, metric).is_some()
            })
            .max_by(|a, b| self.most(a, metric).total_cmp(&self.most(b, metric)))?;
        let cell = found.cell(best_group(found)?);
        Some(PassedOver { cell, metric, why: self.against(found, metric)? })
    }

    /// The largest gain under any condition, at the near end of its interval.
    fn most(&self, candidate: &Candidate, metric: Metric) -> f64 {
        let of = |group: &usize| {
            let it = candidate.cells[*group]?.comparison(metric)?;
            Some(if metric.more_is_better() { it.low.ln() } else { -it.high.ln() })
        };
        self.counted.iter().filter_map(of).fold(f64::NEG_INFINITY, f64::max)
    }

    fn against(&self, candidate: &Candidate, metric: Metric) -> Option<PassedOverReason> {
        if !candidate.safe {
            return Some(PassedOverReason::LessDurable);
        }
        let worse = self.guards(metric).find(|it| self.any(candidate, *it, Verdict::Worse));
        if let Some(guard) = worse {
            return Some(PassedOverReason::Worse(guard));
        }
        let is_worse = |group: &&usize| candidate.verdict(**group, metric) == Some(Verdict::Worse);
        let group = self.counted.iter().find(is_worse)?;
        Some(PassedOverReason::WorseUnder(*group))
    }

    /// The smallest difference that the run would have shown, where that is largest.
    pub fn detectable(&self, metric: Metric) -> Option<f64> {
        let of = |group: &usize| {
            let noise = &self.groups[*group].noise;
            noise.iter().find(|(of, _)| *of == metric).map(|(_, floor)| floor.detectable)
        };
        self.counted.iter().filter_map(of).reduce(f64::max)
    }

    /// Why nothing is to be changed, where these figures decide, the first before the others.
    pub fn stay_reason(&self, metrics: &[Metric], screening: Option<&Screening>) -> StayReason {
        let metric = metrics[0];
        let counted = || self.counted.iter().map(|group| &self.groups[*group]);
        if self.candidates.is_empty() {
            return StayReason::NothingToCompare;
        }
        if counted().all(|group| group.baseline.valid == 0) {
            return StayReason::NoBaseline;
        }
        if !self.baseline_keeps_limits() {
            return StayReason::LimitsMissed;
        }
        if let Some(passed) = self.passed_over(None, metric) {
            return match passed.why {
                PassedOverReason::LessDurable => StayReason::LessDurable,
                PassedOverReason::Worse(_) => StayReason::Traded,
                PassedOverReason::WorseUnder(_) => StayReason::Conditions,
            };
        }
        let not_shown = |metric: &Metric| {
            let of = |it: &Candidate| {
                self.is_harmless(it, *metric)
                    && self.any(it, *metric, Verdict::Better)
                    && !self.is_shown(it, *metric)
            };
            self.candidates.iter().any(of)
        };
        let verdicts = || {
            let groups =
                self.counted.iter().flat_map(|group| metrics.iter().map(move |it| (group, it)));
            groups.flat_map(|(group, metric)| {
                self.candidates.iter().map(move |it| it.verdict(*group, *metric))
            })
        };
        if counted().all(|group| group.no_difference(metrics)) {
            StayReason::NoDifference
        } else if metrics.iter().any(not_shown) {
            StayReason::WithinNoise
        } else if metric == Metric::Throughput
            && self.counted.len() == self.groups.len()
            && screening.is_some_and(Screening::leader_is_better)
        {
            StayReason::BetterOverAllAlone
        } else if verdicts().any(|it| matches!(it, None | Some(Verdict::NotSettled))) {
            StayReason::Open
        } else {
            StayReason::NothingBetter
        }
    }
}

/// The settings of a run, each with its cell in every group.
fn by_setting<'a>(
    run: &Run,
    groups: &'a [Group],
) -> BTreeMap<Vec<(Factor, Level)>, Vec<Option<&'a ComparedCell>>> {
    let compared = run.plan.compared();
    let mut settings = BTreeMap::new();
    for (place, group) in groups.iter().enumerate() {
        for cell in &group.cells {
            let levels = &run.plan.cells[cell.summary.cell].levels;
            let key: Vec<(Factor, Level)> = levels
                .iter()
                .filter(|(factor, _)| compared.contains(factor))
                .map(|(factor, level)| (factor.clone(), level.clone()))
                .collect();
            let cells = settings.entry(key).or_insert_with(|| vec![None; groups.len()]);
            cells[place] = Some(cell);
        }
    }
    settings
}

/// Settings that a cell changes; of variables that are set together, each.
fn count(run: &Run, cell: &ComparedCell) -> usize {
    let each = |change: &super::SettingChange| match change.factor {
        Factor::Variables => {
            let set = change.to.0.parse::<workload::VariableSet>();
            set.map_or(1, |set| set.variables.len().max(1))
        }
        _ => 1,
    };
    changes(run, cell.summary.cell).iter().map(each).sum()
}
