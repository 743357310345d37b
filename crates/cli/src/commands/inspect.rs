//! `spindle inspect`.

use crate::{WIDTH, exit::Exit, say};
use anyhow::Context;
use clap::Args;
use host::{BlockDevice, Host, Inspection};
use std::path::PathBuf;

/// The flags of `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Directory, file or block device; without it, all block devices are listed
    target: Option<PathBuf>,
    /// Skip the second of random reads that tells flash from disk
    #[arg(long)]
    no_probe: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl InspectArgs {
    /// Shows what is known of the target; changes nothing.
    pub fn run(self) -> anyhow::Result<Exit> {
        let host = Host::here();
        let Some(target) = self.target else {
            let devices = BlockDevice::all(&host);
            if self.json {
                say::json(&devices)?;
            } else {
                say::result(&report::devices(&devices, WIDTH))?;
                say::line(
                    "\nspindle inspect /dev/NAME, or a directory, shows all there is to know.",
                )?;
            }
            return Ok(Exit::Done);
        };
        let inspection = Inspection::of(&host, &target, !self.no_probe)
            .with_context(|| format!("cannot inspect {}", target.display()))?;
        if self.json {
            say::json(&inspection)?;
        } else {
            say::result(&report::inspection(&inspection, WIDTH))?;
        }
        Ok(Exit::Done)
    }
}
