//! More was outstanding than the queue has requests.

use super::{Finding, cells, list};
use crate::Analysis;
use record::Run;

pub const ID: &str = "no-free-request";

/// Of the bytes, above which those who waited show in a 99th percentile.
const SHARE: f64 = 0.01;

pub fn find(run: &Run, analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut most: f64 = 0.0;
    for (name, summary) in cells(analysis) {
        // The counter does not say whose bytes these are.
        let workload = run.plan.workload_of(&run.plan.cells[summary.cell]);
        if workload.is_err() || workload.is_ok_and(|(workload, _)| workload.background.is_some()) {
            continue;
        }
        let waited = summary.counters.get("uring.punted/s").copied().unwrap_or(0.0);
        let share = waited / summary.bytes_per_second.max(1.0);
        if share > SHARE {
            most = most.max(share);
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Finding {
        id: ID,
        statement: format!(
            "Under {} operations waited in io_uring's workers, most often for a free request \
             (nr_requests): who waits there may wait for long.",
            list(&names)
        ),
        evidence: format!("workers moved up to {:.0} % of the bytes", most.min(1.0) * 100.0),
        test:
            "repeat with a larger --queues, or with fewer outstanding (--clients times --depths): \
               the 99th percentile must fall"
                .to_owned(),
        cells: names,
    })
}
