//! What is said of a recommendation: the reason, what it costs, how far it carries.

use super::{caveat::caveat, finding::finding, loss::losses, not_looked_at};
use crate::words;
use analysis::{
    Analysis, Answer, CellSummary, ComparedCell, Comparison, Finding, FindingKind, Group, Keeping,
    LimitKeeping, Metric, PassedOver, PassedOverReason, Recommendation, Standing, StayReason,
    TakeReason, Verdict, findings,
};
use record::{Run, RunState, WorldKind};
use std::collections::BTreeSet;

/// What a recommendation is about.
pub(crate) struct About<'a> {
    pub run: &'a Run,
    pub analysis: &'a Analysis,
    pub recommendation: &'a Recommendation,
    /// What the clients did, in one line.
    pub workload: String,
}

impl About<'_> {
    fn group(&self) -> &Group {
        &self.analysis.groups[self.recommendation.group]
    }

    fn cell_of(&self, cell: usize) -> Option<&ComparedCell> {
        let mut all = self.analysis.groups.iter().flat_map(|group| &group.cells);
        all.find(|it| it.summary.cell == cell)
    }

    fn chosen(&self) -> Option<(&ComparedCell, Metric, TakeReason)> {
        match self.recommendation.answer {
            Answer::Take { cell, metric, why } => Some((self.cell_of(cell)?, metric, why)),
            Answer::Keep { .. } => None,
        }
    }

    /// The reason, at most three sentences: the gain, what it costs or risks, the cause.
    pub fn reason(&self) -> Vec<String> {
        match (self.chosen(), self.recommendation.answer) {
            (Some((cell, metric, why)), _) => vec![
                self.gain(cell, metric, why),
                self.other_figure(cell, metric),
                self.cause(cell.summary.cell),
            ],
            (None, Answer::Keep { why }) => {
                let mut said = vec![self.stay(why)];
                said.extend(self.detectable());
                said
            }
            (None, Answer::Take { .. }) => Vec::new(),
        }
    }

    fn gain(&self, cell: &ComparedCell, metric: Metric, why: TakeReason) -> String {
        let (this, baseline) = (&cell.summary.phrase, &self.group().baseline.phrase);
        let under = self.under(self.recommendation.group);
        let Some(comparison) = cell.comparison(metric) else { return String::new() };
        let (name, change) = (words::metric_name(metric), words::change(comparison));
        let figures = self.figures(cell, metric);
        let plural = if comparison.rounds == 1 { "" } else { "s" };
        let rounds = format!("{} round{plural}", comparison.rounds);
        match why {
            TakeReason::BetterOverAll => {
                let screening = self.analysis.screening.as_ref();
                let over_all = screening.and_then(|it| Some((it, it.leader().to_baseline?)));
                let change = over_all.map_or(change, |(it, ratio)| {
                    let change = words::change_within(ratio.ratio, ratio.low, ratio.high);
                    format!("{change} as the mean over {} conditions", it.conditions)
                });
                format!("{this} is better than {baseline}: {name} {change}.")
            }
            TakeReason::Better => format!(
                "{this} is better than {baseline}: {name} {change}{figures}{under}, from {rounds}."
            ),
            TakeReason::KeepsLimits => format!(
                "{this} keeps {}, which {baseline} is not shown to keep; {name} {change}{figures}\
                 {under}, from {rounds}.",
                self.limit_words()
            ),
        }
    }

    fn limit_words(&self) -> String {
        let all: Vec<String> =
            self.recommendation.limits.iter().map(|it| it.limit.to_string()).collect();
        all.join(" and ")
    }

    /// `, 12,000 against 10,000 a second`.
    fn figures(&self, cell: &ComparedCell, metric: Metric) -> String {
        let baseline = &self.group().baseline;
        let pair = match metric {
            Metric::Throughput => {
                cell.summary.throughput.zip(baseline.throughput).map(|(this, other)| {
                    let (this, other) = (words::count(this.mean), words::count(other.mean));
                    format!("{this} against {other} a second")
                })
            }
            Metric::P99 => cell
                .summary
                .latency
                .zip(baseline.latency)
                .map(|(this, other)| format!("{} against {}", this.p99, other.p99)),
            Metric::Fairness => cell
                .summary
                .fairness
                .zip(baseline.fairness)
                .map(|(this, other)| format!("Jain's index {this:.2} against {other:.2}")),
        };
        pair.map_or(String::new(), |pair| format!(", {pair}"))
    }

    fn under(&self, group: usize) -> String {
        match self.analysis.groups[group].condition.as_str() {
            "" => String::new(),
            condition => format!(" with {condition}"),
        }
    }

    /// What is paid in latency, or in throughput where latency was wanted.
    fn other_figure(&self, cell: &ComparedCell, metric: Metric) -> String {
        let other = if metric == Metric::P99 { Metric::Throughput } else { Metric::P99 };
        let name = words::metric_name(other);
        let Some(comparison) = cell.comparison(other) else {
            return format!(
                "Beware: {name} could not be compared, so that this run cannot tell whether it gets worse."
            );
        };
        let change = words::change(comparison);
        match comparison.verdict {
            Verdict::Better => format!("Its {name} is better, too: {change}."),
            Verdict::NoDifference => format!("Its {name} stays the same: {change}."),
            Verdict::NotSettled => format!(
                "Beware: {name} is open: {change}. It may be worse, by as much as the interval says, and \
                 this run cannot tell; more rounds can."
            ),
            Verdict::Worse => format!(
                "It is paid for: {name} is worse, {change}{}.",
                match self.recommendation.limits.is_empty() {
                    true => String::new(),
                    false => format!(", and keeps {}", self.limit_words()),
                }
            ),
        }
    }

    /// What the counters say of the difference.
    fn cause(&self, cell: usize) -> String {
        let baseline = self.group().baseline.cell;
        let explains = |it: &Finding| it.explains(self.run, cell, baseline);
        let found = findings(self.run, self.analysis).into_iter().find(explains);
        match found {
            Some(found) => {
                let text = finding(self.run, &found);
                format!("{} ({}).", text.statement.trim_end_matches('.'), text.evidence)
            }
            None => "No finding of this run explains the difference.".to_owned(),
        }
    }

    fn stay(&self, why: StayReason) -> String {
        let baseline = &self.group().baseline.phrase;
        let keep = format!("Keep what you have ({baseline})");
        match why {
            StayReason::NothingToCompare => {
                format!("{keep}: the run compares it with nothing else.")
            }
            StayReason::NoBaseline => {
                format!("{keep}: nothing can be said, because no trial of it counts.")
            }
            StayReason::LimitsMissed => {
                format!("{keep}: no setting of this run is shown to keep {}.", self.limit_words())
            }
            StayReason::NoDifference => {
                let counted = self.recommendation.conditions.iter().filter(|it| it.counted);
                let groups: Vec<&Group> =
                    counted.map(|it| &self.analysis.groups[it.group]).collect();
                let metrics = &self.recommendation.objectives;
                format!(
                    "{keep}: {} within {} with every setting.",
                    super::decision::are_the_same(&groups, metrics),
                    words::share(self.run.plan.margin)
                )
            }
            StayReason::WithinNoise => format!(
                "{keep}: what is better is so by less than this run can tell from chance; more rounds \
                 could settle it."
            ),
            StayReason::Traded => format!(
                "{keep}: what is better in one figure is worse in another, and what that is worth is \
                 yours to say."
            ),
            StayReason::Conditions => {
                format!("{keep}: what is better under one condition is worse under another.")
            }
            StayReason::BetterOverAllAlone => format!(
                "{keep}: what leads is better as the mean over all conditions, and under one of them it is worse in \
                 throughput or latency, can lose more, or was not measured."
            ),
            StayReason::LessDurable => {
                format!("{keep}: what is better can lose data that it cannot lose.")
            }
            StayReason::Unsteady => format!(
                "{keep}: what is better is so by less than it changed within the trials, so \
                 that longer trials could say the opposite. Measure again with a longer --warmup and \
                 --measure."
            ),
            StayReason::OrderEffect => format!(
                "{keep}: what is better may be so only because its trials left less to those after them. \
                 Measure again with a longer --warmup, when nothing else is busy."
            ),
            StayReason::Open => format!(
                "{keep}: nothing is shown to be better; more rounds could settle what is open."
            ),
            StayReason::NothingBetter => format!("{keep}: nothing is better."),
        }
    }

    fn detectable(&self) -> Option<String> {
        // Longer trials are wanted there, not a finer look.
        if let Answer::Keep { why: StayReason::Unsteady | StayReason::OrderEffect } =
            self.recommendation.answer
        {
            return None;
        }
        let size = self.recommendation.detectable?;
        let metric = *self.recommendation.objectives.first()?;
        Some(format!(
            "A true difference of {} in {} would have shown four times in five; a smaller one may be \
             there and be missed.",
            words::share(size),
            words::metric_name(metric)
        ))
    }

    /// What else a reader must know before acting, each a sentence.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.tied());
        notes.extend(self.recommendation.passed_over.and_then(|it| self.passed_over(it)));
        notes.extend(self.risk());
        notes.extend(self.recommendation.limits.iter().map(|it| self.limit(it)));
        notes
    }

    fn tied(&self) -> Option<String> {
        let labels: Vec<&str> = self
            .recommendation
            .tied
            .iter()
            .filter_map(|cell| Some(self.cell_of(*cell)?.summary.label.as_str()))
            .collect();
        match labels[..] {
            [] => None,
            [one] => Some(format!(
                "{one} cannot be told apart from it, and does not change less: the simpler one is taken."
            )),
            [one, ..] => Some(format!(
                "{} others ({one} and more) cannot be told apart from it, and none changes less: the \
                 simplest is taken.",
                labels.len()
            )),
        }
    }

    fn passed_over(&self, it: PassedOver) -> Option<String> {
        let cell = self.cell_of(it.cell)?;
        let phrase = &cell.summary.phrase;
        let change = cell.comparison(it.metric).map(words::change).unwrap_or_default();
        let name = words::metric_name(it.metric);
        Some(match it.why {
            PassedOverReason::LessDurable => {
                let kinds: BTreeSet<&str> =
                    cell.summary.losses.iter().map(|loss| loss.kind().name()).collect();
                let kinds: Vec<&str> = kinds.into_iter().collect();
                format!(
                    "{phrase} is better ({name} {change}) and can lose {}. It is no recommendation: \
                     only --risk {} accepts that loss.",
                    losses(&cell.summary.losses).join("; or "),
                    kinds.join(" --risk ")
                )
            }
            PassedOverReason::Worse(other) => {
                let worse = cell.comparison(other).map(words::change).unwrap_or_default();
                format!(
                    "{phrase} is better in {name} ({change}) and worse in {} ({worse}). To take it, say \
                     what you accept, such as --slo '{}'.",
                    words::metric_name(other),
                    example_limit(cell, other)
                )
            }
            PassedOverReason::WorseUnder(group) => format!(
                "{phrase} is better in {name} under some conditions ({change}) and worse{}. If only one \
                 of them matters to you, name it with --condition.",
                self.under(group)
            ),
        })
    }

    /// What the answer can lose, where it can lose anything.
    fn risk(&self) -> Option<String> {
        let summary = match self.chosen() {
            Some((cell, ..)) => &cell.summary,
            None => &self.group().baseline,
        };
        let lost = losses(&summary.losses);
        if lost.is_empty() {
            return None;
        }
        let more = summary.losses.difference(&self.group().baseline.losses).count() > 0;
        let accepted = match more {
            true => "You accepted that",
            false => "What you have can lose the same",
        };
        Some(format!("{} can lose {}. {accepted}.", summary.phrase, lost.join("; or ")))
    }

    fn limit(&self, it: &LimitKeeping) -> String {
        let word = |keeping| match keeping {
            Keeping::Kept => "kept",
            Keeping::Open => "open",
            Keeping::Missed => "missed",
        };
        let takes = self.recommendation.cell().is_some();
        match takes {
            true => format!(
                "Limit {}: {} by the recommended setting, {} by what you have.",
                it.limit,
                word(it.answer),
                word(it.baseline)
            ),
            false => format!("Limit {}: {} by what you have.", it.limit, word(it.baseline)),
        }
    }

    /// How far the conclusion carries.
    pub fn reach(&self) -> Vec<String> {
        let mut notes: Vec<String> = self
            .recommendation
            .conditions
            .iter()
            .filter_map(|standing| self.standing(standing))
            .collect();
        notes.extend(self.analysis.screening.as_ref().map(not_looked_at));
        let environment = &self.run.environment;
        notes.push(format!(
            "Measured: {} on {}, Linux {}, {}. Not tested: other loads, a fuller or older device, other \
             kernels, other times of the day.",
            self.workload,
            environment.device,
            environment.kernel,
            words::date(self.run.started_at)
        ));
        notes.extend(match environment.world {
            WorldKind::Real => None,
            WorldKind::Imported => Some(
                "Another program made these figures: what it did not print is not known.".to_owned(),
            ),
            WorldKind::Emulated => Some(
                "The device is a model, paced in real time: measure on the device itself before you set \
                 anything there."
                    .to_owned(),
            ),
            WorldKind::Simulated => Some(
                "Models computed these figures: measure on the device itself before you set anything \
                 there."
                    .to_owned(),
            ),
        });
        notes.extend(
            environment
                .caveats
                .iter()
                .map(|it| format!("Beware: {}.", caveat(it).trim_end_matches('.'))),
        );
        notes.extend(self.lost());
        if self.run.state != RunState::Done {
            notes.push(format!(
                "The run is not complete: spindle resume {} goes on.",
                self.run.name
            ));
        }
        // That nothing explains the difference is said where a cause would be.
        let kinds = self.recommendation.findings.iter();
        let causes = kinds.filter(|kind| **kind != FindingKind::Unexplained);
        let weak: Vec<&str> = causes.map(|kind| kind.id()).collect();
        if !weak.is_empty() {
            notes.push(format!(
                "Findings about these cells: {}; spindle report {} shows their evidence.",
                weak.join(", "),
                self.run.name
            ));
        }
        notes
    }

    /// Trials of the answer's cell and of what it is compared with that do not count.
    fn lost(&self) -> Option<String> {
        let lost = |summary: &CellSummary| (summary.lost.len(), summary.lost.len() + summary.valid);
        let chosen = self.chosen().map_or((0, 0), |(cell, ..)| lost(&cell.summary));
        let baseline = lost(&self.group().baseline);
        let (lost, all) = (chosen.0 + baseline.0, chosen.1 + baseline.1);
        (lost > 0).then(|| format!("{lost} of {all} trials of these cells do not count."))
    }

    /// What is worse, open or missing under a condition; nothing where the answer is better there in
    /// what is wanted and nothing else is in doubt.
    fn standing(&self, it: &Standing) -> Option<String> {
        let (_, metric, _) = self.chosen()?;
        let condition = self.analysis.groups[it.group].condition.as_str();
        if condition.is_empty() {
            return None;
        }
        let Some(cell) = it.cell.and_then(|cell| self.cell_of(cell)) else {
            return Some(format!("With {condition}: not tested."));
        };
        let figure = |metric: Metric| -> Option<(String, Verdict)> {
            let found: &Comparison = cell.comparison(metric)?;
            let name = words::metric_name(metric);
            let word = words::verdict_word(found.verdict);
            Some((format!("{name} {word} ({})", words::change(found)), found.verdict))
        };
        let mut said = Vec::new();
        match figure(metric) {
            Some((text, verdict)) if verdict != Verdict::Better => said.push(text),
            Some(_) => {}
            None => said.push(format!("{} not compared", words::metric_name(metric))),
        }
        let others = [Metric::Throughput, Metric::P99].into_iter().filter(|it| *it != metric);
        said.extend(others.filter_map(figure).filter_map(|(text, verdict)| {
            matches!(verdict, Verdict::Worse | Verdict::NotSettled).then_some(text)
        }));
        let counted = if it.counted { "" } else { " (it did not count)" };
        (!said.is_empty()).then(|| format!("With {condition}{counted}: {}.", said.join(", ")))
    }
}

/// A limit that a cell keeps.
fn example_limit(cell: &ComparedCell, metric: Metric) -> String {
    match metric {
        Metric::P99 => {
            let bound = cell.summary.latency.map_or(20.0, |it| it.p99.as_millis_f64() * 1.5);
            format!(
                "p99<{}ms",
                if bound < 10.0 { format!("{bound:.1}") } else { format!("{bound:.0}") }
            )
        }
        _ => {
            let bound = cell.summary.throughput.map_or(1000.0, |it| it.mean * 0.9);
            format!("throughput>{bound:.0}/s")
        }
    }
}
