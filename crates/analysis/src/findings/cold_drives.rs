//! Some of an array's drives have nothing to do while others are busy.

use super::{Change, Check, Evidence, Expectation, Felt, Found, counter};
use crate::{Analysis, CellSummary, Metric, Verdict};

/// A drive that is busy for less than this share of the busiest one's time is cold.
const SHARE: f64 = 0.5;
/// Percent of the time that the busiest drive must be busy.
const BUSY: f64 = 20.0;
/// Busy drives of the slower of cell and baseline over those of the faster, below which that explains the loss.
const FEWER: f64 = 0.75;

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut worst: Option<(f64, Evidence)> = None;
    let mut take = |cell: usize, share: f64, evidence: Evidence| {
        if !cells.contains(&cell) {
            cells.push(cell);
        }
        if worst.is_none_or(|(least, _)| share < least) {
            worst = Some((share, evidence));
        }
    };
    let uneven = |summary: &CellSummary| {
        members(summary).filter(|(least, most)| *most > BUSY && *least < most * SHARE)
    };
    for (cell, (least, most)) in Felt::of(analysis, uneven).costing {
        take(cell, least / most, Evidence::MembersUneven { least, most });
    }
    for group in &analysis.groups {
        for cell in &group.cells {
            // The cause is with the slower of the two, be it the baseline.
            let (slower, faster) = match cell.comparison(Metric::Throughput).map(|it| it.verdict) {
                Some(Verdict::Worse) => (&cell.summary, &group.baseline),
                Some(Verdict::Better) => (&group.baseline, &cell.summary),
                _ => continue,
            };
            let (Some(few), Some(many)) = (busy(slower), busy(faster)) else { continue };
            if few < many * FEWER {
                let evidence = Evidence::FewerBusyDrives { slower: few, faster: many };
                take(slower.cell, few / many, evidence);
            }
        }
    }
    let (_, evidence) = worst?;
    Some(Found {
        cells,
        evidence,
        check: Check {
            change: Change::NoScheduler,
            expect: Expectation::Improves(Metric::Throughput),
        },
    })
}

/// Drives that the model has busy on average.
fn busy(summary: &CellSummary) -> Option<f64> {
    counter(summary, &counters::SIM_BUSY_DRIVES)
        .or_else(|| counter(summary, &counters::EMULATE_BUSY_DRIVES))
}

/// The least and the most that one of several members is busy, in percent.
fn members(summary: &CellSummary) -> Option<(f64, f64)> {
    let own = counters::DEVICE_UTIL.id.strip_prefix("device.")?;
    let of_one = |name: &String| {
        let (_, its) = name.strip_prefix("device.")?.split_once('.')?;
        (its == own).then_some(())
    };
    let all: Vec<f64> = summary
        .counters
        .iter()
        .filter(|(name, _)| of_one(name).is_some())
        .map(|(_, value)| *value)
        .collect();
    let least = all.iter().copied().min_by(f64::total_cmp)?;
    let most = all.iter().copied().max_by(f64::total_cmp)?;
    (all.len() > 1).then_some((least, most))
}
