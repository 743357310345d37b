//! Two runs on one page: what may be said of them together.

use crate::run_diff::{differences, notes, standing};
use analysis::{DiffCell, Metric, RunDiff};
use serde::Serialize;

/// Two runs, the first before the second.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Together {
    /// The cells that both have.
    pub cells: Vec<TogetherCell>,
    /// What is another in plan or environment: what, in the first, in the second.
    pub differs: Vec<(String, String, String)>,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
}

/// A cell of both runs.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TogetherCell {
    /// Its levels, with its condition where there are several.
    pub label: String,
    /// Its index in the first run.
    pub first: usize,
    /// Its index in the second.
    pub second: usize,
    /// Throughput of the second over that of the first.
    pub throughput: Option<Shift>,
    /// 99th percentile of the second over that of the first.
    pub p99: Option<Shift>,
}

/// How far two runs lie apart.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shift {
    /// The second over the first.
    pub ratio: f64,
    /// The interval's lower end; none where it has none.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// `same`, `differs` or `open`.
    pub standing: String,
}

pub fn together(diff: &RunDiff) -> Together {
    let mut all_notes: Vec<String> = Vec::new();
    let mut cells = Vec::new();
    for group in &diff.groups {
        cells.extend(group.cells.iter().map(|it| cell(it, &group.condition)));
        let new = notes(group).into_iter();
        let new: Vec<String> = new.filter(|note| !all_notes.contains(note)).collect();
        all_notes.extend(new);
    }
    Together { cells, differs: differences(diff), notes: all_notes }
}

fn cell(it: &DiffCell, condition: &str) -> TogetherCell {
    let shift = |metric| {
        let shift = it.figure(metric)?.shift?;
        let finite = |value: f64| value.is_finite().then_some(value);
        Some(Shift {
            ratio: finite(shift.ratio)?,
            low: finite(shift.low),
            high: finite(shift.high),
            standing: standing(&shift).to_owned(),
        })
    };
    TogetherCell {
        label: match condition {
            "" => it.label.clone(),
            condition => format!("{} ({condition})", it.label),
        },
        first: it.cells.0,
        second: it.cells.1,
        throughput: shift(Metric::Throughput),
        p99: shift(Metric::P99),
    }
}
