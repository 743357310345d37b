//! Throughput is bought with latency: more operations wait at once.

use super::{Change, Check, Evidence, Expectation, Found};
use crate::{Analysis, Metric, Verdict};

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut dearest: Option<(f64, f64)> = None;
    for cell in analysis.groups.iter().flat_map(|group| &group.cells) {
        let (Some(throughput), Some(p99)) =
            (cell.comparison(Metric::Throughput), cell.comparison(Metric::P99))
        else {
            continue;
        };
        if throughput.verdict != Verdict::Better || p99.verdict != Verdict::Worse {
            continue;
        }
        cells.push(cell.summary.cell);
        if dearest.is_none_or(|(_, most)| p99.ratio > most) {
            dearest = Some((throughput.ratio, p99.ratio));
        }
    }
    let (throughput, p99) = dearest?;
    Some(Found {
        cells,
        evidence: Evidence::Traded { throughput, p99 },
        check: Check { change: Change::SameRate, expect: Expectation::NotWorse(Metric::P99) },
    })
}
