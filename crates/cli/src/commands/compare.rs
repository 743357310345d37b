//! `spindle compare`: the main job.

use super::plan;
use crate::{
    exit::Exit, flags::ComparisonFlags, interrupt, live::Live, pending::settle_pending,
    progress::Progress, runs_folder, say,
};
use analysis::{Analysis, SessionAnalysis};
use anyhow::Context;
use clap::Args;
use record::{Run, Store, Waiting};
use runner::{Ending, World};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::{SystemTime, UNIX_EPOCH},
};

/// The flags of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    #[command(flatten)]
    comparison: ComparisonFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// Write the run file here instead of into the folder of runs
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show the page while the comparison runs, at an address on this machine that is printed
    #[arg(long)]
    live: bool,
}

/// How a run that was made is shown: also the flags of `resume`.
#[derive(Debug, Args)]
pub struct OutputFlags {
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// No progress, no plan, only the report
    #[arg(long, short)]
    quiet: bool,
    /// Exit with code 3 unless every verdict on throughput and p99 latency is settled
    #[arg(long)]
    settled: bool,
}

impl OutputFlags {
    /// Whether only the report is wanted.
    pub fn quiet(&self) -> bool {
        self.quiet
    }
}

impl CompareArgs {
    /// Compares.
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(list) = self.comparison.list() {
            say::result(&list)?;
            return Ok(Exit::Done);
        }
        let stop = interrupt::flag()?;
        settle_pending(&stop)?;
        let (plan, world) = plan::resolve(&self.comparison)?;
        if !self.output.quiet {
            say::aside(&plan::text(&plan, world.as_ref()));
        }
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
        let environment = world.describe(&plan)?;
        let name = report::run_name(started_at, &plan.target);
        let file = self.file.as_deref();
        let mut store = runs_folder::begin(file, &name, started_at, &environment, &plan)?;
        let path = store.path().to_owned();
        let run = store.read()?;
        let live = self.live.then(|| live_page(&path)).flatten();
        let ended = execute(world.as_ref(), run, &mut store, &stop, &self.output);
        drop(live);
        remove_if_empty(ended, &path)
    }
}

/// The page of a run; a run without one is as good.
fn live_page(file: &Path) -> Option<Live> {
    let started = Live::start(file);
    say::note(&match &started {
        Ok(live) => format!("the page is at {}", live.address),
        Err(error) => format!("the comparison goes on without its page: {error:#}"),
    });
    started.ok()
}

/// A run that failed before its first trial leaves no file behind.
fn remove_if_empty(ended: anyhow::Result<Exit>, path: &Path) -> anyhow::Result<Exit> {
    if ended.is_err() {
        // Whoever holds the file now may hold it for long: a moment is waited, as after an interrupt.
        let waiting = Waiting { stop: Some(Arc::new(AtomicBool::new(true))), tell: None };
        let empty = Store::open_waiting(path, waiting).and_then(|store| store.read());
        if empty.is_ok_and(|run| run.trials.is_empty()) {
            // It holds nothing; if it stays, `spindle runs` shows it as empty.
            let _ = std::fs::remove_file(path);
        }
    }
    ended
}

/// Runs what is left of a run and reports it.
pub fn execute(
    world: &dyn World,
    mut run: Run,
    store: &mut Store,
    stop: &Arc<AtomicBool>,
    output: &OutputFlags,
) -> anyhow::Result<Exit> {
    let mut progress =
        Progress::new(&run.plan, world.kind(), run.rounds().saturating_sub(1), output.quiet);
    store.set_waiting(progress.waiting(stop))?;
    let ended = runner::run_rounds(world, &mut run, store, stop, &mut progress);
    progress.finish();
    let ended = ended.map_err(|error| match error.baseline_failed() {
        Some(failed) => {
            let reason = report::outcome(&failed.last).unwrap_or_default();
            anyhow::anyhow!("{failed}: {reason}")
        }
        None => error.into(),
    });
    let ending =
        ended.with_context(|| match run.trials.is_empty() && !store.writes_later_session() {
            true => "nothing was measured".to_owned(),
            false => format!(
                "{} trials are kept in {}; `spindle resume` goes on",
                run.trials.len(),
                store.path().display()
            ),
        })?;
    // The whole of its trials, and the sessions before it.
    let run = store.read()?;
    let analysis = Analysis::of(&run);
    let settled = match SessionAnalysis::of(&run) {
        Some(sessions) => sessions.settled(),
        None => analysis.settled(),
    };
    if output.json {
        say::json(&report::json(&run, &analysis))?;
    } else {
        say::result(&report::terminal(&run, &analysis, crate::WIDTH))?;
    }
    if !output.quiet {
        say::aside(&format!("\nRun file: {}\n", store.path().display()));
    }
    Ok(match ending {
        Ending::Interrupted => Exit::Interrupted,
        Ending::Complete | Ending::Settled if output.settled && !settled => Exit::Missed,
        Ending::Complete | Ending::Settled => Exit::Done,
    })
}
