//! Rounds pooled into blocks: what a short trial cannot tell by itself, several together can.

use crate::Metric;
use record::{Measurement, Run, Trial};
use std::collections::BTreeMap;

/// More blocks than these narrow an interval hardly: Student's t has come close to the normal
/// distribution. Fewer and longer ones have steadier percentiles.
const MAX_BLOCKS: u32 = 20;

/// A block is so much longer than the baseline needs, so that a cell of two thirds of its operations
/// has enough, too.
const SPARE: f64 = 1.5;

/// The measurements of a cell by block and replica; a block is some consecutive rounds, the same for all
/// cells of a condition, so that what drifts from round to round still cancels between them.
///
/// Where trials have fewer than `least` operations, a block is as many rounds as have them together in
/// the baseline. What another program printed is never pooled: its percentiles cannot be.
pub(crate) fn blocks(
    run: &Run,
    cell: usize,
    least: u64,
) -> BTreeMap<(u32, u32), Vec<&Measurement>> {
    let baseline = run.plan.cells[cell].baseline.unwrap_or(cell);
    let rounds = run.rounds();
    let length = length(run, baseline, least);
    let last = (rounds / length).max(1) - 1;
    let mut all: BTreeMap<(u32, u32), Vec<&Measurement>> = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| trial.id.cell == cell) {
        if let Some(measurement) = trial.measurement() {
            // What is left over at the end belongs to the last whole block.
            let block = (trial.id.round / length).min(last);
            all.entry((block, trial.id.replica)).or_default().push(measurement);
        }
    }
    all
}

/// The rounds of a block.
fn length(run: &Run, baseline: usize, least: u64) -> u32 {
    let of_baseline = run.trials.iter().filter(|trial| trial.id.cell == baseline);
    let measured: Vec<&Measurement> = of_baseline.filter_map(|trial| trial.measurement()).collect();
    if measured.iter().any(|measurement| measurement.imported.is_some()) {
        return 1;
    }
    let operations: u64 = measured.iter().map(|measurement| measurement.operations()).sum();
    let mean = operations as f64 / measured.len().max(1) as f64;
    let needed = match mean > 0.0 && mean < least as f64 {
        true => (SPARE * least as f64 / mean).ceil() as u32,
        false => 1,
    };
    needed.max(run.rounds().div_ceil(MAX_BLOCKS)).max(1)
}

/// A figure's logarithm by round and replica, in the trials of a cell that count; percentiles and
/// shares by block of rounds and replica.
pub(crate) fn logs(run: &Run, metric: Metric, cell: usize) -> BTreeMap<(u32, u32), f64> {
    if metric == Metric::Throughput {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == cell);
        let log = |trial: &Trial| {
            Some(((trial.id.round, trial.id.replica), metric.log(&[trial.measurement()?])?))
        };
        return of_cell.filter_map(log).collect();
    }
    blocks(run, cell, metric.least_operations())
        .into_iter()
        .filter_map(|(place, measured)| Some((place, metric.log(&measured)?)))
        .collect()
}
