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
use host::{BlockDevice, Chain, Changes, DeviceNumber, Host, Inspection, ProcessRecord, Watch};
use runner::{DEFAULT_SYNC_TIME, SyncStep};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use units::Nanos;

/// How often values are looked at that move without a write that can be seen.
const WATCH_STEP: Duration = Duration::from_millis(500);

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
    /// Name each process that writes a setting of the devices below the target, as it writes it, until Ctrl-C.
    /// Needs root; changes nothing
    #[arg(long, conflicts_with_all = ["sync", "no_probe"])]
    watch: bool,
    /// How long to watch, with --watch; without it, until Ctrl-C
    #[arg(long, value_name = "TIME", requires = "watch")]
    watch_time: Option<Nanos>,
    /// Print as JSON; with --watch, a line each write
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
            if self.watch {
                let text = "--watch needs a device: spindle inspect /dev/NAME --watch";
                return Err(Usage(text.to_owned()).into());
            }
            return self.list(&host);
        };
        if self.sync {
            return self.card(&host, target);
        }
        if self.watch {
            return self.watch(&host, target);
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

    /// Tells of each write until it is interrupted or the time is over.
    fn watch(&self, host: &Host, target: &Path) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        settle_pending(&stop)?;
        let chain = Chain::of(host, target)
            .with_context(|| format!("cannot inspect {}", target.display()))?;
        let devices: Vec<DeviceNumber> = chain
            .devices()
            .filter(|device| device.queue.is_some())
            .map(|device| device.number)
            .collect();
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let mut changes = Changes::begin(host, &command)?;
        let record = match changes.record_processes() {
            Ok(record) => Some(Arc::new(record)),
            Err(error) => {
                say::note(&format!("processes that end at once may go without a name: {error}"));
                None
            }
        };
        let watched = self.tell_writes(host, &devices, record, &stop);
        let report = changes.finish()?;
        if !report.is_complete() {
            say::note("something of the kernel's tracing is left: spindle undo");
        }
        watched.map(|()| Exit::Done)
    }

    fn tell_writes(
        &self,
        host: &Host,
        devices: &[DeviceNumber],
        record: Option<Arc<ProcessRecord>>,
        stop: &AtomicBool,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut watch = Watch::begin(host, devices, record)?;
        let (names, settings) = watch.what();
        say::note(&format!("watching {settings} settings of {}", names.join(", ")));
        let end = self.watch_time.map(|time| begun + Duration::from_nanos(time.0));
        while !stop.load(Ordering::Relaxed) && end.is_none_or(|end| Instant::now() < end) {
            let left = end.map_or(WATCH_STEP, |end| end.saturating_duration_since(Instant::now()));
            for write in watch.wait(left.min(WATCH_STEP))? {
                match self.json {
                    true => say::line(&serde_json::to_string(&write)?)?,
                    false => say::line(&report::setting_write(&write))?,
                }
            }
        }
        Ok(())
    }

    /// The sync card.
    fn card(&self, host: &Host, target: &Path) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        settle_pending(&stop)?;
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
