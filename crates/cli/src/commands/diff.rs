//! `spindle diff`.

use crate::{exit::Exit, runs_folder, say};
use analysis::{Analysis, RunDiff};
use clap::Args;
use record::Run;

/// The flags of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The first run: its name or its file
    first: String,
    /// The other: its name, its file, or `last`
    second: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl DiffArgs {
    /// Shows two runs side by side.
    pub fn run(self) -> anyhow::Result<Exit> {
        let (first, second) = (read(&self.first)?, read(&self.second)?);
        let analyses = (Analysis::of(&first), Analysis::of(&second));
        let diff = RunDiff::of((&first, &analyses.0), (&second, &analyses.1));
        let names = (first.name.as_str(), second.name.as_str());
        if self.json {
            say::json(&report::run_diff_json(&diff, names))?;
        } else {
            say::result(&report::run_diff(&diff, names, crate::WIDTH))?;
        }
        Ok(Exit::Done)
    }
}

/// A run; of one with several sessions the last.
fn read(word: &str) -> anyhow::Result<Run> {
    let run = runs_folder::open(&runs_folder::find(word)?)?.read()?;
    if !run.later.is_empty() {
        let sessions = run.later.len() + 1;
        say::note(&format!("{} has {sessions} sessions; this is about the last", run.name));
    }
    Ok(run.last_session())
}
