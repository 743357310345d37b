//! What others published, beside ours.

use crate::published::{figure, summaries};
use analysis::Analysis;
use plan::{Factor, Level};
use record::Run;
use serde::Serialize;

/// A figure that others published.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Published {
    /// The cell of ours, by its index.
    pub cell: usize,
    /// What is given.
    pub figure: String,
    /// The least that was published.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// Ours, if it was measured.
    pub ours: Option<f64>,
    /// Who published it.
    pub source: String,
}

pub fn published(run: &Run, analysis: &Analysis) -> Vec<Published> {
    let all = run
        .plan
        .published
        .iter()
        .flat_map(|published| summaries(analysis).map(move |summary| (published, summary)));
    let of_cell = all.filter(|(published, summary)| {
        let cell = &run.plan.cells[summary.cell];
        let whole = cell.level(&Factor::Without).is_none_or(|Level(word)| word == "nothing");
        published.is_of(cell) && whole
    });
    of_cell
        .map(|(published, summary)| Published {
            cell: summary.cell,
            figure: published.figure.clone(),
            low: published.low,
            high: published.high,
            ours: figure(summary, &published.figure),
            source: published.source.clone(),
        })
        .collect()
}
