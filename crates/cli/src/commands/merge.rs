//! `spindle merge`.

use crate::{exit::Exit, fleet_file, runs_folder, say};
use analysis::{FleetAnalysis, FleetError, HostRun};
use clap::Args;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The flags of `merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The runs: their names or files, one a host
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// The file to write; `spindle report FILE` shows it again
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl MergeArgs {
    /// Merges the runs of many hosts, and says what they show together.
    pub fn run(self) -> anyhow::Result<Exit> {
        let files: Vec<PathBuf> =
            self.runs.iter().map(|run| runs_folder::find(run)).collect::<anyhow::Result<_>>()?;
        let runs = read_all(&files)?;
        let analysis = FleetAnalysis::of(&runs).map_err(|error| self.with_files(&files, error))?;
        fleet_file::write(&self.output, runs)?;
        if self.json {
            say::json(&report::fleet_json(&analysis))?;
        } else {
            say::result(&report::fleet(&analysis, crate::WIDTH))?;
        }
        say::note(&format!("wrote {}", self.output.display()));
        Ok(Exit::Done)
    }

    fn with_files(&self, files: &[PathBuf], error: FleetError) -> anyhow::Error {
        match error {
            FleetError::TooFew(_) => crate::exit::Usage(error.to_string()).into(),
            error => anyhow::Error::new(error)
                .context(format!("the {} runs are not merged", files.len())),
        }
    }
}

/// Reads the runs, on every processor: a run in memory is far larger than what is kept of it, so that no more
/// of them are there at once than threads. The order is that of the files.
fn read_all(files: &[PathBuf]) -> anyhow::Result<Vec<HostRun>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len());
    let next = AtomicUsize::new(0);
    let read_some = || -> anyhow::Result<Vec<(usize, HostRun)>> {
        let mut read = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(at) else { return Ok(read) };
            let run = runs_folder::open(file)?.read()?;
            read.push((at, HostRun::of(&run.last_session())?));
        }
    };
    let all = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(read_some)).collect();
        started
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<anyhow::Result<Vec<_>>>()
    })?;
    let mut all: Vec<(usize, HostRun)> = all.into_iter().flatten().collect();
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, run)| run).collect())
}
