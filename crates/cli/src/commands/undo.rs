//! `spindle undo`.

use crate::{exit::Exit, pending::report_text};
use clap::Args;
use host::Host;

/// The flags of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl UndoArgs {
    /// Puts back what programs that were cut off had changed. Those that still run are left alone.
    pub fn run(self) -> anyhow::Result<Exit> {
        let host = Host::here();
        let mut reports = Vec::new();
        for journal in host::pending(&host::state_folder()?)? {
            reports.push(host::undo(&host, journal)?);
        }
        if self.json {
            println!("{}", serde_json::to_string_pretty(&reports)?);
        } else if reports.is_empty() {
            println!("There is nothing to undo.");
        }
        for report in &reports {
            if !self.json {
                print!("{}", report_text(report));
            }
        }
        let complete = reports.iter().all(host::UndoReport::is_complete);
        Ok(if complete { Exit::Done } else { Exit::Failed })
    }
}
