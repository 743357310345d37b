//! Findings: a cause, the counters that show it, and a test that could prove it wrong. One file
//! each.

mod cache;
mod cpu_wait;
mod generator;
mod merging;
mod no_free_request;
mod read_before_write;
mod stolen_cpu;
mod unsteady;

use crate::{Analysis, CellSummary};
use record::Run;
use serde::Serialize;

/// A cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name, which is its page's in docs/reference/findings/.
    pub id: &'static str,
    /// The cells that show it, by their labels.
    pub cells: Vec<String>,
    /// What is the case, in a sentence.
    pub statement: String,
    /// The counters that show it.
    pub evidence: String,
    /// What could prove it wrong.
    pub test: String,
}

/// The names of all findings, each with a page in docs/reference/findings/.
pub const IDS: [&str; 8] = [
    cache::ID,
    cpu_wait::ID,
    generator::ID,
    merging::ID,
    no_free_request::ID,
    read_before_write::ID,
    stolen_cpu::ID,
    unsteady::ID,
];

/// All that apply to a run.
pub fn all(run: &Run, analysis: &Analysis) -> Vec<Finding> {
    [
        cache::find(run, analysis),
        cpu_wait::find(run, analysis),
        generator::find(run, analysis),
        merging::find(analysis),
        no_free_request::find(run, analysis),
        read_before_write::find(run, analysis),
        stolen_cpu::find(analysis),
        unsteady::find(run, analysis),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Every cell of every group, with what to call it in a sentence.
fn cells(analysis: &Analysis) -> impl Iterator<Item = (String, &CellSummary)> {
    analysis.groups.iter().flat_map(|group| {
        std::iter::once(&group.baseline).chain(group.cells.iter().map(|cell| &cell.summary)).map(
            |summary| {
                let name = match group.condition.is_empty() {
                    true => summary.label.clone(),
                    false => format!("{} ({})", summary.label, group.condition),
                };
                (name, summary)
            },
        )
    })
}

/// `a`, `a and b`, `a, b and 3 more`.
fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} and {two}"),
        [one, two, more @ ..] => format!("{one}, {two} and {} more", more.len()),
    }
}
