//! What may be said of runs that other programs measured.

use crate::words;
use analysis::{Comparison, Group, Metric, Verdict};

/// Fewer repeats show nothing of how far two runs of the same differ.
const MIN_REPEATS: usize = 3;

/// What the imported outputs of one condition come to.
pub(crate) fn verdict(group: &Group) -> String {
    let compared: Vec<(&str, &Comparison)> = group
        .cells
        .iter()
        .filter_map(|cell| {
            Some((cell.summary.label.as_str(), cell.comparison(Metric::Throughput)?))
        })
        .collect();
    let baseline = &group.baseline.label;
    if compared.is_empty() {
        return match group.baseline.valid {
            0 => "Nothing can be said: the run failed or has no figures.".to_owned(),
            1 => "One run of one set-up: there is nothing to compare it with, and nothing shows how far \
                  a second run would differ."
                .to_owned(),
            runs => format!("{runs} runs of one set-up: there is nothing to compare them with."),
        };
    }
    let repeats = compared.iter().map(|(_, comparison)| comparison.rounds).min().unwrap_or(0);
    if repeats < MIN_REPEATS {
        return too_few(&compared, baseline, repeats);
    }
    let each: Vec<String> = compared
        .iter()
        .map(|(label, comparison)| {
            let verdict = match comparison.verdict {
                Verdict::NotSettled => "open".to_owned(),
                verdict => words::verdict_word(verdict).to_owned(),
            };
            format!(
                "{label} {} is {verdict} (a difference of {} would have been seen)",
                words::change(comparison),
                words::share(comparison.detectable)
            )
        })
        .collect();
    format!(
        "Against {baseline}: {}. The order of these runs is not known: what drifted with time may look \
         like an effect.",
        each.join("; ")
    )
}

fn too_few(compared: &[(&str, &Comparison)], baseline: &str, repeats: usize) -> String {
    let runs = match repeats {
        0 | 1 => "One run each".to_owned(),
        repeats => format!("{repeats} runs each"),
    };
    let changes: Vec<String> = compared
        .iter()
        .map(|(label, comparison)| format!("{label} {}", words::percent(comparison.ratio)))
        .collect();
    let smallest = compared
        .iter()
        .map(|(_, comparison)| (comparison.ratio - 1.0).abs())
        .fold(f64::INFINITY, f64::min);
    let size = match smallest * 100.0 {
        size if size < 0.95 => format!("{size:.1} %"),
        size => format!("{size:.0} %"),
    };
    format!(
        "{runs}: nothing can be said of {size}, nor of any other difference here ({} against \
         {baseline}): nothing shows how far two runs of the same set-up differ. Five runs of each, in \
         turn, would show it.",
        changes.join(", ")
    )
}
