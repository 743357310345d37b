//! What became of the checks of findings.

use crate::{
    sentences,
    words::{change, metric_name, wrap},
};
use analysis::{Analysis, CheckOpen, CheckOutcome, ComparedCell, Expectation, Finding, Metric};
use plan::Plan;
use record::Run;
use serde_json::{Value, json};
use std::{fmt::Write, path::PathBuf};

/// What was done about one finding.
#[derive(Debug)]
pub enum Checked {
    /// It cannot be checked here.
    NotRun {
        /// Why.
        reason: String,
    },
    /// What would be run.
    Planned {
        /// The cells.
        plan: Box<Plan>,
    },
    /// It was checked.
    Run {
        /// What became of it.
        outcome: CheckOutcome,
        /// The trials.
        run: Box<Run>,
        /// Where they are.
        file: PathBuf,
    },
}

/// A finding and its check, for a terminal.
pub fn checked(run: &Run, finding: &Finding, checked: &Checked, width: usize) -> String {
    let text = sentences::finding(run, finding);
    let mut out = String::new();
    let mut line = |text: &str, indent: usize| {
        let _ = writeln!(out, "{}{}", " ".repeat(indent), wrap(text, width - indent, 2));
    };
    let outcome = match checked {
        Checked::NotRun { .. } => "not checked".to_owned(),
        Checked::Planned { .. } => "to be checked".to_owned(),
        Checked::Run { outcome, .. } => outcome_word(*outcome).to_owned(),
    };
    line(&format!("{}: {outcome}", finding.kind.id()), 0);
    line(&format!("{} ({}).", text.statement.trim_end_matches('.'), text.evidence), 2);
    line(&format!("Check: {}.", text.check), 2);
    match checked {
        Checked::NotRun { reason } => line(&format!("Not run: {reason}."), 2),
        Checked::Planned { plan } => line(
            &format!(
                "Would run {} rounds of {}: {}.",
                plan.timing.rounds,
                cells(plan),
                match plan.total() {
                    Some(total) => format!("at most {total}"),
                    None => "each trial as long as the trace takes".to_owned(),
                }
            ),
            2,
        ),
        Checked::Run { outcome, run, file } => {
            line(&format!("{}.", seen(run, finding.check.expect)), 2);
            if let CheckOutcome::Open(why) = outcome {
                line(&format!("Open: {}.", open(*why)), 2);
            }
            line(&format!("Run file: {}", file.display()), 2);
        }
    }
    out
}

/// The same as JSON.
pub fn checked_json(all: &[(Finding, Checked)]) -> Value {
    let one = |(finding, checked): &(Finding, Checked)| {
        let of_check = match checked {
            Checked::NotRun { reason } => json!({ "outcome": "not_run", "reason": reason }),
            Checked::Planned { plan } => json!({ "outcome": "planned", "plan": plan }),
            Checked::Run { outcome, run, file } => {
                let mut value = json!(outcome);
                value["run"] = json!(run.name);
                value["file"] = json!(file);
                value
            }
        };
        json!({
            "finding": finding.kind,
            "cells": finding.cells,
            "evidence": finding.evidence,
            "check": finding.check,
            "checked": of_check,
        })
    };
    Value::Array(all.iter().map(one).collect())
}

fn outcome_word(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Confirmed => "confirmed",
        CheckOutcome::Refuted => "refuted",
        CheckOutcome::Open(_) => "open",
    }
}

fn open(why: CheckOpen) -> &'static str {
    match why {
        CheckOpen::NotShownAgain => "what it speaks of did not show again, so nothing could vanish",
        CheckOpen::TooWide => "the interval is too wide; repeat the check with longer trials",
        CheckOpen::NotMeasured => "a cell could not be measured",
    }
}

fn cells(plan: &Plan) -> String {
    let labels: Vec<String> = plan.cells.iter().map(|cell| cell.label(&plan.factors)).collect();
    labels.join("; ")
}

/// The throughput of all cells, and each one's difference from what it is compared with, also in another figure that the
/// check speaks of.
fn seen(run: &Run, expect: Expectation) -> String {
    let analysis = Analysis::of(run);
    let figure = |cell: usize| {
        let of_cell = run.trials.iter().filter(|trial| trial.id.cell == cell);
        let rates = of_cell.filter_map(|trial| Metric::Throughput.of(trial.measurement()?));
        let rates: Vec<f64> = rates.collect();
        rates.iter().sum::<f64>() / rates.len().max(1) as f64
    };
    let compared = analysis.groups.iter().flat_map(|group| &group.cells);
    let changes = |it: &ComparedCell| {
        let mut all = vec![change(it.comparison(Metric::Throughput)?)];
        for metric in expect.metrics().into_iter().filter(|it| *it != Metric::Throughput) {
            all.push(format!("{} {}", metric_name(metric), change(it.comparison(metric)?)));
        }
        Some(all.join(", "))
    };
    let changes: Vec<(usize, String)> =
        compared.filter_map(|it| Some((it.summary.cell, changes(it)?))).collect();
    let one = |(place, cell): (usize, &plan::Cell)| {
        let label = cell.label(&run.plan.factors);
        let rate = crate::words::count(figure(place));
        match changes.iter().find(|(of, _)| *of == place) {
            Some((_, change)) => format!("{label} {rate}/s, {change}"),
            None => format!("{label} {rate}/s"),
        }
    };
    let all: Vec<String> = run.plan.cells.iter().enumerate().map(one).collect();
    format!("Measured: {}", all.join("; "))
}
