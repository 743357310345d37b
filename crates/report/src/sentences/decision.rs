//! What a comparison comes to.

use crate::words;
use analysis::{Choice, Decision, Group, KeepReason, Metric};

/// A decision in a sentence.
pub(crate) fn decision(group: &Group, decision: &Decision) -> String {
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
