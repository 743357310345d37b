//! `spindle reverse`, which `apply --for` starts: takes settings back that nobody confirmed.

use super::apply::now;
use crate::{exit::Exit, interrupt};
use clap::Args;
use host::{Expired, Host};
use std::{
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

/// The flags of `reverse`.
#[derive(Debug, Args)]
pub struct ReverseArgs {
    /// The journal's name
    journal: String,
    /// Wait for so many seconds before
    #[arg(long, value_name = "SECONDS")]
    after: Option<u64>,
}

impl ReverseArgs {
    /// Waits, and takes the settings back unless they were confirmed or are gone.
    pub fn run(self) -> anyhow::Result<Exit> {
        let folder = host::state_folder()?;
        if let Some(seconds) = self.after {
            // Away from the terminal, whose end would be ours. A leader of a session is one already.
            let _leader_already = rustix::process::setsid();
            if !self.wait(&folder, Duration::from_secs(seconds)) {
                return Ok(Exit::Done);
            }
        }
        // From here on a signal does not stop it half way; before, it ended what only waits.
        interrupt::hold()?;
        let ours = |path: &Path| path.file_stem().is_some_and(|stem| *stem == *self.journal);
        let host = Host::here();
        for applied in host::applied(&folder)? {
            if ours(&applied.path)
                && !applied.confirmed
                && let Some(journal) = applied.take()?
            {
                let undone = host::undo(&host, journal)?;
                if undone.is_complete() {
                    Expired::note(&folder, &applied.application, now())?;
                }
            }
        }
        // Of a program that was cut off before it was done.
        for journal in host::pending(&folder)? {
            if ours(&journal.path) {
                host::undo(&host, journal)?;
            }
        }
        Ok(Exit::Done)
    }

    /// Whether the journal is still there after the time.
    fn wait(&self, folder: &Path, time: Duration) -> bool {
        let begun = Instant::now();
        let there = |ending: &str| folder.join(format!("{}.{ending}", self.journal)).exists();
        while begun.elapsed() < time {
            if !there("journal") && !there("applied") {
                return false;
            }
            sleep(time.saturating_sub(begun.elapsed()).min(Duration::from_millis(500)));
        }
        true
    }
}
