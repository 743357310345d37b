//! The simulated world: a device profile behind a kernel level's block layer, in virtual time.

mod target;
mod together;

pub use target::SimulatedTarget;

use super::recorded;
use crate::{Measured, Options, Session, Watcher, World, WorldError};
use blocklayer::Config;
use device::{
    Device, Profile, SpecError,
    profile::{self, Kind},
};
use plan::{Cell, Factor, Intention, Level, Mechanism, Offer, Plan, Refusal, SizeLimit, Without};
use record::{Caveat, Environment, Measurement, TrialId, WorldKind};
use scheduler::SchedulerKind;
use simulate::{
    Chance, DEFAULT_PAGE_CACHE, DEFAULT_READ_AHEAD, Database, Interleaved, JOURNAL, MIN_PAGE_CACHE,
    Progress, SimulateError, Spec, Stack, Striping, Transport, TransportDelay, refuse_filesystem,
    run_striped,
};
use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering},
};
use target::chance_text;
use units::{Bytes, Nanos, Sectors};
use workload::{Live, Order, Phase};

/// A device that takes more commands than this at once is taken for one with several hardware
/// queues: no SCSI or SATA queue is so deep.
const ONE_QUEUE_DEPTH: u32 = 256;

/// Hardware queues of such a device.
const NVME_QUEUES: u32 = 8;

/// Requests whose lives an event log keeps at most: some megabytes of a run file a cell.
const MAX_LOGGED_REQUESTS: u32 = 20_000;

/// `wbt_lat_usec` as the kernel begins with it: before a disk, and before anything else.
const DEFAULT_WBT_USEC: [u64; 2] = [75_000, 2_000];

/// A profile behind a block layer.
pub struct SimulatedWorld {
    profile: Profile,
    target: SimulatedTarget,
    capacity: Sectors,
    depth: u32,
    /// What is replayed in place of a job.
    trace: Option<trace::Trace>,
    /// Trials that run at once.
    threads: usize,
    /// A filesystem is made in every cell or in some.
    filesystems: bool,
}

/// Trials of one plan.
struct SimulatedSession<'a> {
    world: &'a SimulatedWorld,
    plan: &'a Plan,
    /// The settings of the last cell that was applied.
    applied: Option<Queue>,
}

/// The settings of a cell: the queue's, and those of what lies above it.
#[derive(Clone)]
struct Queue {
    config: Config,
    read_ahead_kib: u64,
    wbt_usec: u64,
    without: Without,
}

impl SimulatedWorld {
    /// Loads the profile, and the trace that is replayed.
    pub fn open(target: &SimulatedTarget, options: &Options) -> Result<SimulatedWorld, WorldError> {
        if options.own_loop {
            return Err(WorldError::usage(format!(
                "{target}: --loop is for real disks only: leave it out"
            )));
        }
        if let Some(cache) = options.page_cache.filter(|cache| *cache < MIN_PAGE_CACHE) {
            return Err(WorldError::usage(format!(
                "a page cache of {cache} is too small: use at least {MIN_PAGE_CACHE}"
            )));
        }
        let profile = profile::load(&target.profile).map_err(WorldError::usage)?;
        target.check(&profile)?;
        let mut world = SimulatedWorld {
            capacity: Sectors(0),
            depth: 0,
            trace: options.replay.as_ref().map(recorded::load).transpose()?,
            threads: together::threads(options)?,
            filesystems: options.makes_filesystems,
            profile,
            target: target.clone(),
        };
        let (devices, _) = world.devices(0, &Without::default()).map_err(WorldError::usage)?;
        world.capacity = Sectors(devices.iter().map(|device| device.capacity().0).sum());
        let depth = devices.first().map_or(1, |device| device.queue_depth());
        world.depth = world.target.depth.map_or(depth, |most| most.min(depth));
        Ok(world)
    }

    /// The devices, as new; several where the host stripes an array's drives itself.
    #[allow(clippy::type_complexity)]
    fn devices(
        &self,
        seed: u64,
        without: &Without,
    ) -> Result<(Vec<Box<dyn Device>>, Option<Striping>), SpecError> {
        let rotates = !without.has(Mechanism::Rotation);
        let mut profile = self.profile.clone();
        if let Kind::Array { spec, drives, member } = &mut profile.kind {
            if self.target.lvm {
                let unit = Sectors(spec.stripe_unit);
                let drives = member.build_several(*drives, seed, rotates)?;
                return Ok((drives, Some(Striping { unit })));
            }
            if without.has(Mechanism::ColdDrives) {
                spec.depth = UNLIMITED;
            }
        }
        let device = profile.build_with(seed, rotates)?;
        Ok(match self.target.delay == TransportDelay::default() {
            true => (vec![device], None),
            false => (vec![Box::new(Transport::new(device, self.target.delay, seed))], None),
        })
    }

    /// The queue of a new device under this kernel.
    fn default_queue(&self) -> Queue {
        let mut config = Config::new(self.target.kernel, self.depth);
        config.rotational = self.profile.rotates();
        config.tag_waiters_share = self.target.tag_waiters_share;
        config.tags_seen = self.target.tags_seen;
        config.fua = !self.target.delay.is_loop;
        if self.depth > ONE_QUEUE_DEPTH {
            config.hardware_queues = NVME_QUEUES;
        }
        Queue {
            read_ahead_kib: DEFAULT_READ_AHEAD.0 / 1024,
            wbt_usec: DEFAULT_WBT_USEC[usize::from(!config.rotational)],
            without: Without::default(),
            config,
        }
    }

    /// The settings that a cell asks for.
    fn queue(&self, cell: &Cell) -> Result<Queue, Refusal> {
        let mut queue = self.default_queue();
        let config = &mut queue.config;
        let mut wbt = None;
        for (factor, Level(text)) in &cell.levels {
            let refused =
                |message: String| Refusal::Setting { setting: factor.to_string(), message };
            let number = || {
                text.parse()
                    .map_err(|_| refused(format!("{factor} '{text}' is not a whole number")))
            };
            match factor {
                Factor::Scheduler => config.scheduler = Some(text.clone()),
                Factor::NrRequests => {
                    let value = text.parse().map_err(|_| {
                        refused(format!("{factor} '{text}' is not a whole number below 2^32"))
                    })?;
                    config.nr_requests = Some(value);
                }
                Factor::Tunable { name, .. } => {
                    config.tunables.insert(name.clone(), number()?);
                }
                Factor::ReadAheadKb => queue.read_ahead_kib = number()?,
                // What is too large for the queue is refused with it.
                Factor::Nomerges => config.nomerges = u8::try_from(number()?).unwrap_or(u8::MAX),
                Factor::WbtLatUsec => wbt = Some(number()?),
                Factor::Without => {
                    queue.without = text
                        .parse()
                        .map_err(|error: workload::WordError| refused(error.to_string()))?;
                }
                _ => {}
            }
        }
        if queue.without.has(Mechanism::Merging) {
            config.nomerges = 2;
        }
        config.waiting = !queue.without.has(Mechanism::Waiting);
        config.sorting = !queue.without.has(Mechanism::Sorting);
        if queue.without.has(Mechanism::ColdDrives) {
            config.depth = UNLIMITED;
        }
        let resolved = config.resolve().map_err(|error| Refusal::Setting {
            setting: "queue".to_owned(),
            message: error.to_string(),
        })?;
        // Entering bfq turns throttling off, unless it was set by hand.
        let default = if resolved.scheduler == SchedulerKind::Bfq { 0 } else { queue.wbt_usec };
        queue.wbt_usec = wbt.unwrap_or(default);
        Ok(queue)
    }

    /// Why a mechanism that this target does not have cannot be switched off.
    fn refuse_without(&self, without: &Without) -> Option<Refusal> {
        let array = matches!(self.profile.kind, Kind::Array { .. }) && !self.target.lvm;
        let missing =
            [(Mechanism::ColdDrives, array), (Mechanism::Rotation, self.profile.rotates())];
        let (mechanism, _) =
            missing.into_iter().find(|(mechanism, has)| without.has(*mechanism) && !has)?;
        Some(Refusal::NoSuchMechanism {
            device: self.profile.name.clone(),
            mechanism: mechanism.to_string(),
        })
    }

    fn stack(&self, plan: &Plan, cell: &Cell, queue: &Queue) -> Result<Stack, workload::WordError> {
        let filesystem = match cell.level(&Factor::Filesystem) {
            Some(Level(word)) => Some(word.parse()?),
            None => None,
        };
        Ok(Stack {
            page_cache: plan.page_cache.unwrap_or(DEFAULT_PAGE_CACHE),
            read_ahead: Bytes::from_kib(queue.read_ahead_kib),
            wbt: Nanos::from_micros(queue.wbt_usec),
            interleaved: self.interleaved(plan, cell, filesystem.is_some())?,
            filesystem,
            without: queue.without.clone(),
        })
    }

    /// How the clients' files lie.
    fn interleaved(
        &self,
        plan: &Plan,
        cell: &Cell,
        has_files: bool,
    ) -> Result<Option<Interleaved>, workload::WordError> {
        let Some(piece) = self.target.interleaved else { return Ok(None) };
        let (workload, _) = plan.workload_of(cell)?;
        if !has_files || workload.database.is_some() {
            return Err(workload::WordError::new(format!(
                "interleaved={piece} is about the clients' files: it takes a filesystem (--filesystems xfs) and no database"
            )));
        }
        let streams = match workload.job.pattern.order {
            Order::Sequential { streams } => streams,
            Order::Random => 1,
        };
        let files = u64::from(workload.job.clients) * u64::from(streams);
        Interleaved::new(files, plan.size.sectors(), piece).map(Some).ok_or_else(|| {
            workload::WordError::new(format!(
                "interleaved={piece}: {files} sequences in {} do not take turns in such pieces: it takes two or more, and \
                 pieces from 4 KiB to the size of each one's part",
                plan.size
            ))
        })
    }

    /// Factors that cannot be set here, and why.
    fn missing(&self) -> BTreeMap<Factor, Refusal> {
        let mut missing = BTreeMap::from([
            (Factor::Engine, Refusal::NoEngineWhenSimulated),
            (Factor::AsyncDepth, Refusal::AsyncDepthNotSimulated),
            (Factor::RqAffinity, Refusal::ProcessorsNotSimulated),
        ]);
        if !self.target.kernel.multi_queue() {
            let refusal = Refusal::NotInKernel {
                modelled: "6.12 and 6.18".to_owned(),
                kernel: self.target.kernel.to_string(),
            };
            missing.insert(Factor::WbtLatUsec, refusal);
        }
        missing
    }
}

impl SimulatedWorld {
    /// Whether a cell is possible.
    fn check(&self, plan: &Plan, cell: &Cell) -> Result<(), Refusal> {
        let workload_error = |message: String| Refusal::Workload { message };
        recorded::check(self.trace.as_ref(), plan, cell)?;
        let queue = self.queue(cell)?;
        if let Some(refusal) = self.refuse_without(&queue.without) {
            return Err(refusal);
        }
        let filesystem = cell.level(&Factor::Filesystem).map(|Level(word)| word.parse());
        if let Some(Ok(filesystem)) = filesystem
            && let Some(refusal) = refuse_filesystem(&filesystem)
        {
            return Err(refusal);
        }
        self.interleaved(plan, cell, cell.level(&Factor::Filesystem).is_some())
            .map_err(|error| workload_error(error.to_string()))?;
        let (workload, _) =
            plan.workload_of(cell).map_err(|error| workload_error(error.to_string()))?;
        Database::of(&workload).map_err(|error| workload_error(error.to_string()))?;
        for (job, span) in workload.jobs(plan.size) {
            job.check().map_err(|error| workload_error(error.to_string()))?;
            if job.sync.dont_cache {
                return Err(Refusal::DontCacheNotModelled);
            }
            if job.block_size > span {
                return Err(Refusal::BlockTooLarge { block: job.block_size, span });
            }
        }
        Ok(())
    }

    /// One trial. It depends on nothing but what it is given.
    fn simulate(
        &self,
        plan: &Plan,
        trial: TrialId,
        stop: &AtomicBool,
        each_second: &mut dyn FnMut(&Progress),
    ) -> Result<Measurement, WorldError> {
        let (cell, seed) = (&plan.cells[trial.cell], trial.seed(plan.seed));
        let (workload, _) = plan.workload_of(cell).map_err(WorldError::trial)?;
        let mut queue = self.queue(cell).map_err(WorldError::trial)?;
        queue.config.seed = seed;
        let stack = self.stack(plan, cell, &queue).map_err(WorldError::trial)?;
        // As new for each trial: what one leaves behind in a cache must not reach the next.
        let (devices, striping) = self.devices(seed, &queue.without).map_err(WorldError::trial)?;
        let spec = Spec {
            workload: &workload,
            queue: &queue.config,
            stack: &stack,
            span: plan.size.sectors(),
            warmup: plan.timing.warmup,
            measure: plan.timing.measure.limit(),
            turnaround: self.target.turnaround,
            seed,
            replay: recorded::spec(self.trace.as_ref(), &workload),
            log_requests: match plan.events && trial.round == 0 && trial.replica == 0 {
                true => MAX_LOGGED_REQUESTS,
                false => 0,
            },
        };
        let simulated = run_striped(&spec, devices, striping, stop, each_second);
        match simulated {
            Ok(simulated) => Ok(simulated.measurement),
            Err(SimulateError::Stopped) => Err(WorldError::Interrupted),
            Err(_) if stop.load(Ordering::Relaxed) => Err(WorldError::Interrupted),
            Err(error) => Err(WorldError::trial(error)),
        }
    }
}

/// So many commands that nothing has to wait for a place.
const UNLIMITED: u32 = 1 << 20;

impl World for SimulatedWorld {
    fn kind(&self) -> WorldKind {
        WorldKind::Simulated
    }

    fn offer(&self) -> Result<Offer, WorldError> {
        let queue = self.default_queue();
        let resolved = queue.config.resolve().map_err(WorldError::usage)?;
        let schedulers = self.target.kernel.schedulers();
        let mut current = BTreeMap::from([
            (Factor::Scheduler, level(resolved.scheduler)),
            (Factor::NrRequests, level(resolved.nr_requests)),
            (Factor::ReadAheadKb, level(queue.read_ahead_kib)),
            (Factor::Nomerges, level(queue.config.nomerges)),
        ]);
        if self.target.kernel.multi_queue() {
            current.insert(Factor::WbtLatUsec, level(queue.wbt_usec));
        }
        for (name, value) in resolved.tunables.iter() {
            let scheduler = resolved.scheduler.to_string();
            current.insert(Factor::Tunable { scheduler, name: name.to_owned() }, level(value));
        }
        let journal = if self.filesystems { JOURNAL.0 } else { 0 };
        let capacity = Sectors(self.capacity.0.saturating_sub(journal)).bytes();
        Ok(Offer {
            current,
            all: [(Factor::Scheduler, schedulers.iter().map(level).collect())].into(),
            missing: self.missing(),
            size_limit: Some((
                capacity,
                SizeLimit::Capacity {
                    device: self.profile.name.clone(),
                    size: capacity,
                    journal: self.filesystems.then_some(JOURNAL.bytes()),
                },
            )),
            default_size: capacity,
            own_loop: false,
            // Nothing is laid out.
            layout_bytes_per_second: 0,
            virtual_time: true,
            ..Offer::default()
        })
    }

    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<Refusal> {
        self.check(plan, cell).err()
    }

    fn intentions(&self, plan: &Plan) -> Vec<Intention> {
        let mut all = vec![Intention::Simulate {
            profile: self.profile.name.clone(),
            kernel: self.target.kernel.to_string(),
        }];
        all.extend(self.trace.as_ref().and_then(|trace| recorded::intention(trace, plan)));
        all
    }

    fn describe(&self, plan: &Plan) -> Result<Environment, WorldError> {
        let mut settings = settings_of(&self.default_queue())?;
        let turnaround = self.target.turnaround;
        settings.push(("turnaround".to_owned(), turnaround.to_string()));
        let TransportDelay { round_trip, jitter, every, write, gap, is_loop } = self.target.delay;
        let delay = [
            ("transport", round_trip),
            ("transport_every", every),
            ("transport_write", write),
            ("transport_gap", gap),
        ];
        for (name, time) in delay.into_iter().filter(|(_, time)| *time > Nanos::ZERO) {
            settings.push((name.to_owned(), time.to_string()));
        }
        if jitter != Chance::default() {
            settings.push(("transport_jitter".to_owned(), chance_text(&jitter)));
        }
        if let Some(part) = self.target.tag_waiters_share {
            settings.push(("tag_waiters".to_owned(), part.to_string()));
        }
        if is_loop {
            settings.push(("loop".to_owned(), "yes".to_owned()));
        }
        if self.target.tags_seen {
            settings.push(("tags_seen".to_owned(), "yes".to_owned()));
        }
        if let Some(piece) = self.target.interleaved {
            settings.push(("interleaved".to_owned(), piece.to_string()));
        }
        let lvm = if self.target.lvm { ", its drives striped by the host (LVM)" } else { "" };
        let page_cache = plan.page_cache.unwrap_or(DEFAULT_PAGE_CACHE);
        let mut caveats = vec![Caveat::SimulatedModel { turnaround, page_cache }];
        caveats.extend(self.trace.iter().flat_map(|trace| recorded::caveats(trace, plan)));
        Ok(Environment {
            world: self.kind(),
            spindle_version: env!("CARGO_PKG_VERSION").to_owned(),
            hostname: "simulated".to_owned(),
            kernel: self.target.kernel.to_string(),
            cpu: "simulated without limit".to_owned(),
            cpus: 0,
            memory_bytes: 0,
            target: plan.target.clone(),
            device: format!(
                "{} ({}, {}{lvm})",
                self.profile.name,
                self.profile.kind_name(),
                self.capacity.bytes()
            ),
            settings,
            caveats,
            boot_id: String::new(),
            booted_at: None,
            facts: Vec::new(),
            inspection: serde_json::json!({
                "profile": self.profile.name,
                "title": self.profile.title,
                "notes": self.profile.notes,
                "text": self.profile.text,
                "kernel": self.target.kernel.name(),
                "turnaround_ns": turnaround.0,
                "transport_ns": round_trip.0,
                "transport_jitter": chance_text(&jitter),
                "transport_every_ns": every.0,
                "transport_write_ns": write.0,
                "transport_gap_ns": gap.0,
                "loop": is_loop,
                "tag_waiters": self.target.tag_waiters_share,
                "page_cache": page_cache.0,
                "lvm": self.target.lvm,
                "tags_seen": self.target.tags_seen,
                "interleaved": self.target.interleaved.map(|piece| piece.0),
            }),
        })
    }

    fn prepare<'a>(
        &'a self,
        plan: &'a Plan,
        _: &AtomicBool,
        _: &mut dyn Watcher,
    ) -> Result<Box<dyn Session + 'a>, WorldError> {
        Ok(Box::new(SimulatedSession { world: self, plan, applied: None }))
    }
}

impl Session for SimulatedSession<'_> {
    fn apply(&mut self, cell: &Cell) -> Result<(), WorldError> {
        self.applied = Some(self.world.queue(cell).map_err(WorldError::trial)?);
        Ok(())
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        settings_of(&self.applied.clone().unwrap_or_else(|| self.world.default_queue()))
    }

    fn measure(
        &mut self,
        trial: TrialId,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        self.world.simulate(self.plan, trial, stop, &mut |progress| {
            watcher.live(&live_of(progress));
        })
    }

    fn concurrency(&self) -> usize {
        self.world.threads
    }

    fn measure_all(
        &mut self,
        trials: &[TrialId],
        stop: &AtomicBool,
        done: &mut dyn FnMut(usize, Measured) -> ControlFlow<()>,
    ) {
        together::measure_all(self.world, self.plan, trials, stop, done);
    }

    fn finish(self: Box<Self>) -> Result<(), WorldError> {
        Ok(())
    }
}

/// By the kernel's names, as they stand below a device's `queue` folder.
fn settings_of(queue: &Queue) -> Result<Vec<(String, String)>, WorldError> {
    let config = queue.config.resolve().map_err(WorldError::usage)?;
    let mut settings = vec![
        ("scheduler".to_owned(), config.scheduler.to_string()),
        ("nr_requests".to_owned(), config.nr_requests.to_string()),
        ("max_sectors_kb".to_owned(), (config.max_sectors / 2).to_string()),
        ("nomerges".to_owned(), config.nomerges.to_string()),
        ("read_ahead_kb".to_owned(), queue.read_ahead_kib.to_string()),
        ("rotational".to_owned(), u8::from(config.rotational).to_string()),
        ("device/queue_depth".to_owned(), config.depth.to_string()),
    ];
    if config.kernel.multi_queue() {
        settings.push(("wbt_lat_usec".to_owned(), queue.wbt_usec.to_string()));
    }
    if !queue.without.is_nothing() {
        settings.push(("without".to_owned(), queue.without.to_string()));
    }
    let tunables = config.tunables.iter();
    settings.extend(tunables.map(|(name, value)| (format!("iosched/{name}"), value.to_string())));
    Ok(settings)
}

fn live_of(progress: &Progress) -> Live {
    let second = &progress.second;
    let length = progress.length.as_secs_f64().max(1e-9);
    let Bytes(bytes) = second.bytes;
    Live {
        at: second.at,
        phase: if second.at <= 0.0 { Phase::WarmUp } else { Phase::Measuring },
        operations_per_second: (second.reads + second.writes) as f64 / length,
        bytes_per_second: bytes as f64 / length,
        p99: second.p99,
    }
}

fn level(value: impl ToString) -> Level {
    Level(value.to_string())
}
