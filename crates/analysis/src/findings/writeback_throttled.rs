//! Buffered writes are held back: at the limit of dirty pages, or by write-back throttling (blk-wbt).

use super::{Change, Check, Evidence, Expectation, Found, counter, summaries};
use crate::{Analysis, Metric, Verdict};
use plan::Factor;
use record::Run;

/// Milliseconds in each second, above which it shows.
const HELD: f64 = 50.0;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: f64 = 0.0;
    for summary in summaries(analysis) {
        let held = counter(summary, &counters::WRITEBACK_THROTTLED).unwrap_or(0.0);
        if held > HELD {
            most = most.max(held);
            cells.push(summary.cell);
        }
    }
    if !cells.is_empty() {
        // What memory took for a while would come to an end.
        let expect = Expectation::StaysInTrials;
        let check = Check { change: Change::LongerTrials, expect };
        return Some(Found {
            cells,
            evidence: Evidence::WritesHeld { ms_per_second: most },
            check,
        });
    }
    // blk-wbt shows where cells differ in nothing else.
    let differing = analysis.groups.iter().flat_map(|group| {
        let of_baseline = &run.plan.cells[group.baseline.cell].levels;
        group.cells.iter().filter(move |cell| {
            let own = &run.plan.cells[cell.summary.cell].levels;
            let mut others =
                own.iter().filter(|(factor, level)| of_baseline.get(factor) != Some(level));
            others.next().is_some_and(|(factor, _)| *factor == Factor::WbtLatUsec)
                && others.next().is_none()
        })
    });
    let judged = differing.filter_map(|cell| {
        let comparison = cell.comparison(Metric::Throughput)?;
        matches!(comparison.verdict, Verdict::Better | Verdict::Worse)
            .then_some((cell.summary.cell, comparison.ratio))
    });
    let (cell, ratio) = judged.max_by(|(_, a), (_, b)| a.ln().abs().total_cmp(&b.ln().abs()))?;
    let expect = Expectation::Differs(Metric::Throughput);
    Some(Found {
        cells: vec![cell],
        evidence: Evidence::ThrottlingDiffers { throughput: ratio },
        check: Check { change: Change::NoThrottling, expect },
    })
}
