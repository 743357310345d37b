//! As JSON, for programs.

use crate::sentences;
use analysis::{Analysis, decide, findings};
use record::Run;
use serde_json::{Value, json};

/// Plan, environment, analysis and advice; not the raw trials, which are in the run file. Field
/// names are those of the types, units their last word; infinite values are null.
pub fn json(run: &Run, analysis: &Analysis) -> Value {
    let advice: Vec<_> = analysis
        .groups
        .iter()
        .map(|group| {
            let decision = decide(group);
            json!({
                "condition": group.condition,
                "cell": decision.cell,
                "keep": decision.keeps(),
                "choice": decision.choice,
                "less_durable": decision.less_durable,
                "text": sentences::decision(group, &decision),
            })
        })
        .collect();
    let findings: Vec<_> = findings(run, analysis)
        .iter()
        .map(|finding| {
            let text = sentences::finding(run, finding);
            json!({
                "id": finding.kind,
                "cells": finding.cells,
                "evidence": finding.evidence,
                "check": finding.check,
                "text": {
                    "statement": text.statement,
                    "evidence": text.evidence,
                    "check": text.check,
                },
            })
        })
        .collect();
    let logs = run.trials.iter().filter_map(|trial| trial.measurement()?.events.as_ref());
    let event_hashes: Vec<_> = logs.map(|log| format!("{:016x}", log.hash)).collect();
    json!({
        "run": run.name,
        "started_at": run.started_at,
        "state": run.state,
        "rounds": run.rounds(),
        "environment": run.environment,
        "plan": run.plan,
        "events": run.events,
        "event_hashes": event_hashes,
        "analysis": analysis,
        "advice": advice,
        "findings": findings,
    })
}
