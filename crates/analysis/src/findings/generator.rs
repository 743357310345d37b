//! The load generator was the limit, or nearly.

use super::{Change, Check, Evidence, Expectation, Found, summaries};
use crate::{Analysis, Metric};
use record::{Run, SharePermille};

/// A generator thread that spends more of its time on a CPU may be what limits.
const BUSY: SharePermille = SharePermille(900);

pub fn find(run: &Run, analysis: &Analysis) -> Option<Found> {
    let mut cells = Vec::new();
    let mut busiest = SharePermille(0);
    for summary in summaries(analysis) {
        let most = run
            .trials
            .iter()
            .filter(|trial| trial.id.cell == summary.cell)
            .filter_map(|trial| Some(trial.measurement()?.generator.busiest))
            .max()
            .unwrap_or_default();
        if most > BUSY {
            busiest = busiest.max(most);
            cells.push(summary.cell);
        }
    }
    (!cells.is_empty()).then_some(Found {
        cells,
        evidence: Evidence::GeneratorBusy { share: f64::from(busiest.0) / 1000.0 },
        check: Check {
            change: Change::MoreClientsLessDepth,
            expect: Expectation::Improves(Metric::Throughput),
        },
    })
}
