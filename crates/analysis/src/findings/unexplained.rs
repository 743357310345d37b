//! Cells that differ from their baseline, and nothing that was counted says why.

use super::{Change, Check, Evidence, Expectation, Finding, FindingKind, Found};
use crate::{Analysis, Metric, Verdict};
use plan::{Factor, Level};
use record::Run;

/// `others` are the findings of the same run.
pub fn find(run: &Run, analysis: &Analysis, others: &[Finding]) -> Option<Found> {
    let mut cells = Vec::new();
    let mut largest: Option<(Metric, f64)> = None;
    for group in &analysis.groups {
        for cell in &group.cells {
            let judged = [Metric::Throughput, Metric::P99].into_iter().find_map(|metric| {
                let it = cell.comparison(metric)?;
                matches!(it.verdict, Verdict::Better | Verdict::Worse).then_some((metric, it.ratio))
            });
            let Some((metric, ratio)) = judged else { continue };
            // What cell and baseline have alike explains no difference between them, unless they differ in what it
            // speaks of.
            let other_queue = level(run, cell.summary.cell) != level(run, group.baseline.cell);
            let explained = others.iter().filter(|it| it.kind.is_cause()).any(|it| {
                let (here, there) = (
                    it.cells.contains(&cell.summary.cell),
                    it.cells.contains(&group.baseline.cell),
                );
                here != there || (here && it.kind == FindingKind::NoFreeRequest && other_queue)
            });
            if explained {
                continue;
            }
            cells.push(cell.summary.cell);
            if largest.is_none_or(|(_, most)| most.ln().abs() < ratio.ln().abs()) {
                largest = Some((metric, ratio));
            }
        }
    }
    let (metric, ratio) = largest?;
    Some(Found {
        cells,
        evidence: Evidence::NothingCounted { metric, ratio },
        check: Check { change: Change::AnotherSeed, expect: Expectation::Differs(metric) },
    })
}

/// How many requests a cell's queue has, where that is compared.
fn level(run: &Run, cell: usize) -> Option<&Level> {
    run.plan.cells.get(cell)?.level(&Factor::NrRequests)
}
