//! What few rounds cannot show: that neighbours are alike.

use crate::words;
use analysis::{Group, MIN_TO_SEE_ALIKE, WIDER_IF_ALIKE};

/// The verdicts that would be open if neighbouring rounds were alike, where there are too few rounds to see it.
pub(crate) fn if_rounds_are_alike(group: &Group) -> Option<String> {
    let open: Vec<String> = group
        .objectives()
        .iter()
        .filter_map(|metric| {
            let moves = |cell: &&analysis::ComparedCell| {
                cell.comparison(*metric).is_some_and(|it| it.verdict != it.verdict_if_alike)
            };
            let cells = group.cells.iter().filter(moves).map(|cell| cell.summary.label.as_str());
            let cells: Vec<&str> = cells.collect();
            (!cells.is_empty())
                .then(|| format!("{} of {}", words::metric_name(*metric), cells.join(", ")))
        })
        .collect();
    (!open.is_empty()).then(|| {
        format!(
            "Fewer than {MIN_TO_SEE_ALIKE} rounds hardly show whether neighbouring rounds are correlated. With a \
             correlation of 0.5, intervals would be {WIDER_IF_ALIKE} times as wide, and these verdicts open: {}.",
            open.join("; ")
        )
    })
}
