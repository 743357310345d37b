//! The hypervisor took CPU time away.

use super::{Finding, cells, list};
use crate::Analysis;

pub const ID: &str = "stolen-cpu";

/// Percent of CPU time stolen, above which figures suffer.
const STOLEN: f64 = 5.0;

pub fn find(analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut most: f64 = 0.0;
    for (name, summary) in cells(analysis) {
        let stolen = summary.counters.get("cpu.%steal").copied().unwrap_or(0.0);
        if stolen > STOLEN {
            most = most.max(stolen);
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Finding {
        id: ID,
        statement: format!(
            "Under {} the hypervisor gave this machine's CPU time to others: latencies are longer \
             than the storage's own.",
            list(&names)
        ),
        evidence: format!("up to {most:.0} % of CPU time was stolen (%steal)"),
        test: "repeat at a quieter hour, or on a machine of its own: latencies must fall"
            .to_owned(),
        cells: names,
    })
}
