//! `spindle runs`.

use crate::{exit::Exit, runs_folder, say};
use clap::Args;
use record::{Run, RunState, Store};
use report::{Align, Table};

/// The flags of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl RunsArgs {
    /// Lists the runs there are, the oldest first.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut runs = Vec::new();
        for path in runs_folder::all()? {
            match Store::open(&path).and_then(|store| store.read()) {
                Ok(run) => runs.push((path, run)),
                Err(error) => say::note(&error.to_string()),
            }
        }
        runs.sort_by_key(|(_, run)| run.started_at);
        if self.json {
            let all: Vec<_> = runs
                .iter()
                .map(|(path, run)| {
                    serde_json::json!({
                        "run": run.name, "file": path, "started_at": run.started_at,
                        "state": run.state, "trials": run.trials_of_all(), "sessions": run.later.len() + 1,
                        "cells": run.plan.cells.len(), "target": run.plan.target,
                    })
                })
                .collect();
            say::json(&all)?;
        } else if runs.is_empty() {
            say::line("There are no runs yet; `spindle compare` makes one.")?;
        } else {
            say::result(&table(&runs).text(crate::WIDTH))?;
        }
        Ok(Exit::Done)
    }
}

fn table(runs: &[(std::path::PathBuf, Run)]) -> Table {
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("state", Align::Left),
        ("cells", Align::Right),
        ("rounds", Align::Right),
        ("target", Align::Left),
    ]);
    for (_, run) in runs {
        let state = match run.state {
            RunState::Done => "done",
            RunState::Interrupted => "interrupted",
            RunState::Running => "unfinished",
        };
        table.row([
            run.name.clone(),
            state.to_owned(),
            run.plan.cells.len().to_string(),
            run.rounds_of_all().to_string(),
            run.plan.target.clone(),
        ]);
    }
    table
}
