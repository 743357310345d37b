//! Throughput is bought with latency: more operations wait at once.

use super::{Change, Check, Evidence, Expectation, Found};
use crate::{Analysis, Metric, Verdict};

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut traded = Vec::new();
    for cell in analysis.groups.iter().flat_map(|group| &group.cells) {
        let (Some(throughput), Some(p99)) =
            (cell.comparison(Metric::Throughput), cell.comparison(Metric::P99))
        else {
            continue;
        };
        if throughput.verdict == Verdict::Better && p99.verdict == Verdict::Worse {
            traded.push((cell.summary.cell, throughput.ratio, p99.ratio));
        }
    }
    // The dearest is first, so that the check is of the cell whose figures are the evidence.
    traded.sort_by(|(_, _, a), (_, _, b)| b.total_cmp(a));
    let &(_, throughput, p99) = traded.first()?;
    Some(Found {
        cells: traded.into_iter().map(|(cell, ..)| cell).collect(),
        evidence: Evidence::Traded { throughput, p99 },
        check: Check { change: Change::SameRate, expect: Expectation::LossVanishes(Metric::P99) },
    })
}
