//! `spindle runs`.

use crate::{exit::Exit, runs_folder, say};
use anyhow::Context;
use clap::Args;
use record::{RunHeader, RunState};
use report::{Align, Table};
use std::path::PathBuf;

/// The flags of `runs`.
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Delete the files of all runs but the latest N. What is applied, what is not complete and what
    /// cannot be read is kept
    #[arg(long, value_name = "N")]
    keep: Option<usize>,
    /// With --keep: say what would be deleted, and delete nothing
    #[arg(long, requires = "keep")]
    dry_run: bool,
}

impl RunsArgs {
    /// Lists the runs there are, the oldest first.
    pub fn run(self) -> anyhow::Result<Exit> {
        let (mut runs, mut unread) = (Vec::new(), Vec::new());
        for path in runs_folder::all()? {
            match runs_folder::open(&path).and_then(|store| Ok(store.header()?)) {
                Ok(run) => runs.push((path, run)),
                Err(error) => unread.push(Unread { path, error: format!("{error:#}") }),
            }
        }
        runs.sort_by_key(|(_, run)| run.started_at);
        for Unread { error, .. } in &unread {
            say::note(error);
        }
        if let Some(keep) = self.keep {
            return self.prune(&runs, keep);
        }
        if self.json {
            let read = runs.iter().map(|(path, run)| {
                serde_json::json!({
                    "run": run.name, "file": path, "started_at": run.started_at,
                    "state": run.state, "trials": run.trials, "sessions": run.sessions,
                    "cells": run.cells, "target": run.target,
                })
            });
            let unread = unread.iter().map(|it| {
                serde_json::json!({
                    "run": it.name(), "file": it.path, "state": UNREADABLE, "reason": it.error,
                })
            });
            say::json(&read.chain(unread).collect::<Vec<_>>())?;
        } else if runs.is_empty() && unread.is_empty() {
            say::line("There are no runs yet; `spindle compare` makes one.")?;
        } else {
            say::result(&table(&runs, &unread).text(crate::WIDTH))?;
        }
        Ok(Exit::Done)
    }

    /// Deletes all but the latest; `runs` begins with the oldest.
    fn prune(&self, runs: &[(PathBuf, RunHeader)], keep: usize) -> anyhow::Result<Exit> {
        let applied: Vec<PathBuf> = host::applied_anywhere(&host::state_folder()?)?
            .into_iter()
            .map(|it| it.application.run_file)
            .collect();
        let mut deleted = Vec::new();
        for (path, run) in &runs[..runs.len().saturating_sub(keep)] {
            if applied.contains(&std::path::absolute(path)?) {
                say::note(&format!("{} is kept: it is applied (spindle status)", run.name));
            } else if run.state != RunState::Done {
                let name = &run.name;
                say::note(&format!("{name} is kept: spindle resume {name} could go on with it"));
            } else {
                deleted.push((path, run));
            }
        }
        if !self.dry_run {
            for (path, _) in &deleted {
                std::fs::remove_file(path)
                    .with_context(|| format!("cannot delete {}", path.display()))?;
            }
        }
        let names: Vec<&str> = deleted.iter().map(|(_, run)| run.name.as_str()).collect();
        if self.json {
            say::json(&serde_json::json!({ "deleted": names, "dry_run": self.dry_run }))?;
        } else if names.is_empty() {
            say::line("There is nothing to delete.")?;
        } else {
            let verb = if self.dry_run { "Would delete" } else { "Deleted" };
            say::line(&report::wrap(&format!("{verb} {}", names.join(", ")), crate::WIDTH, 2))?;
        }
        Ok(Exit::Done)
    }
}

/// How the state of a run that cannot be read is called.
const UNREADABLE: &str = "unreadable";

/// A file that cannot be read, and why.
struct Unread {
    path: PathBuf,
    error: String,
}

impl Unread {
    fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn table(runs: &[(PathBuf, RunHeader)], unread: &[Unread]) -> Table {
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
            run.cells.to_string(),
            run.rounds.to_string(),
            run.target.clone(),
        ]);
    }
    for it in unread {
        let unknown = || "-".to_owned();
        table.row([it.name(), UNREADABLE.to_owned(), unknown(), unknown(), unknown()]);
    }
    table
}
