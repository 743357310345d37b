//! `spindle report`.

use crate::{
    exit::{Exit, Usage},
    runs_folder, say,
};
use analysis::Analysis;
use anyhow::Context;
use clap::Args;
use record::{EventLog, Run, Store};
use std::path::PathBuf;
use units::Nanos;

/// The flags of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The run: its name, its file, or `last`
    #[arg(default_value = "last")]
    run: String,
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
        let store = Store::open(&runs_folder::find(&self.run)?)?;
        let run = store.read()?;
        if let Some(cell) = &self.events {
            self.draw(&store, &run, cell)?;
            return Ok(Exit::Done);
        }
        let analysis = Analysis::of(&run);
        if self.json {
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
