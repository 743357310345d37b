//! `spindle inspect`.

use crate::{
    WIDTH,
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    progress::StepProgress,
    say,
};
use anyhow::Context;
use clap::Args;
use host::{BlockDevice, Host, Inspection};
use runner::{DEFAULT_SYNC_TIME, SyncStep};
use std::path::{Path, PathBuf};
use units::Nanos;

/// The flags of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Directory, file or block device; without it, all block devices are listed
    target: Option<PathBuf>,
    /// Skip the second of random reads that tells flash from disk
    #[arg(long)]
    no_probe: bool,
    /// Measure what durability costs in this directory: fsync, fdatasync, O_DSYNC, FUA, buffered; and say what
    /// that tells of the device's cache, of atomic writes and of O_DIRECT without fsync. Writes scratch files of
    /// 128 MiB at most, which are removed, and takes two minutes at most
    #[arg(long)]
    sync: bool,
    /// How long to measure, with --sync
    #[arg(long, value_name = "TIME", requires = "sync", default_value_t = DEFAULT_SYNC_TIME)]
    sync_time: Nanos,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl InspectArgs {
    /// Shows what is known of the target; changes nothing, but for scratch files with `--sync`.
    pub fn run(self) -> anyhow::Result<Exit> {
        let host = Host::here();
        let Some(target) = &self.target else {
            if self.sync {
                let text = "--sync measures in a directory: spindle inspect DIRECTORY --sync";
                return Err(Usage(text.to_owned()).into());
            }
            return self.list(&host);
        };
        if self.sync {
            return self.card(&host, target);
        }
        let inspection = inspect(&host, target, !self.no_probe)?;
        if self.json {
            say::json(&inspection)?;
        } else {
            say::result(&report::inspection(&inspection, WIDTH))?;
        }
        Ok(Exit::Done)
    }

    fn list(&self, host: &Host) -> anyhow::Result<Exit> {
        let devices = BlockDevice::all(host);
        if self.json {
            say::json(&devices)?;
        } else {
            say::result(&report::devices(&devices, WIDTH))?;
            say::line("\nspindle inspect /dev/NAME, or a directory, shows all there is to know.")?;
        }
        Ok(Exit::Done)
    }

    /// The sync card.
    fn card(&self, host: &Host, target: &Path) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        settle_pending()?;
        let inspection = inspect(host, target, !self.no_probe)?;
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let progress = StepProgress::new();
        let mut watch = |step: SyncStep| match step {
            SyncStep::LayingOut => progress.show(0, 1, "writing the scratch files"),
            SyncStep::Measuring { cell, done, steps } => {
                progress.show(done, steps, &report::sync_cell(cell));
            }
        };
        let wanted = (self.sync_time, command.as_str());
        let card = runner::sync_card(host, &inspection, wanted, &stop, &mut watch);
        progress.finish();
        let card = card.with_context(|| format!("no sync card of {}", target.display()))?;
        if self.json {
            say::json(&card)?;
        } else {
            say::result(&report::sync_card(&card, WIDTH))?;
        }
        Ok(Exit::Done)
    }
}

fn inspect(host: &Host, target: &Path, probing: bool) -> anyhow::Result<Inspection> {
    Inspection::of(host, target, probing)
        .with_context(|| format!("cannot inspect {}", target.display()))
}
