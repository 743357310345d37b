//! What an earlier program that was cut off left changed: offered to be put back before anything
//! new begins.

use crate::say;
use anyhow::{Context, bail};
use host::{Host, PendingJournal, Step, UndoReport};
use runner::WorldError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    io::{BufRead, IsTerminal},
    sync::atomic::{AtomicBool, Ordering},
};

/// Asks at a terminal whether to undo; elsewhere refuses to begin, because a baseline that somebody
/// else left behind is none.
pub fn settle_pending(stop: &AtomicBool) -> anyhow::Result<()> {
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
    let answer = answer(stop)?;
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

/// A line that somebody types; neither Ctrl-C, Ctrl-D nor a terminal that was closed is one.
fn answer(stop: &AtomicBool) -> anyhow::Result<String> {
    let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    let stdin = std::io::stdin();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(WorldError::Interrupted.into());
        }
        let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut waiting, Some(&patience)).context("no answer")? > 0 {
            break;
        }
    }
    let mut answer = String::new();
    match stdin.lock().read_line(&mut answer).context("no answer")? {
        0 => bail!("no answer: left as it is; `spindle undo` puts it back"),
        _ => Ok(answer),
    }
}

/// Whose journal it is.
fn title(journal: &PendingJournal) -> String {
    let command = journal.reading.started().map_or("a program", |(.., command)| command);
    format!("`{command}` was cut off; its journal is {}", journal.path.display())
}

/// Every step of an undo, a line each.
pub fn report_text(report: &UndoReport) -> String {
    let command = report.command.as_deref().unwrap_or("a run whose command cannot be read");
    let mut text = report::wrap(&format!("Undoing: {command}"), crate::WIDTH, 2) + "\n";
    let mut line = |words: String| {
        text += &format!("  {}\n", report::wrap(&words, crate::WIDTH - 2, 4));
    };
    for Step { what, change, outcome } in &report.steps {
        let change = if change.is_empty() { String::new() } else { format!(" {change}") };
        line(format!("{what}{change}: {outcome}"));
    }
    if let Some(host) = &report.other_host {
        line(format!("it is of host {host}: left alone, run `spindle undo` there"));
        return text;
    }
    if report.steps.is_empty() {
        line("it had changed nothing that is known".to_owned());
    }
    for unknown in &report.unknown {
        line(format!("not known: {unknown}"));
    }
    line(match &report.kept {
        Some(kept) => format!("its journal is kept: {}", kept.display()),
        None => "everything is as it was".to_owned(),
    });
    text
}
