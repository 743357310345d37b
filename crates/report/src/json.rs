//! As JSON, for programs.

use crate::sentences;
use analysis::{Analysis, SessionAnalysis, decide, findings};
use record::{Run, WorldKind};
use serde_json::{Value, json};

/// Plan, environment, analysis and advice; `document` is what the page shows, by the schema
/// docs/reference/report.schema.json of the version `schema`. Field names are those of the types, units their
/// last word; infinite values are null.
///
/// Of a run with several sessions the fields are the first's, and `sessions` has each; `together` compares
/// them.
pub fn json(run: &Run, analysis: &Analysis) -> Value {
    let mut value = session(run, analysis);
    value["schema"] = json!(crate::SCHEMA);
    value["document"] = json!(crate::document(run, analysis));
    if let (Some(together), Some(fields)) = (SessionAnalysis::of(run), value.as_object_mut()) {
        let all: Vec<Value> =
            run.sessions().iter().map(|it| session(it, &Analysis::of(it))).collect();
        fields.insert("sessions".to_owned(), all.into());
        let verdicts: Vec<String> = together
            .groups
            .iter()
            .map(|group| sentences::session_verdict(&together, group, &run.name))
            .collect();
        fields.insert("together".to_owned(), json!(together));
        fields.insert("together_text".to_owned(), json!(verdicts));
    }
    value
}

fn session(run: &Run, analysis: &Analysis) -> Value {
    let advice: Vec<_> = analysis
        .groups
        .iter()
        .map(|group| {
            let decision = decide(run, group);
            json!({
                "condition": group.condition,
                "cell": decision.cell,
                "keep": decision.keeps(),
                "choice": decision.choice,
                "less_durable": decision.less_durable,
                "text": match run.environment.world {
                    WorldKind::Imported => sentences::imported_verdict(group),
                    _ => sentences::decision(group, &decision),
                },
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
