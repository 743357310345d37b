//! `spindle report`.

use crate::{
    exit::{Exit, Usage},
    fleet_file, interrupt,
    live::Live,
    runs_folder, say,
};
use analysis::{Analysis, FleetAnalysis};
use anyhow::Context;
use clap::Args;
use record::{EventLog, Run, Store};
use report::PageRun;
use std::{
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::Duration,
};
use units::Nanos;

/// The flags of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: its name, its file, or `last`; or a file that `spindle merge` wrote
    #[arg(default_value = "last")]
    run: String,
    /// With --html: a second run, to be compared with the first
    #[arg(requires = "html")]
    second: Option<String>,
    /// Write the page, one file that opens in any browser without network; `-` prints it
    #[arg(long, value_name = "FILE", group = "format")]
    html: Option<PathBuf>,
    /// Write a picture of the ranking for chats, with the answer above it; `-` prints it
    #[arg(long, value_name = "FILE", group = "format")]
    png: Option<PathBuf>,
    /// Serve the page at an address on this machine that is printed, until Ctrl-C; it follows a run
    /// that goes on
    #[arg(long, group = "format")]
    serve: bool,
    /// Print as JSON
    #[arg(long, group = "format")]
    json: bool,
    /// Print as Markdown, with the device's counters
    #[arg(long, group = "format")]
    markdown: bool,
    /// Print as CSV, a row for each cell
    #[arg(long, group = "format")]
    csv: bool,
    /// Draw the event log of a cell of a simulated run that was made with --events: the cell's label
    /// or a part of it; without one, the first that has a log
    #[arg(long, value_name = "CELL", num_args = 0..=1, default_missing_value = "")]
    #[arg(group = "format")]
    events: Option<String>,
    /// With --events: only this much time from the log's beginning
    #[arg(long, value_name = "TIME", requires = "events")]
    window: Option<Nanos>,
    /// With --events: write the picture, with heads and every request's life, to this SVG file
    #[arg(long, value_name = "FILE", requires = "events")]
    svg: Option<PathBuf>,
}

impl ReportArgs {
    /// Reports from the run file alone.
    pub fn run(self) -> anyhow::Result<Exit> {
        let file = runs_folder::find(&self.run)?;
        if fleet_file::is_one(&file) {
            return self.fleet(&file);
        }
        let store = runs_folder::open(&file)?;
        let run = store.read()?;
        if self.serve {
            let stop = interrupt::flag()?;
            let mut live = Live::start(&file)?;
            say::note(&format!("the page is at {}; Ctrl-C ends it", live.address));
            while !stop.load(Ordering::Relaxed) {
                if live.has_ended() {
                    anyhow::bail!("the page's process ended; its own words are above");
                }
                std::thread::sleep(Duration::from_millis(100));
            }
            return Ok(Exit::Done);
        }
        if let Some(cell) = &self.events {
            self.draw(&store, &run, cell)?;
            return Ok(Exit::Done);
        }
        if let Some(file) = &self.html {
            self.page(&store, &run, file)?;
            return Ok(Exit::Done);
        }
        let analysis = Analysis::of(&run);
        if let Some(file) = &self.png {
            let picture = report::ranking_png(&report::document(&run, &analysis))?;
            write_file(file, &picture)?;
        } else if self.json {
            say::json(&report::json(&run, &analysis))?;
        } else if self.markdown {
            say::result(&report::markdown(&run, &analysis))?;
        } else if self.csv {
            say::result(&report::csv(&run, &analysis))?;
        } else {
            say::result(&report::terminal(&run, &analysis, crate::WIDTH))?;
        }
        Ok(Exit::Done)
    }

    /// Merged runs of many hosts.
    fn fleet(&self, file: &Path) -> anyhow::Result<Exit> {
        let other = self.serve || self.csv || self.png.is_some() || self.events.is_some();
        if other || self.second.is_some() {
            return Err(Usage(
                "merged runs are shown in the terminal, with --markdown, --json or --html FILE"
                    .to_owned(),
            )
            .into());
        }
        let fleet = FleetAnalysis::of(&fleet_file::read(file)?)?;
        if self.json {
            say::json(&report::fleet_json(&fleet))?;
        } else if self.markdown {
            say::result(&report::fleet_markdown(&fleet))?;
        } else if let Some(to) = &self.html {
            write_file(to, report::fleet_html(&fleet).as_bytes())?;
        } else {
            say::result(&report::fleet(&fleet, crate::WIDTH))?;
        }
        Ok(Exit::Done)
    }

    fn page(&self, store: &Store, run: &Run, file: &Path) -> anyhow::Result<()> {
        let second = match &self.second {
            Some(name) => {
                let store = runs_folder::open(&runs_folder::find(name)?)?;
                let run = store.read()?;
                let logs = event_logs(&store, &run)?;
                Some((run, logs))
            }
            None => None,
        };
        let first = (run.clone(), event_logs(store, run)?);
        let runs: Vec<_> = std::iter::once(first).chain(second).collect();
        let analyses: Vec<Analysis> = runs.iter().map(|(run, _)| Analysis::of(run)).collect();
        let pages: Vec<PageRun> = runs
            .iter()
            .zip(&analyses)
            .map(|((run, logs), analysis)| PageRun { run, analysis, logs })
            .collect();
        let html = report::html(&pages)?;
        write_file(file, html.as_bytes())
    }

    fn draw(&self, store: &Store, run: &Run, wanted: &str) -> anyhow::Result<()> {
        let (label, log) = event_log(store, run, wanted)?;
        if let Some(path) = &self.svg {
            let svg = report::events_svg(&log, &label, self.window).ok_or_else(|| {
                Usage("there were no requests in this time: name a longer --window".to_owned())
            })?;
            std::fs::write(path, svg).with_context(|| path.display().to_string())?;
            say::note(&format!("wrote {}", path.display()));
        }
        say::result(&report::events_terminal(&log, &label, self.window, crate::WIDTH))?;
        Ok(())
    }
}

/// To a file, or to stdout.
fn write_file(file: &Path, content: &[u8]) -> anyhow::Result<()> {
    if file == Path::new("-") {
        return say::bytes(content);
    }
    std::fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))?;
    say::note(&format!("wrote {}", file.display()));
    Ok(())
}

/// The event logs of the first round, by cell.
fn event_logs(store: &Store, run: &Run) -> anyhow::Result<Vec<(usize, EventLog)>> {
    let mut all = Vec::new();
    for place in 0..run.plan.cells.len() {
        let log = store.event_log((0, place, 0))?;
        all.extend(log.filter(|log| !log.requests.is_empty()).map(|log| (place, log)));
    }
    Ok(all)
}

/// The log of the cell whose label has `wanted` in it, and that label.
fn event_log(store: &Store, run: &Run, wanted: &str) -> anyhow::Result<(String, EventLog)> {
    let mut found = Vec::new();
    for (place, cell) in run.plan.cells.iter().enumerate() {
        let label = cell.label(&run.plan.factors);
        let Some(log) = store.event_log((0, place, 0))? else { continue };
        if !log.requests.is_empty() {
            found.push((label, log));
        }
    }
    if found.is_empty() {
        return Err(Usage(format!(
            "{} has no event log: only a simulated comparison that is made with --events keeps one",
            run.name
        ))
        .into());
    }
    let labels: Vec<String> = found.iter().map(|(label, _)| format!("'{label}'")).collect();
    let exact = found.iter().position(|(label, _)| label == wanted);
    let part = found.iter().position(|(label, _)| label.contains(wanted));
    match exact.or(part) {
        Some(place) => Ok(found.swap_remove(place)),
        None => Err(Usage(format!(
            "no cell with a log is called '{wanted}': there are {}",
            labels.join(", ")
        ))
        .into()),
    }
}
