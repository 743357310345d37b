//! What a comparison comes to.

use super::loss::losses;
use crate::words;
use analysis::{Choice, Decision, Group, KeepReason, LessDurable, Metric};

/// A decision in a sentence; in another, what is faster and can lose more.
pub(crate) fn decision(group: &Group, decision: &Decision) -> String {
    let choice = choice(group, decision);
    let risk = decision.less_durable.and_then(|less| risk(group, less));
    risk.map_or(choice.clone(), |risk| format!("{choice} {risk}"))
}

fn risk(group: &Group, less: LessDurable) -> Option<String> {
    let cell = group.cells.iter().find(|cell| cell.summary.cell == less.cell)?;
    let change = cell.comparison(less.metric).map(words::change).unwrap_or_default();
    let (phrase, name) = (&cell.summary.phrase, words::metric_name(less.metric));
    let lost = losses(&cell.summary.losses).join("; or ");
    Some(format!(
        "{phrase} is better ({name} {change}) and can lose {lost}. It is no recommendation: take it only \
         if you can afford that loss."
    ))
}

fn choice(group: &Group, decision: &Decision) -> String {
    let baseline = &group.baseline.phrase;
    match decision.choice {
        Choice::Take(metric) => take(group, decision, metric),
        Choice::Keep(KeepReason::NothingToCompare) => {
            format!("There is nothing to compare {baseline} with.")
        }
        Choice::Keep(KeepReason::NoBaseline) => {
            format!("Nothing can be said: no trial of {baseline} counts.")
        }
        Choice::Keep(KeepReason::NoDifference) => {
            format!("Keep {baseline}: throughput is the same.")
        }
        Choice::Keep(KeepReason::Traded) => format!(
            "Keep {baseline}, unless throughput is worth a longer tail to you: what is better in \
             throughput is worse in p99 latency."
        ),
        Choice::Keep(KeepReason::Open) => format!(
            "Keep {baseline}: nothing is shown to be better; more rounds could settle what is open."
        ),
        Choice::Keep(KeepReason::LessDurable) => {
            format!("Keep {baseline}: what is better can lose what {baseline} cannot.")
        }
        Choice::Keep(KeepReason::Unsteady) => format!(
            "Keep {baseline}: what is better is so by less than throughput changed within the trials; \
             measure longer (--warmup, --measure)."
        ),
        Choice::Keep(KeepReason::NothingBetter) => format!("Keep {baseline}: nothing is better."),
    }
}

fn take(group: &Group, decision: &Decision, metric: Metric) -> String {
    let baseline = &group.baseline.phrase;
    let Some(cell) = group.cells.iter().find(|cell| cell.summary.cell == decision.cell) else {
        return String::new();
    };
    let change = cell.comparison(metric).map(words::change).unwrap_or_default();
    let other = if metric == Metric::Throughput { Metric::P99 } else { Metric::Throughput };
    let aside = cell.comparison(other).map_or(String::new(), |comparison| {
        format!("; {} {}", words::metric_name(other), words::verdict_word(comparison.verdict))
    });
    let (label, name) = (&cell.summary.phrase, words::metric_name(metric));
    format!("{label} is better than {baseline}: {name} {change}{aside}.")
}
