//! The load generator was the limit, or nearly.

use super::{Finding, cells, list};
use crate::Analysis;
use record::{Run, SharePermille};

pub const ID: &str = "generator";

/// A generator thread that spends more of its time on a CPU may be what limits.
const BUSY: SharePermille = SharePermille(900);

pub fn find(run: &Run, analysis: &Analysis) -> Option<Finding> {
    let mut names = Vec::new();
    let mut busiest = SharePermille(0);
    for (name, summary) in cells(analysis) {
        let most = run
            .trials
            .iter()
            .filter(|trial| trial.cell == summary.cell)
            .filter_map(|trial| Some(trial.measurement()?.generator.busiest))
            .max()
            .unwrap_or_default();
        if most > BUSY {
            busiest = busiest.max(most);
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| Finding {
        id: ID,
        statement: format!(
            "Under {} the load generator itself was near its limit: a faster setting may not have \
             shown.",
            list(&names)
        ),
        evidence: format!(
            "a generator thread was on a CPU for {:.0} % of the time",
            f64::from(busiest.0) / 10.0
        ),
        test:
            "repeat with more --clients at a smaller --depth: if throughput rises, the generator \
               was the limit"
                .to_owned(),
        cells: names,
    })
}
