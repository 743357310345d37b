//! What a comparison comes to, in a sentence.

use crate::words;
use analysis::{Group, Metric, Verdict};
use serde::Serialize;

/// What to do, under one condition.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The condition, or nothing when there is only one.
    pub condition: String,
    /// The cell to take, by its place in the plan; the baseline's when nothing is better.
    pub cell: usize,
    /// Whether that is the baseline.
    pub keep: bool,
    /// In a sentence.
    pub text: String,
}

/// What to do in a group. A cell is worth a change when it is better in throughput and not worse in
/// latency, or better in latency and not worse in throughput; among several the first by the sure
/// end of its interval.
pub fn advise(group: &Group) -> Advice {
    let verdict = |cell: &analysis::ComparedCell, metric| {
        cell.comparison(metric).map_or(Verdict::NotSettled, |comparison| comparison.verdict)
    };
    let better_in = |wanted: Metric, other: Metric| {
        group
            .cells
            .iter()
            .filter(|cell| {
                verdict(cell, wanted) == Verdict::Better && verdict(cell, other) != Verdict::Worse
            })
            .max_by(|a, b| sure_gain(a, wanted).total_cmp(&sure_gain(b, wanted)))
    };
    let baseline = &group.baseline;
    let found = better_in(Metric::Throughput, Metric::P99)
        .map(|cell| (cell, Metric::Throughput))
        .or_else(|| better_in(Metric::P99, Metric::Throughput).map(|cell| (cell, Metric::P99)));
    let (cell, keep, text) = match found {
        Some((cell, metric)) => {
            let label = &cell.summary.phrase;
            let how = cell.comparison(metric).map(words::change).unwrap_or_default();
            let text = format!(
                "{label} is better than {}: {} {how}{}.",
                baseline.phrase,
                words::metric_name(metric),
                aside(cell, metric)
            );
            (cell.summary.cell, false, text)
        }
        None => (baseline.cell, true, keep_text(group)),
    };
    Advice { condition: group.condition.clone(), cell, keep, text }
}

/// The end of the interval that is nearer to no gain, as a gain.
fn sure_gain(cell: &analysis::ComparedCell, metric: Metric) -> f64 {
    cell.comparison(metric)
        .map_or(0.0, |c| if metric.more_is_better() { c.low } else { 1.0 / c.high })
}

fn aside(cell: &analysis::ComparedCell, told: Metric) -> String {
    let other = if told == Metric::Throughput { Metric::P99 } else { Metric::Throughput };
    match cell.comparison(other) {
        Some(c) => format!("; {} {}", words::metric_name(other), words::verdict_word(c.verdict)),
        None => String::new(),
    }
}

fn keep_text(group: &Group) -> String {
    let label = &group.baseline.phrase;
    if group.cells.is_empty() {
        return format!("There is nothing to compare {label} with.");
    }
    if group.baseline.valid == 0 {
        return format!("Nothing can be said: no trial of {label} counts.");
    }
    let verdicts = |metric| {
        let of = move |cell: &analysis::ComparedCell| {
            cell.comparison(metric).map_or(Verdict::NotSettled, |comparison| comparison.verdict)
        };
        group.cells.iter().map(of)
    };
    let all = |wanted: Verdict| verdicts(Metric::Throughput).all(|verdict| verdict == wanted);
    let traded = group.cells.iter().any(|cell| {
        cell.comparison(Metric::Throughput).is_some_and(|c| c.verdict == Verdict::Better)
    });
    let open = verdicts(Metric::Throughput).any(|verdict| verdict == Verdict::NotSettled);
    if all(Verdict::NoDifference) {
        format!("No difference: keep {label}.")
    } else if traded {
        format!(
            "Keep {label}, unless throughput is worth a longer tail to you: what is better in \
             throughput is worse in p99 latency."
        )
    } else if open {
        format!("Keep {label}: nothing is shown to be better; more rounds could settle the rest.")
    } else {
        format!("Keep {label}: nothing is better.")
    }
}
