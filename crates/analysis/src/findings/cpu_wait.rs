//! Clients waited for a processor.

use super::{Finding, cells, list};
use crate::Analysis;
use record::Run;

pub const ID: &str = "cpu-wait";

/// As a share of the mean latency, above which the storage did not make the figures alone.
const SHARE: f64 = 0.1;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut most = (0.0, 0.0);
    for (name, summary) in cells(analysis) {
        let of_cell = run.trials.iter().filter(|trial| trial.cell == summary.cell);
        let means = of_cell.filter_map(|trial| trial.measurement()?.job.latency().mean());
        let means: Vec<f64> = means.map(|mean| mean.as_micros_f64()).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        let waited = summary.counters.get("clients.cpu_wait_us").copied().unwrap_or(0.0);
        if waited > mean * SHARE && waited > 1.0 {
            if waited > most.0 {
                most = (waited, mean);
            }
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Finding {
        id: ID,
        statement: format!(
            "Under {} clients waited for a processor: latencies are longer than the storage's own.",
            list(&names)
        ),
        evidence: format!(
            "up to {:.0} µs an operation ready to run and without a processor, of a mean latency of \
             {:.0} µs",
            most.0, most.1
        ),
        test: "repeat with fewer --clients or a smaller --depths, or with less else on this machine: \
               latencies must fall by more than the storage's share"
            .to_owned(),
        cells: names,
    })
}
