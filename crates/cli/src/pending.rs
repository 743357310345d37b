//! What an earlier program that was cut off left changed: offered to be put back before anything
//! new begins.

use crate::say;
use anyhow::{Context, bail};
use host::{Host, PendingJournal, UndoReport};
use std::io::{BufRead, IsTerminal, Write};

/// Asks at a terminal whether to undo; elsewhere refuses to begin, because a baseline that somebody
/// else left behind is none.
pub fn settle_pending() -> anyhow::Result<()> {
    let pending = host::pending(&host::state_folder()?)?;
    if pending.is_empty() {
        return Ok(());
    }
    for journal in &pending {
        say::note(&title(journal));
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        bail!(
            "an earlier run was cut off and left settings changed or devices attached; run \
             `spindle undo` first"
        );
    }
    say::aside("Put everything back now? [Y/n] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("no answer")?;
    if !matches!(answer.trim(), "" | "y" | "Y" | "yes") {
        bail!("left as it is; `spindle undo` puts it back");
    }
    for journal in pending {
        let report = host::undo(&Host::here(), journal)?;
        say::aside(&report_text(&report));
        if !report.is_complete() {
            bail!("not everything could be put back: see above");
        }
    }
    Ok(())
}

/// Whose journal it is.
fn title(journal: &PendingJournal) -> String {
    let command = journal.reading.started().map_or("a program", |(.., command)| command);
    format!("`{command}` was cut off; its journal is {}", journal.path.display())
}

/// Every step of an undo, a line each.
pub fn report_text(report: &UndoReport) -> String {
    let mut text = String::new();
    if let Some(command) = &report.command {
        text += &format!("Undoing `{command}`:\n");
    }
    for step in &report.steps {
        text += &format!("  {}: {}\n", step.what, step.outcome);
    }
    for unknown in &report.unknown {
        text += &format!("  not known: {unknown}\n");
    }
    if let Some(kept) = &report.kept {
        text += &format!("  the journal is kept: {}\n", kept.display());
    }
    text
}
