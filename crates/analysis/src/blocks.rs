//! Rounds pooled into blocks: what a short trial cannot tell by itself, several together can.

use crate::{
    MIN_OPERATIONS_TO_COMPARE_P99, Metric,
    tail::{self, MIN_FOR_LEVEL},
};
use record::{Measurement, Run, Trial};
use std::collections::BTreeMap;

/// More blocks than these narrow an interval hardly: Student's t has come close to the normal
/// distribution. Fewer and longer ones have steadier shares.
const MAX_BLOCKS: u32 = 20;

/// A block is so much longer than the fewest operations need, so that few blocks are left without the figure.
const SPARE: f64 = 1.5;

/// Measurements by block and replica.
type Blocks<'a> = BTreeMap<(u32, u32), Vec<&'a Measurement>>;

/// Trials of a cell: the baseline has two a round, which are replica 0 and 1.
#[derive(Clone, Copy)]
pub(crate) struct Trials {
    /// The cell.
    pub cell: usize,
    /// Its replicas.
    pub replicas: &'static [u32],
}

impl Trials {
    /// All of a cell.
    pub fn of(cell: usize) -> Trials {
        Trials { cell, replicas: &[0, 1] }
    }
}

/// The measurements of a cell by block and replica; a block is some consecutive rounds. Where trials have fewer
/// than `least` operations, it is as many rounds as have them together.
pub(crate) fn blocks(run: &Run, cell: usize, least: u64) -> Blocks<'_> {
    in_blocks(run, cell, length(run, &[cell], least))
}

fn in_blocks(run: &Run, cell: usize, length: u32) -> Blocks<'_> {
    let last = (run.rounds() / length).max(1) - 1;
    let mut all: Blocks = BTreeMap::new();
    for trial in run.trials.iter().filter(|trial| trial.id.cell == cell) {
        if let Some(measurement) = trial.measurement() {
            // What is left over at the end belongs to the last whole block.
            let block = (trial.id.round / length).min(last);
            all.entry((block, trial.id.replica)).or_default().push(measurement);
        }
    }
    all
}

/// The rounds of a block, of which there are not more than [`MAX_BLOCKS`].
fn length(run: &Run, cells: &[usize], least: u64) -> u32 {
    match least {
        0 => 1,
        _ => needed(run, cells, least).max(run.rounds().div_ceil(MAX_BLOCKS)).max(1),
    }
}

/// The rounds in which each of these cells has so many operations. What another program printed is never pooled: its
/// percentiles cannot be.
fn needed(run: &Run, cells: &[usize], least: u64) -> u32 {
    let of_cell = |cell: &usize| {
        let trials = run.trials.iter().filter(|trial| trial.id.cell == *cell);
        let measured: Vec<&Measurement> = trials.filter_map(|trial| trial.measurement()).collect();
        if measured.iter().any(|measurement| measurement.imported.is_some()) {
            return None;
        }
        let operations: u64 = measured.iter().map(|measurement| measurement.operations()).sum();
        let mean = operations as f64 / measured.len().max(1) as f64;
        let short = mean > 0.0 && mean < least as f64;
        Some(if short { (SPARE * least as f64 / mean).ceil() as u32 } else { 1 })
    };
    let of_each: Option<Vec<u32>> = cells.iter().map(of_cell).collect();
    of_each.and_then(|all| all.into_iter().max()).unwrap_or(1)
}

/// A figure's logarithm by round and replica, in the trials of a cell that count; percentiles and
/// shares by block of rounds and replica.
pub(crate) fn logs(run: &Run, metric: Metric, cell: usize) -> BTreeMap<(u32, u32), f64> {
    blocks(run, cell, metric.least_operations(clients(run, &[cell])))
        .into_iter()
        .filter_map(|(place, measured)| Some((place, metric.log(&measured)?)))
        .collect()
}

/// One observation a round, or block of rounds, in which both could be measured: the mean logarithm of a
/// figure in some trials less that in others. Blocks are the same for both, so that what drifts from round to
/// round cancels.
pub(crate) fn log_ratios(run: &Run, metric: Metric, one: Trials, other: Trials) -> Vec<f64> {
    let cells = [one.cell, other.cell];
    let (least, length) = match metric {
        Metric::P99 => (MIN_FOR_LEVEL, needed(run, &cells, MIN_FOR_LEVEL)),
        Metric::Throughput | Metric::Fairness => {
            let least = metric.least_operations(clients(run, &cells));
            (least, length(run, &cells, least))
        }
    };
    let [ones, others] = cells.map(|cell| in_blocks(run, cell, length));
    let mut rounds: Vec<u32> = ones.keys().map(|(block, _)| *block).collect();
    rounds.dedup();
    let sides: Vec<[Vec<Vec<&Measurement>>; 2]> = rounds
        .into_iter()
        .map(|block| [picked(&ones, one, block, least), picked(&others, other, block, least)])
        .filter(|sides| sides.iter().all(|side| !side.is_empty()))
        .collect();
    let printed = sides.iter().flatten().flatten().flatten().any(|it| it.imported.is_some());
    if metric == Metric::P99 && !printed {
        return percentiles(&sides);
    }
    let mean = |side: &Vec<Vec<&Measurement>>| {
        let logs: Vec<f64> = side.iter().filter_map(|measured| metric.log(measured)).collect();
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    };
    sides.iter().filter_map(|[one, other]| Some(mean(one)? - mean(other)?)).collect()
}

/// The trials of a block with so many operations, by replica.
fn picked<'a>(all: &Blocks<'a>, of: Trials, block: u32, least: u64) -> Vec<Vec<&'a Measurement>> {
    let enough = |measured: &Vec<&Measurement>| {
        let count: u64 = measured.iter().map(|it| it.operations()).sum();
        count >= least || measured.iter().any(|it| it.imported.is_some())
    };
    let trials = of.replicas.iter().filter_map(|replica| all.get(&(block, *replica)).cloned());
    trials.filter(enough).collect()
}

/// Those of p99; none where either side has too few operations in all.
fn percentiles(sides: &[[Vec<Vec<&Measurement>>; 2]]) -> Vec<f64> {
    let rounds: Vec<tail::Round> = sides
        .iter()
        .map(|sides| {
            sides.each_ref().map(|side| side.iter().map(|it| Metric::pooled(it)).collect())
        })
        .collect();
    let count = |side: usize| -> u64 {
        sides.iter().flat_map(|sides| &sides[side]).flatten().map(|it| it.operations()).sum()
    };
    if count(0).min(count(1)) < MIN_OPERATIONS_TO_COMPARE_P99 {
        return Vec::new();
    }
    tail::log_ratios(rounds, 0.99)
}

/// The clients of some cells' trials, where there are most.
fn clients(run: &Run, cells: &[usize]) -> usize {
    let of_cells = run.trials.iter().filter(|trial| cells.contains(&trial.id.cell));
    let counts = of_cells.filter_map(|trial: &Trial| Some(trial.measurement()?.shares().len()));
    counts.max().unwrap_or(0)
}
