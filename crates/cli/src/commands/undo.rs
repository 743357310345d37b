//! `spindle undo`.

use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::report_text,
    say,
};
use clap::Args;
use host::{Host, PendingJournal, UndoReport};
use std::path::Path;

/// The flags of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Only what interrupted programs left changed: keep what `apply` set
    #[arg(long)]
    interrupted: bool,
    /// Only what this journal names, and nothing else: `apply` and `status` say its name
    #[arg(long, value_name = "NAME", conflicts_with = "interrupted")]
    journal: Option<String>,
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
        let journals = self.journals(&folder)?;
        let mut reports = Vec::new();
        for journal in journals {
            reports.push(host::undo(&Host::here(), journal)?);
        }
        reports.extend(host::of_other_hosts(&Host::here(), &folder));
        if self.json {
            say::json(&reports)?;
        } else if let (Some(name), true) = (&self.journal, reports.is_empty()) {
            say::line(&format!(
                "There is nothing to undo: {} holds no journal {name}, or no longer.",
                folder.display()
            ))?;
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

    /// What is to be undone, the latest first.
    fn journals(&self, folder: &Path) -> anyhow::Result<Vec<PendingJournal>> {
        if let Some(name) = &self.journal {
            refuse_replaced(folder, name)?;
        }
        let mut journals = host::pending(folder)?;
        if !self.interrupted {
            journals.extend(host::take_applied(folder)?);
        }
        if let Some(name) = &self.journal {
            journals.retain(|it| it.path.file_stem().is_some_and(|stem| *stem == **name));
        }
        host::latest_first(&mut journals);
        Ok(journals)
    }
}

/// What something else is in the place of is not in force, and what was before it is not what is now.
fn refuse_replaced(folder: &Path, name: &str) -> anyhow::Result<()> {
    let applied = host::applied(folder)?;
    let named = applied.iter().find(|it| it.name() == name);
    match named.and_then(|it| it.replaced_by(&applied)) {
        Some(later) => Err(Usage(format!(
            "{} from run {} is in its place: undo --journal {} takes that back first, undo takes back both",
            later.application.label,
            later.application.run,
            later.name()
        ))
        .into()),
        None => Ok(()),
    }
}
