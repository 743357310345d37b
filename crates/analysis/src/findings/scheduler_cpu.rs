//! The scheduler costs CPU time, and there is none to spare.

use super::{Change, Check, Evidence, Expectation, Found, counter};
use crate::{Analysis, CellSummary, Metric, Verdict};

/// CPU time in the kernel an operation, over the baseline's.
const DEARER: f64 = 1.1;
/// Percent of CPU time without work, waiting for I/O included, below which CPUs are what is short.
const IDLE: f64 = 25.0;

/// Percent of CPU time in the kernel, below which it is others that leave none to spare.
const KERNEL: f64 = 30.0;

pub fn find(analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut most: Option<(f64, f64)> = None;
    for group in &analysis.groups {
        let Some(before) = kernel_time(&group.baseline) else { continue };
        for cell in &group.cells {
            let verdict = cell.comparison(Metric::Throughput).map(|it| it.verdict);
            let (Some(after), Some(idle)) = (kernel_time(&cell.summary), idle(&cell.summary))
            else {
                continue;
            };
            let ratio = after / before;
            if verdict != Some(Verdict::Worse) || ratio < DEARER || idle > IDLE {
                continue;
            }
            cells.push(cell.summary.cell);
            if most.is_none_or(|(largest, _)| ratio > largest) {
                most = Some((ratio, idle));
            }
        }
    }
    let (ratio, idle_percent) = most?;
    Some(Found {
        cells,
        evidence: Evidence::KernelTime { ratio, idle_percent },
        check: Check { change: Change::FewerClients, expect: Expectation::DifferenceVanishes },
    })
}

/// Percent of CPU time in the kernel for each operation a second, where the kernel has much of it.
fn kernel_time(summary: &CellSummary) -> Option<f64> {
    let throughput = summary.throughput?.mean;
    let system = counter(summary, &counters::CPU_SYSTEM)?;
    (throughput > 0.0 && system > KERNEL).then(|| system / throughput)
}

fn idle(summary: &CellSummary) -> Option<f64> {
    Some(counter(summary, &counters::CPU_IDLE)? + counter(summary, &counters::CPU_IOWAIT)?)
}
