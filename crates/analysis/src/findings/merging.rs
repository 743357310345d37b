//! A cell merges requests that the baseline does not, or the other way round.

use super::Finding;
use crate::{Analysis, CellSummary, Metric, Verdict};

pub const ID: &str = "merging";

/// Merged requests as a share of all that came in; a change by more than this is worth telling.
const CHANGE: f64 = 0.05;

fn share(summary: &CellSummary) -> Option<f64> {
    let counter = |name: &str| summary.counters.get(name).copied();
    let merged = counter("device.rrqm/s")? + counter("device.wrqm/s")?;
    let issued = counter("device.r/s")? + counter("device.w/s")?;
    (merged + issued > 0.0).then(|| merged / (merged + issued))
}

pub fn find(analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut largest: Option<(f64, f64)> = None;
    for group in &analysis.groups {
        let Some(before) = share(&group.baseline) else { continue };
        for cell in &group.cells {
            let Some(after) = share(&cell.summary) else { continue };
            let verdict = cell.comparison(Metric::Throughput).map(|c| c.verdict);
            let judged = matches!(verdict, Some(Verdict::Better | Verdict::Worse));
            if !judged || (after - before).abs() < CHANGE {
                continue;
            }
            names.push(cell.summary.label.clone());
            if largest.is_none_or(|(b, a)| (a - b).abs() < (after - before).abs()) {
                largest = Some((before, after));
            }
        }
    }
    let (before, after) = largest?;
    Some(Finding {
        id: ID,
        statement: format!(
            "{} merges another share of the requests than the baseline, which changes how many reach \
             the device.",
            super::list(&names)
        ),
        evidence: format!(
            "merged requests (rrqm/s + wrqm/s): {:.0} % against the baseline's {:.0} %",
            after * 100.0,
            before * 100.0
        ),
        test: "repeat with merging off (queue/nomerges = 2) in both: a difference that stays has \
               another cause"
            .to_owned(),
        cells: names,
    })
}
