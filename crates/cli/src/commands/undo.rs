//! `spindle undo`.

use crate::{exit::Exit, interrupt, pending::report_text, say};
use clap::Args;
use host::{Host, UndoReport};

/// The flags of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Only what interrupted programs left changed: keep what `apply` set
    #[arg(long)]
    interrupted: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl UndoArgs {
    /// Puts back what runs that were cut off had changed, and what was applied; exit code 1 when
    /// something is left.
    pub fn run(self) -> anyhow::Result<Exit> {
        interrupt::hold()?;
        let folder = host::state_folder()?;
        let mut journals = host::pending(&folder)?;
        if !self.interrupted {
            journals.extend(host::take_applied(&folder)?);
        }
        host::latest_first(&mut journals);
        let mut reports = Vec::new();
        for journal in journals {
            reports.push(host::undo(&Host::here(), journal)?);
        }
        if self.json {
            say::json(&reports)?;
        } else if reports.is_empty() {
            say::line(&format!(
                "There is nothing to undo: {} holds no journal of an ended run.",
                folder.display()
            ))?;
        } else {
            say::result(&reports.iter().map(report_text).collect::<String>())?;
        }
        super::emulate::forget_dead()?;
        let complete = reports.iter().all(UndoReport::is_complete);
        Ok(if complete { Exit::Done } else { Exit::Failed })
    }
}
