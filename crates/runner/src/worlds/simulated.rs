//! The simulated world: a device profile behind a kernel level's block layer, in virtual time.

mod together;

use crate::{Goon, Live, Measured, Phase, Wanted, Watcher, World, WorldError};
use blocklayer::{Config, Kernel};
use device::{
    Profile,
    profile::{self, Kind},
};
use plan::{Cell, Factor, Level, Offer, Plan, RawPlan};
use record::{Environment, Measurement};
use simulate::{Progress, SimulateError, Spec, TURNAROUND_USUAL, refuse_job};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};
use units::{Bytes, Nanos, Sectors};

/// The words in front of a profile's name.
pub const PREFIX: &str = "simulated:";

/// The kernel level when nothing is said.
const KERNEL_USUAL: Kernel = Kernel::V6_12;

/// A device that takes more commands than this at once is taken for one with several hardware
/// queues: no SCSI or SATA queue is so deep.
const ONE_QUEUE_DEPTH: u32 = 256;

/// Hardware queues of such a device.
const NVME_QUEUES: u32 = 8;

/// Requests whose lives an event log keeps at most: some megabytes of a run file a cell.
const LOG_MOST: u32 = 20_000;

/// A profile behind a block layer.
pub struct SimulatedWorld {
    profile: Profile,
    kernel: Kernel,
    turnaround: Nanos,
    capacity: Sectors,
    depth: u32,
    /// Trials that run at once.
    threads: usize,
    /// The settings that hold, once a cell was applied.
    applied: Option<Config>,
}

impl SimulatedWorld {
    /// Of `simulated:PROFILE`, `simulated:PROFILE@KERNEL`, either with `,turnaround=20us`.
    pub fn open(target: &str, raw: &RawPlan) -> Result<SimulatedWorld, WorldError> {
        let words = target.strip_prefix(PREFIX).unwrap_or(target);
        let (words, turnaround) = turnaround_of(words)?;
        let (name, kernel) = match words.rsplit_once('@') {
            Some((name, level)) => (name, level.parse().map_err(usage)?),
            None => (words, KERNEL_USUAL),
        };
        for (named, what) in [
            (raw.own_loop == Some(true), "a loop device stands before real disks only"),
            (raw.page_cache.is_some(), "this version does not model the page cache"),
        ] {
            if named {
                return Err(WorldError::Usage(format!("{target}: {what}: leave that flag out")));
            }
        }
        let profile = profile::load(name).map_err(usage)?;
        let device = profile.build(0).map_err(usage)?;
        Ok(SimulatedWorld {
            kernel,
            turnaround,
            capacity: device.capacity(),
            depth: device.queue_depth(),
            threads: together::threads(raw)?,
            applied: None,
            profile,
        })
    }

    /// The queue as this kernel begins with it.
    fn usual(&self) -> Config {
        let mut config = Config::new(self.kernel, self.depth);
        config.rotational = rotates(&self.profile);
        if self.depth > ONE_QUEUE_DEPTH {
            config.hardware_queues = NVME_QUEUES;
        }
        config
    }

    /// The queue that a cell asks for.
    fn config(&self, cell: &Cell) -> Result<Config, String> {
        let mut config = self.usual();
        for (factor, Level(text)) in cell.host_settings() {
            let number =
                || text.parse().map_err(|_| format!("{factor} '{text}' is not a whole number"));
            match factor {
                Factor::Scheduler => config.scheduler = Some(text.clone()),
                Factor::NrRequests => {
                    let value = text.parse().map_err(|_| {
                        format!("{factor} '{text}' is not a whole number below 2^32")
                    })?;
                    config.nr_requests = Some(value);
                }
                Factor::Tunable { name, .. } => {
                    config.tunables.insert(name.clone(), number()?);
                }
                _ => {}
            }
        }
        config.resolve().map_err(|error| error.to_string())?;
        Ok(config)
    }
}

impl SimulatedWorld {
    /// One trial. It depends on nothing but what it is given.
    fn simulate(
        &self,
        plan: &Plan,
        cell: &Cell,
        seed: u64,
        stop: &AtomicBool,
        each_second: &mut dyn FnMut(&Progress),
    ) -> Result<Measurement, WorldError> {
        let trial = |error: &dyn std::fmt::Display| WorldError::Trial(error.to_string());
        let (workload, _) = plan.workload_of(cell).map_err(|error| trial(&error))?;
        let config = self.config(cell).map_err(WorldError::Trial)?;
        // As new for each trial: what one leaves behind in a cache is nothing to the next.
        let device = self.profile.build(seed).map_err(|error| trial(&error))?;
        let spec = Spec {
            workload: &workload,
            queue: &config,
            span: plan.size.sectors(),
            warmup: plan.timing.warmup,
            measure: plan.timing.measure,
            turnaround: self.turnaround,
            seed,
            // The first round's first trial of each cell has the plan's own seed.
            log_requests: if plan.events && seed == plan.seed { LOG_MOST } else { 0 },
        };
        let simulated = simulate::run(&spec, device, stop, each_second);
        match simulated {
            Ok(simulated) => Ok(simulated.measurement),
            Err(SimulateError::Stopped) => Err(WorldError::Interrupted),
            Err(_) if stop.load(Ordering::Relaxed) => Err(WorldError::Interrupted),
            Err(error) => Err(trial(&error)),
        }
    }
}

/// Splits `,turnaround=20us` off.
fn turnaround_of(words: &str) -> Result<(&str, Nanos), WorldError> {
    let Some((rest, option)) = words.split_once(',') else { return Ok((words, TURNAROUND_USUAL)) };
    let turnaround = match option.split_once('=') {
        Some(("turnaround", time)) => time.parse::<Nanos>().map_err(usage)?,
        _ => {
            return Err(WorldError::Usage(format!(
                "'{option}' behind a profile is not known: write \
                 simulated:{rest},turnaround=20us, or leave it out"
            )));
        }
    };
    match turnaround <= Nanos::from_secs(1) {
        true => Ok((rest, turnaround)),
        false => Err(WorldError::Usage(format!(
            "a turnaround of {turnaround} between a completion and the next request is above 1 s; \
             to offer less load, use --rates"
        ))),
    }
}

/// Whether the kernel takes it for a disk: an array shows what its drives are.
fn rotates(profile: &Profile) -> bool {
    match &profile.kind {
        Kind::Disk(_) => true,
        Kind::Flash(_) => false,
        Kind::Array { member, .. } => rotates(member),
    }
}

/// What a real host has and this version does not model.
fn missing() -> BTreeMap<Factor, String> {
    let reasons = [
        (Factor::Filesystem, "the simulated world is a raw device: filesystems are not modelled"),
        (
            Factor::WbtLatUsec,
            "the simulated world does not model write-back throttling: nothing is written back",
        ),
        (
            Factor::ReadAheadKb,
            "the simulated world does not model the kernel's read-ahead: there is no page cache \
             (a drive's own read-ahead is in its profile)",
        ),
        (
            Factor::Engine,
            "no engine makes the load in the simulated world: its clients are simulated too",
        ),
    ];
    reasons.into_iter().map(|(factor, reason)| (factor, reason.to_owned())).collect()
}

impl World for SimulatedWorld {
    fn offer(&mut self) -> Result<Offer, WorldError> {
        let usual = self.usual().resolve().map_err(usage)?;
        let schedulers = self.kernel.schedulers();
        let mut current = BTreeMap::from([
            (Factor::Scheduler, level(usual.scheduler)),
            (Factor::NrRequests, level(usual.nr_requests)),
        ]);
        for (name, value) in usual.tunables.iter() {
            let scheduler = usual.scheduler.to_owned();
            current.insert(Factor::Tunable { scheduler, name: name.to_owned() }, level(value));
        }
        let capacity = self.capacity.bytes();
        Ok(Offer {
            current,
            all: [(Factor::Scheduler, schedulers.iter().map(level).collect())].into(),
            missing: missing(),
            size_limit: Some((capacity, format!("{} has {capacity}", self.profile.name))),
            size_usual: capacity,
            own_loop: false,
            // Nothing is laid out.
            layout_bytes_per_second: 0,
        })
    }

    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<String> {
        if let Err(reason) = self.config(cell) {
            return Some(reason);
        }
        let workload = match plan.workload_of(cell) {
            Ok((workload, _)) => workload,
            Err(error) => return Some(error.to_string()),
        };
        if workload.database.is_some() {
            return Some(
                "this version does not simulate databases: compare them on a directory or a block \
                 device"
                    .to_owned(),
            );
        }
        [Some(&workload.job), workload.background.as_ref()].into_iter().flatten().find_map(|job| {
            refuse_job(job).or_else(|| {
                (job.block_size > plan.size).then(|| {
                    format!("a block of {} does not fit into {}", job.block_size, plan.size)
                })
            })
        })
    }

    fn intentions(&self, _: &Plan) -> Vec<String> {
        vec![format!(
            "simulate {} behind the block layer of Linux {}, in virtual time; this host's storage \
             is not touched",
            self.profile.name, self.kernel
        )]
    }

    fn describe(&mut self, plan: &Plan) -> Result<Environment, WorldError> {
        let usual = self.usual().resolve().map_err(usage)?;
        let mut settings = settings_of(&usual);
        settings.push(("turnaround".to_owned(), self.turnaround.to_string()));
        Ok(Environment {
            world: "simulated".to_owned(),
            spindle_version: env!("CARGO_PKG_VERSION").to_owned(),
            hostname: "simulated".to_owned(),
            kernel: self.kernel.to_string(),
            cpu: "simulated without limit".to_owned(),
            cpus: 0,
            memory_bytes: 0,
            target: plan.target.clone(),
            device: format!(
                "{} ({}, {})",
                self.profile.name,
                self.profile.kind_name(),
                self.capacity.bytes()
            ),
            settings,
            caveats: vec![format!(
                "models computed these figures, in virtual time; between a completion and its next \
                 request a client takes {}",
                self.turnaround
            )],
            inspection: serde_json::json!({
                "profile": self.profile.name,
                "title": self.profile.title,
                "notes": self.profile.notes,
                "text": self.profile.text,
                "kernel": self.kernel.name(),
                "turnaround_ns": self.turnaround.0,
            }),
        })
    }

    fn prepare(&mut self, _: &Plan, _: &AtomicBool, _: &mut dyn Watcher) -> Result<(), WorldError> {
        Ok(())
    }

    fn apply(&mut self, _: &Plan, cell: &Cell) -> Result<(), WorldError> {
        self.applied = Some(self.config(cell).map_err(WorldError::Trial)?);
        Ok(())
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        let config = self.applied.clone().unwrap_or_else(|| self.usual());
        Ok(settings_of(&config.resolve().map_err(usage)?))
    }

    fn measure(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        seed: u64,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        self.simulate(plan, cell, seed, stop, &mut |progress| {
            watcher.live(&live_of(progress, plan.timing.warmup));
        })
    }

    fn at_once(&self) -> usize {
        self.threads
    }

    fn measure_all(
        &mut self,
        plan: &Plan,
        trials: &[Wanted],
        stop: &AtomicBool,
        done: &mut dyn FnMut(usize, Measured) -> Goon,
    ) {
        together::measure_all(self, plan, trials, stop, done);
    }

    fn restore(&mut self) -> Result<(), WorldError> {
        Ok(())
    }
}

/// By the kernel's names, as they stand below a device's `queue` folder.
fn settings_of(config: &blocklayer::Resolved) -> Vec<(String, String)> {
    let mut settings = vec![
        ("scheduler".to_owned(), config.scheduler.to_owned()),
        ("nr_requests".to_owned(), config.nr_requests.to_string()),
        ("max_sectors_kb".to_owned(), (config.max_sectors / 2).to_string()),
        ("nomerges".to_owned(), config.nomerges.to_string()),
        ("rotational".to_owned(), u8::from(config.rotational).to_string()),
        ("device/queue_depth".to_owned(), config.depth.to_string()),
    ];
    let tunables = config.tunables.iter();
    settings.extend(tunables.map(|(name, value)| (format!("iosched/{name}"), value.to_string())));
    settings
}

fn live_of(progress: &Progress, warmup: Nanos) -> Live {
    let second = &progress.second;
    let length = progress.length.as_secs_f64().max(1e-9);
    let (phase, since) = match second.at <= 0.0 {
        true => (Phase::WarmUp, second.at + warmup.as_secs_f64()),
        false => (Phase::Measuring, second.at),
    };
    let Bytes(bytes) = second.bytes;
    Live {
        phase,
        since: Nanos::from_secs_f64(since),
        operations_per_second: (second.reads + second.writes) as f64 / length,
        bytes_per_second: bytes as f64 / length,
        p99: second.p99,
    }
}

fn level(value: impl ToString) -> Level {
    Level(value.to_string())
}

/// The user's words do not fit.
fn usage(error: impl std::fmt::Display) -> WorldError {
    WorldError::Usage(error.to_string())
}
