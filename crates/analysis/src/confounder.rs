//! Why a gain may be none: what a finding speaks of may have made it.

use crate::{
    ComparedCell, Metric, Verdict,
    findings::{Gain, order_effect, unsteady},
};
use record::Run;

/// What may have made a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confounder {
    /// Trials had not settled.
    Unsteady,
    /// Trials depend on what ran before them.
    OrderEffect,
}

/// What may have made the gain of a cell over its baseline; `None` where nothing did, or there is no gain.
pub fn confounder(
    run: &Run,
    baseline: usize,
    cell: &ComparedCell,
    metric: Metric,
) -> Option<Confounder> {
    let better = cell.comparison(metric).filter(|it| it.verdict == Verdict::Better)?;
    let gain = Gain { baseline, cell: cell.summary.cell, metric, log: better.ratio.ln() };
    if unsteady::outweighs(run, gain) {
        Some(Confounder::Unsteady)
    } else {
        order_effect::outweighs(run, gain).then_some(Confounder::OrderEffect)
    }
}
