//! What remains of each trial's throughput when its cell's is taken away: the machine's own course.

use crate::{Metric, blocks::logs};
use record::{Run, Trial, TrialId};
use std::collections::BTreeMap;

/// One trial, in the order in which they ran.
pub struct Residual {
    /// Which.
    pub id: TrialId,
    /// The logarithm of its throughput less the mean of its cell's.
    pub value: f64,
}

/// Of all trials that count, in the order in which they ran.
pub fn residuals(run: &Run) -> Vec<Residual> {
    let mut cells: BTreeMap<usize, BTreeMap<(u32, u32), f64>> = BTreeMap::new();
    let mut of = |id: TrialId| -> Option<f64> {
        let values = cells.entry(id.cell).or_insert_with(|| logs(run, Metric::Throughput, id.cell));
        let mean = values.values().sum::<f64>() / values.len().max(1) as f64;
        Some(values.get(&(id.round, id.replica))? - mean)
    };
    let measured = run.trials.iter().filter(|trial| trial.measurement().is_some());
    let residual = |trial: &Trial| Some(Residual { id: trial.id, value: of(trial.id)? });
    measured.filter_map(residual).collect()
}
