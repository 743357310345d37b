//! `spindle report`.

use crate::{exit::Exit, runs_folder, say};
use analysis::Analysis;
use clap::Args;
use record::Store;

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
}

impl ReportArgs {
    /// Reports from the run file alone.
    pub fn run(self) -> anyhow::Result<Exit> {
        let run = Store::open(&runs_folder::find(&self.run)?)?.read()?;
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
}
