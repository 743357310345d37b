//! `spindle fit`: a device profile from reads of a storage.

use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    say,
};
use anyhow::{Context, bail};
use clap::Args;
use device::profile;
use emulate::{DataPlace, Emulation, Wanted};
use fit::{Answers, Fit, Model, Read, Step, Storage};
use host::{Chain, Changes, Host, Setting};
use load::{DirectRead, DirectReads};
use runner::Target;
use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};
use units::{Bytes, Sectors};

/// The flags of `fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// What is read: a block device, a file on it, or emulated:PROFILE or simulated:PROFILE to see how well
    /// a known device is found
    target: String,
    /// Write the profile here, for simulated:FILE and emulated:FILE; the name must end in .toml
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Seed of the places that are read
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

impl FitArgs {
    /// Reads, fits, tells.
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(path) = self.output.as_deref().filter(|path| !is_profile(path)) {
            let what = "a profile's name must end in .toml, or nothing finds it";
            return Err(usage(format!("{}: {what}", path.display())));
        }
        let stop = interrupt::flag()?;
        settle_pending(&stop)?;
        let measured = self.measure(&stop);
        if stop.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
        let (fit, capacity) = measured?;
        if self.json {
            say::json(&report::fitted_json(&self.target, capacity, &fit))?;
        } else {
            say::result(&report::fitted(&self.target, capacity, &fit, crate::WIDTH))?;
        }
        if let Some(path) = &self.output {
            let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
            let text = report::fit_profile(&self.target, &host, &fit)?;
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
            say::note(&format!(
                "wrote {0}; what if: spindle compare simulated:{0} --queues 32,1024",
                path.display()
            ));
        }
        Ok(Exit::Done)
    }

    fn measure(&self, stop: &AtomicBool) -> anyhow::Result<(Fit, Bytes)> {
        match Target::parse(&self.target)? {
            Target::Simulated(target) => {
                let profile = profile::load(&target.profile).map_err(usage)?;
                self.fit(&mut Model::new(profile.build(self.seed).map_err(usage)?))
            }
            Target::Emulated(target) => self.fit_emulated(&target.profile, stop),
            Target::File(path) | Target::BlockDevice(path) => self.fit_path(&path, stop),
            Target::Directory(_) => {
                let what = "is a directory: name a block device, or a file of 1 GiB or more on it";
                Err(usage(format!("{} {what}", self.target)))
            }
            Target::Imported(_) => {
                let what = "what other programs printed holds no reads at chosen places";
                Err(usage(format!("{}: {what}", self.target)))
            }
        }
    }

    fn fit<S: Storage>(&self, storage: &mut S) -> anyhow::Result<(Fit, Bytes)> {
        let capacity = storage.capacity().bytes();
        let mut watch = |step: Step| {
            if !self.quiet && !self.json {
                say::aside(&format!("{}\n", step_words(step)));
            }
        };
        Ok((fit::fit(storage, self.seed, &mut watch)?, capacity))
    }

    fn fit_emulated(&self, profile: &str, stop: &AtomicBool) -> anyhow::Result<(Fit, Bytes)> {
        let state = host::state_folder()?;
        std::fs::create_dir_all(&state).with_context(|| state.display().to_string())?;
        let mut changes = Changes::begin(&Host::here(), "spindle fit")?;
        let wanted = Wanted {
            program: std::env::current_exe().context("cannot find this program's own file")?,
            arguments: vec![emulate::SERVER_VERB.to_owned()],
            profile: profile.to_owned(),
            seed: self.seed,
            size: None,
            data: DataPlace::Scratch(state),
            transport: None,
            pauses: None,
        };
        let emulation = Emulation::start(&mut changes, &wanted)?;
        let node = emulation.node.clone();
        let fitted = emulation
            .use_own_tags(&mut changes)
            .map_err(anyhow::Error::from)
            .and_then(|()| self.fit(&mut Kernel::open(&node, stop)?));
        drop(emulation);
        ended(changes, fitted)
    }

    /// Without a scheduler for so long: the order of service is the device's own.
    fn fit_path(&self, path: &Path, stop: &AtomicBool) -> anyhow::Result<(Fit, Bytes)> {
        let mut kernel = Kernel::open(path, stop)?;
        let host = Host::here();
        let chain = Chain::of(&host, path)?;
        let mut changes = Changes::begin(&host, "spindle fit")?;
        let fitted = chain
            .varied_devices()
            .try_for_each(|device| {
                changes.set(device.number, &Setting::Scheduler, "none").map(drop)
            })
            .context("its scheduler would order the reads before the device does")
            .and_then(|()| self.fit(&mut kernel));
        ended(changes, fitted)
    }
}

/// What was fitted, once everything is as it was.
fn ended(changes: Changes, fitted: anyhow::Result<(Fit, Bytes)>) -> anyhow::Result<(Fit, Bytes)> {
    let report = changes.finish()?;
    if !report.is_complete() {
        say::aside(&crate::pending::report_text(&report));
        bail!("not everything could be put back; `spindle undo` tries again");
    }
    fitted
}

fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml")
}

/// What somebody wrote wrong: exit code 2.
fn usage(error: impl std::fmt::Display) -> anyhow::Error {
    Usage(error.to_string()).into()
}

fn step_words(step: Step) -> &'static str {
    match step {
        Step::Kind => "random reads: does anything move?",
        Step::Command => "reads of what the drive's buffer has",
        Step::Seeks => "reads at chosen distances",
        Step::Turn => "reads of the block before the last",
        Step::Rates => "sequential reads",
        Step::Depths => "random reads, from one to hundreds outstanding",
        Step::Buffer => "what the drive's buffer keeps",
        Step::Sizes => "random reads of rising sizes",
        Step::Models => "which models explain it",
        Step::Cells => "reads that the fit does not know",
    }
}

/// A file or device under this host's kernel.
struct Kernel<'a> {
    reads: DirectReads,
    capacity: Sectors,
    stop: &'a AtomicBool,
}

impl<'a> Kernel<'a> {
    fn open(path: &Path, stop: &'a AtomicBool) -> anyhow::Result<Kernel<'a>> {
        let name = path.display();
        let mut file = File::open(path).with_context(|| name.to_string())?;
        let about = file.metadata()?;
        let length = file.seek(SeekFrom::End(0))?;
        if about.is_file() && about.blocks() * 512 < length {
            bail!(
                "{name} has holes, which are answered without the device: write all of it first, as in \
                 dd if=/dev/urandom of={name} bs=1M count={}",
                length >> 20
            );
        }
        let reads = DirectReads::open(path).with_context(|| format!("{name}: direct I/O"))?;
        Ok(Kernel { reads, capacity: Sectors(length / 512), stop })
    }
}

impl Storage for Kernel<'_> {
    type Error = io::Error;

    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn read(&mut self, reads: &[Read], depth: u32) -> io::Result<Answers> {
        // Some seconds of reads, then a look at whether the user has had enough. Many at a time are never let
        // run dry.
        const AT_ONCE: usize = 500;
        let mut answers = Answers::default();
        for part in reads.chunks(if depth == 1 { AT_ONCE } else { reads.len().max(1) }) {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
            }
            let direct: Vec<DirectRead> = part
                .iter()
                .map(|read| DirectRead {
                    offset: read.start * 512,
                    length: read.count * 512,
                    pause: read.pause.as_duration(),
                })
                .collect();
            let (times, elapsed) = self.reads.send(&direct, depth)?;
            answers.times.extend(times);
            answers.elapsed += elapsed;
        }
        Ok(answers)
    }
}
