//! What a comparison comes to.

use super::loss::losses;
use crate::words;
use analysis::{
    Analysis, Choice, ComparedCell, Comparison, Decision, FactorLevels, Group, KeepReason,
    LessDurable, Metric, shared_decisions,
};
use plan::{Cell, Factor};
use record::{Run, WorldKind};

/// What to do: the conditions, or nothing where there is only one, and the decision.
pub(crate) struct Answer {
    conditions: String,
    decision: String,
}

impl Answer {
    /// Behind a word for it: `Verdict with 8 clients: …`.
    pub fn after(&self, word: &str) -> String {
        match self.conditions.as_str() {
            "" => format!("{word}: {}", self.decision),
            conditions => format!("{word} {conditions}: {}", self.decision),
        }
    }

    /// As a sentence of its own: `With 8 clients: …`.
    pub fn sentence(&self) -> String {
        let Some(first) = self.conditions.chars().next() else { return self.decision.clone() };
        let rest = &self.conditions[first.len_utf8()..];
        format!("{}{rest}: {}", first.to_uppercase(), self.decision)
    }
}

/// The answers of a run. Conditions under which they are alike but for their figures have one.
pub(crate) fn answers(run: &Run, analysis: &Analysis) -> Vec<Answer> {
    let groups = &analysis.groups;
    if run.environment.world == WorldKind::Imported {
        let of = |group: &Group| Answer {
            conditions: match group.condition.as_str() {
                "" => String::new(),
                condition => format!("with {condition}"),
            },
            decision: super::imported_verdict(group),
        };
        return groups.iter().map(of).collect();
    }
    let shared = shared_decisions(run, analysis);
    let answer = |it: &analysis::SharedDecision| {
        let decisions: Vec<(&Group, &Decision)> =
            it.decisions.iter().map(|(place, decision)| (&groups[*place], decision)).collect();
        let conditions = match (decisions.as_slice(), groups.len()) {
            (_, 1) => String::new(),
            ([(group, _)], _) => format!("with {}", group.condition),
            (all, 2) if all.len() == 2 => "under both conditions".to_owned(),
            (all, count) if all.len() == count => format!("under all {count} conditions"),
            _ => {
                let all: Vec<String> = it.combinations.iter().map(|it| combination(it)).collect();
                all.join("; or ")
            }
        };
        Answer { conditions, decision: decided(&decisions) }
    };
    shared.iter().map(answer).collect()
}

/// Conditions by their levels: `with 1 to 16 clients, depth 1 or 16`.
fn combination(levels: &[FactorLevels]) -> String {
    let words: Vec<String> = levels.iter().map(factor_levels).collect();
    format!("with {}", words.join(", "))
}

fn factor_levels(it: &FactorLevels) -> String {
    let label = |level: &plan::Level| {
        let levels = [(it.factor.clone(), level.clone())].into();
        Cell { levels, baseline: None }.label(std::slice::from_ref(&it.factor))
    };
    let names: Vec<String> = match it.factor {
        // Their labels are numbers between words that are always the same.
        Factor::Clients | Factor::Depth if it.levels.len() > 1 => {
            it.levels.iter().map(|level| level.0.clone()).collect()
        }
        _ => return listed(&it.levels.iter().map(label).collect::<Vec<_>>()),
    };
    let numbers = match names.as_slice() {
        [first, _, .., last] if it.unbroken => format!("{first} to {last}"),
        names => listed(names),
    };
    match it.factor {
        Factor::Depth => format!("depth {numbers}"),
        _ => format!("{numbers} clients"),
    }
}

/// `a, b or c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A decision in a sentence; in another, what is faster and can lose more.
pub(crate) fn decision(group: &Group, decision: &Decision) -> String {
    decided(&[(group, decision)])
}

/// The same of decisions that differ in figures alone.
fn decided(alike: &[(&Group, &Decision)]) -> String {
    let Some((group, decision)) = alike.first() else { return String::new() };
    let choice = match decision.choice {
        Choice::Take(metric) => take(alike, metric),
        Choice::Keep(reason) => keep(group, reason),
    };
    let risk = decision.less_durable.and_then(|less| risk(alike, less));
    risk.map_or(choice.clone(), |risk| format!("{choice} {risk}"))
}

fn cell(group: &Group, wanted: usize) -> Option<&ComparedCell> {
    group.cells.iter().find(|cell| cell.summary.cell == wanted)
}

fn risk(alike: &[(&Group, &Decision)], less: LessDurable) -> Option<String> {
    let (group, _) = alike.first()?;
    let risky = &cell(group, less.cell)?.summary;
    let comparisons: Vec<&Comparison> = alike
        .iter()
        .filter_map(|(group, decision)| {
            let less = decision.less_durable?;
            cell(group, less.cell)?.comparison(less.metric)
        })
        .collect();
    let (phrase, name) = (&risky.phrase, words::metric_name(less.metric));
    let change = words::changes(&comparisons);
    let lost = losses(&risky.losses).join("; or ");
    Some(format!(
        "{phrase} is better ({name} {change}) and can lose {lost}. It is no recommendation: take it only \
         if you can afford that loss."
    ))
}

/// `throughput and p99 latency are the same`: the figures that decide and could be compared.
pub(crate) fn are_the_same(groups: &[&Group], metrics: &[Metric]) -> String {
    let compared = |metric: &&Metric| {
        let mut cells = groups.iter().flat_map(|group| &group.cells);
        cells.any(|cell| cell.comparison(**metric).is_some())
    };
    let names: Vec<&str> =
        metrics.iter().filter(compared).map(|it| words::metric_name(*it)).collect();
    match names.as_slice() {
        [one] => format!("{one} is the same"),
        names => format!("{} are the same", names.join(" and ")),
    }
}

fn keep(group: &Group, reason: KeepReason) -> String {
    let baseline = &group.baseline.phrase;
    let offered = group.is_offered();
    match reason {
        KeepReason::NothingToCompare => {
            format!("Nothing was compared with {baseline}: name levels, such as --schedulers all.")
        }
        KeepReason::NoBaseline => {
            format!("Nothing can be said: no trial of {baseline} counts.")
        }
        KeepReason::NoDifference => {
            let at = if offered { " at the rate that is offered" } else { "" };
            format!("Keep {baseline}: {}{at}.", are_the_same(&[group], group.objectives()))
        }
        KeepReason::WithinNoise => format!(
            "Keep {baseline}: what is better is so by less than these rounds can tell from chance; more \
             rounds could settle it."
        ),
        KeepReason::Traded if offered => format!(
            "Keep {baseline}: what has a shorter tail completes less of the rate that is offered."
        ),
        KeepReason::Traded => format!(
            "Keep {baseline}, unless throughput is worth a longer tail to you: what is better in \
             throughput is worse in p99 latency."
        ),
        KeepReason::Open if !offered && group.no_difference(&[Metric::Throughput]) => format!(
            "Keep {baseline}: throughput is the same; p99 latency is open, and more rounds could settle it."
        ),
        KeepReason::Open => format!(
            "Keep {baseline}: nothing is shown to be better; more rounds could settle what is open."
        ),
        KeepReason::LessDurable => {
            format!("Keep {baseline}: what is better can lose what {baseline} cannot.")
        }
        KeepReason::Unsteady => format!(
            "Keep {baseline}: what is better is so by less than it changed within the trials; \
             measure longer (--warmup, --measure)."
        ),
        KeepReason::OrderEffect => format!(
            "Keep {baseline}: what is better may be so only because its trials left less to those after them; \
             measure with a longer --warmup, when nothing else is busy."
        ),
        KeepReason::NothingBetter => format!("Keep {baseline}: nothing is better."),
    }
}

fn take(alike: &[(&Group, &Decision)], metric: Metric) -> String {
    let Some((group, decision)) = alike.first() else { return String::new() };
    let Some(taken) = cell(group, decision.cell) else { return String::new() };
    let baseline = &group.baseline.phrase;
    let comparisons: Vec<&Comparison> = alike
        .iter()
        .filter_map(|(group, decision)| cell(group, decision.cell)?.comparison(metric))
        .collect();
    let other = if metric == Metric::Throughput { Metric::P99 } else { Metric::Throughput };
    let aside = taken.comparison(other).map_or(String::new(), |comparison| {
        format!("; {} {}", words::metric_name(other), words::verdict_word(comparison.verdict))
    });
    let (label, name) = (&taken.summary.phrase, words::metric_name(metric));
    format!("{label} is better than {baseline}: {name} {}{aside}.", words::changes(&comparisons))
}
