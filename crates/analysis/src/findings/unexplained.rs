//! Cells that differ from their baseline, and nothing that was counted says why.

use super::{Change, Check, Evidence, Expectation, Finding, Found};
use crate::{Analysis, Metric, Verdict};
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
            let (cell_index, baseline) = (cell.summary.cell, group.baseline.cell);
            let explained = others.iter().any(|it| it.explains(run, cell_index, baseline));
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
