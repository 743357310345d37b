//! `spindle undo`.

use super::inspect::Page;
use crate::{exit::Exit, say};
use clap::Args;
use host::{Host, Step, UndoReport};

/// The flags of `undo`.
#[derive(Debug, Args)]
pub struct UndoArgs {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl UndoArgs {
    /// Puts back what runs that were cut off had changed; exit code 1 when something is left.
    pub fn run(self) -> anyhow::Result<Exit> {
        let folder = host::state_folder()?;
        let mut reports = Vec::new();
        for journal in host::pending(&folder)? {
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
            say::result(&text(&reports))?;
        }
        let complete = reports.iter().all(UndoReport::is_complete);
        Ok(if complete { Exit::Done } else { Exit::Failed })
    }
}

fn text(reports: &[UndoReport]) -> String {
    let mut page = Page::default();
    for report in reports {
        let command = report.command.as_deref().unwrap_or("a run whose command cannot be read");
        page.line(0, &format!("Undoing: {command}"));
        for Step { what, change, outcome } in &report.steps {
            let change = if change.is_empty() { String::new() } else { format!(" {change}") };
            page.line(2, &format!("{what}{change}: {outcome}"));
        }
        if report.steps.is_empty() {
            page.line(2, "it had changed nothing that is known");
        }
        for unknown in &report.unknown {
            page.line(2, &format!("not known: {unknown}"));
        }
        match &report.kept {
            Some(kept) => page.line(2, &format!("its journal is kept: {}", kept.display())),
            None => page.line(2, "everything is as it was"),
        }
    }
    page.0
}
