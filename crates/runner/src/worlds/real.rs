//! The real world: this host's storage as it is.

mod counters;
mod databases;
mod describe;
mod settings;
mod stage;

use crate::{Live, Phase, Watcher, World, WorldError};
use databases::{Databases, Servers};
use host::{Changes, Host, QueueFolder, TargetKind};
use load::{LoadError, LoadSpec};
use plan::{Cell, EngineKind, Factor, Level, LoadingPace, Offer, Plan, RawPlan};
use record::{Environment, Measurement};
use stage::{Stage, Stages};
use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};
use units::{Bytes, Nanos};

/// This host's storage.
pub struct RealWorld {
    host: Host,
    target: PathBuf,
    chain: host::Chain,
    /// The scratch file goes behind a loop device of its own.
    own_loop: bool,
    confirm: Option<String>,
    /// A block device is taken as it is: what was never written reads as zeroes, at its own speed.
    sparse: bool,
    use_existing: bool,
    servers: Servers,
    changes: Option<Changes>,
    stages: Option<Stages>,
    databases: Option<Databases>,
    /// The group that bounds our page cache, while it does.
    bound: Option<host::PageCacheBound>,
}

/// The size of a scratch file when nothing is said.
const SIZE_USUAL: Bytes = Bytes::from_gib(1);

/// The speed at which files are laid out, for the time estimate: a slow disk's.
const LAYOUT_BYTES_PER_SECOND: u64 = 100_000_000;

/// What databases take beside what is measured: a slow disk's.
const DATABASES: LoadingPace = LoadingPace {
    load_bytes_per_second: 12_000_000,
    copy_bytes_per_second: 100_000_000,
    server: Nanos::from_secs(2),
};

impl RealWorld {
    /// Looks at the target; changes nothing.
    pub fn open(target: &str, raw: &RawPlan) -> Result<RealWorld, WorldError> {
        if raw.replay.is_some() {
            return Err(WorldError::Usage(format!(
                "a trace is replayed in the simulated world alone, and {target} is real: write \
                 simulated:PROFILE (`spindle profiles` lists them)"
            )));
        }
        let host = Host::here();
        let path = PathBuf::from(target);
        let chain = host::Chain::of(&host, &path).map_err(usage)?;
        // A filesystem that is made needs a block device to be made on.
        let makes_filesystems = raw.factors.contains_key(&Factor::Filesystem.to_string());
        let is_device = chain.kind == TargetKind::BlockDevice;
        if is_device && raw.own_loop == Some(true) {
            return Err(WorldError::Usage(format!(
                "--loop puts a scratch file behind a loop device, and {target} is a block device, on \
                 which there is no scratch file: leave --loop out, or name a folder"
            )));
        }
        if let Some(limit) = raw.page_cache.filter(|limit| *limit < host::PAGE_CACHE_BOUND_MIN) {
            return Err(WorldError::Usage(format!(
                "a page cache of {limit} would not hold the load's own memory, which counts too: \
                 give it {} or more",
                host::PAGE_CACHE_BOUND_MIN
            )));
        }
        Ok(RealWorld {
            host,
            target: path,
            own_loop: !is_device && (raw.own_loop.unwrap_or(false) || makes_filesystems),
            chain,
            confirm: raw.confirm.clone(),
            sparse: false,
            use_existing: raw.use_existing,
            servers: Servers::default(),
            changes: None,
            stages: None,
            databases: None,
            bound: None,
        })
    }

    /// Lays out no block device: for one of ours, whose holes take as long to read as data.
    pub fn leave_sparse(&mut self) {
        self.sparse = true;
    }

    /// The directory in which scratch files are made; none for a block device.
    fn folder(&self) -> Option<PathBuf> {
        match self.chain.kind {
            TargetKind::Directory => Some(self.chain.target.clone()),
            TargetKind::File => self.chain.target.parent().map(PathBuf::from),
            TargetKind::BlockDevice => None,
        }
    }

    fn prepare_with(
        &mut self,
        changes: &mut Changes,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Stages, WorldError> {
        let stages = Stages::prepare(self, changes, plan, stop, watcher)?;
        if plan.is_of_databases() {
            self.databases = Some(Databases::prepare(self, changes, plan, stop, watcher)?);
        }
        if let Some(limit) = plan.page_cache {
            // Joined once all is laid out: what is cached from now on is ours, and bounded.
            let bound = changes.bound_page_cache(limit).map_err(fatal)?;
            // A database's server joins it; its clients are no part of it.
            if !plan.is_of_databases() {
                bound.join_ourselves().map_err(fatal)?;
            }
            self.bound = Some(bound);
        }
        Ok(stages)
    }

    /// The stage that `prepare` or `apply` made ready.
    fn stage(&self) -> Result<&Stage, WorldError> {
        self.stages
            .as_ref()
            .and_then(Stages::current)
            .ok_or_else(|| WorldError::Fatal("nothing has been prepared".to_owned()))
    }
}

impl World for RealWorld {
    fn offer(&mut self) -> Result<Offer, WorldError> {
        let mut offer = settings::offer(self);
        offer.own_loop = self.own_loop;
        offer.layout_bytes_per_second = LAYOUT_BYTES_PER_SECOND;
        offer.databases = DATABASES;
        let (limit, why) = describe::size_limit(self)?;
        offer.size_usual = match self.chain.kind {
            // A small device is used whole.
            TargetKind::BlockDevice => SIZE_USUAL.min(limit),
            TargetKind::Directory | TargetKind::File => SIZE_USUAL,
        };
        offer.size_limit = Some((limit, why));
        Ok(offer)
    }

    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<String> {
        settings::refuse(self, cell).or_else(|| describe::refuse_workload(self, plan, cell))
    }

    fn intentions(&self, plan: &Plan) -> Vec<String> {
        describe::intentions(self, plan)
    }

    fn describe(&mut self, plan: &Plan) -> Result<Environment, WorldError> {
        describe::environment(self, plan)
    }

    fn prepare(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<(), WorldError> {
        let words: Vec<String> = std::env::args().collect();
        let mut changes = Changes::begin(&self.host, &words.join(" ")).map_err(fatal)?;
        let prepared = self.prepare_with(&mut changes, plan, stop, watcher);
        // Kept even when preparing failed: `restore` takes away what was made.
        self.changes = Some(changes);
        self.stages = Some(prepared?);
        Ok(())
    }

    fn apply(&mut self, plan: &Plan, cell: &Cell) -> Result<(), WorldError> {
        let nothing = || WorldError::Fatal("nothing has been prepared".to_owned());
        let mut changes = self.changes.take().ok_or_else(nothing)?;
        let mut stages = self.stages.take().ok_or_else(nothing)?;
        // The last trial's server uses what is now set anew.
        let mut databases = self.databases.take();
        let ended = databases.as_mut().map_or(Ok(()), |all| all.end(self, &mut changes));
        let filesystem = stage::filesystem_of(self, plan, cell);
        let entered =
            ended.and_then(|()| stages.enter(self, &mut changes, plan, filesystem.as_ref()));
        let applied = entered.and_then(|()| match stages.current() {
            Some(Stage { device: Some(number), before, .. }) if plan.sets_host() => {
                settings::apply(&mut changes, *number, before, cell)
            }
            // Nothing that the host has is compared: nothing of it is touched.
            _ => Ok(()),
        });
        let begun = applied.and_then(|()| match (&mut databases, stages.current()) {
            (Some(databases), Some(stage)) => {
                let bound = self.bound.as_ref();
                databases.begin(self, &mut changes, (plan, cell), &stage.folder, bound)
            }
            _ => Ok(()),
        });
        self.changes = Some(changes);
        self.stages = Some(stages);
        self.databases = databases;
        begun
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        let stage = self.stage()?;
        let mut all = Vec::new();
        for (place, number) in stage.device.iter().chain(&stage.below).enumerate() {
            let folder = QueueFolder::of(&self.host, *number).map_err(fatal)?;
            let prefix = if place == 0 { String::new() } else { format!("{number}:") };
            let values = folder.read_all();
            all.extend(values.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        all.extend(self.databases.iter().flat_map(Databases::settings).cloned());
        Ok(all)
    }

    fn measure(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        seed: u64,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        let (workload, engine) =
            plan.workload_of(cell).map_err(|error| WorldError::Trial(error.to_string()))?;
        if plan.is_of_databases() {
            return self.measure_database(plan, cell, seed, stop, watcher);
        }
        let stage = self.stage()?;
        let device = stage.device;
        load::forget_cached(&stage.target).map_err(|error| self.explain(error, stop))?;
        let mut sampler = counters::Sampling::begin(&self.host, device);
        let spec = LoadSpec {
            workload: &workload,
            target: &stage.target,
            engine,
            warmup: plan.timing.warmup,
            measure: plan.timing.measure,
            seed,
        };
        let measured = load::run(&spec, stop, &mut |live| {
            sampler.sample(live.at);
            watcher.live(&live_of(live, plan.timing.warmup));
        });
        let mut measurement = measured.map_err(|error| self.explain(error, stop))?;
        if stop.load(Ordering::Relaxed) && measurement.span < plan.timing.measure {
            return Err(WorldError::Interrupted);
        }
        if engine == EngineKind::Null {
            return Ok(measurement);
        }
        let own = std::mem::take(&mut measurement.counters);
        own.into_iter().for_each(|sample| sampler.add(sample.values));
        measurement.counters = sampler.samples();
        measurement.warnings.extend(sampler.warnings());
        measurement.warnings.extend(self.stage()?.warnings.iter().cloned());
        measurement.warnings.extend(self.bound.as_ref().map(|bound| bound.statement()));
        Ok(measurement)
    }

    fn restore(&mut self) -> Result<(), WorldError> {
        self.bound = None;
        let Some(mut changes) = self.changes.take() else { return Ok(()) };
        // What cannot be taken away now stays in the journal, and is reported below.
        let databases = self.databases.take();
        let servers = databases.map_or(Ok(()), |all| all.leave(self, &mut changes));
        let stages = self.stages.take().map_or(Ok(()), |stages| stages.leave(&mut changes));
        let left = servers.and(stages);
        let report = changes.finish().map_err(fatal)?;
        if report.is_complete() {
            return left;
        }
        Err(super::left_behind(&report, "put back"))
    }
}

impl RealWorld {
    /// Runs a cell's database workload on the server that `apply` started, and ends that.
    fn measure_database(
        &mut self,
        plan: &Plan,
        cell: &Cell,
        seed: u64,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        let nothing = || WorldError::Fatal("nothing has been prepared".to_owned());
        let mut databases = self.databases.take().ok_or_else(nothing)?;
        let stage = self.stages.as_ref().and_then(Stages::current);
        let measured = databases.measure(self, (plan, cell), stage, seed, stop, watcher);
        let mut changes = self.changes.take().ok_or_else(nothing)?;
        let ended = databases.end(self, &mut changes);
        self.changes = Some(changes);
        self.databases = Some(databases);
        let mut measurement = measured?;
        ended?;
        measurement.warnings.extend(self.bound.as_ref().map(|bound| bound.statement()));
        Ok(measurement)
    }

    /// Tells trouble that ends the run from trouble of one trial.
    fn explain(&self, error: LoadError, stop: &AtomicBool) -> WorldError {
        if matches!(error, LoadError::Stopped) || stop.load(Ordering::Relaxed) {
            return WorldError::Interrupted;
        }
        let device = self.stages.as_ref().and_then(Stages::current).and_then(|s| s.device);
        let gone =
            device.is_some_and(|number| host::BlockDevice::read(&self.host, number).is_err());
        if gone {
            return WorldError::Fatal(format!(
                "the device has disappeared: {error}; the kernel's log (dmesg) may say why"
            ));
        }
        WorldError::Trial(error.to_string())
    }
}

fn live_of(live: &load::Live, warmup: Nanos) -> Live {
    let (phase, since) = match live.phase {
        load::Phase::WarmUp => (Phase::WarmUp, live.at + warmup.as_secs_f64()),
        load::Phase::Measuring => (Phase::Measuring, live.at),
    };
    Live {
        phase,
        since: Nanos::from_secs_f64(since),
        operations_per_second: live.operations_per_second,
        bytes_per_second: live.bytes_per_second,
        p99: live.p99,
    }
}

/// The user's words do not fit the host.
fn usage(error: host::Error) -> WorldError {
    WorldError::Usage(error.to_string())
}

/// The host does not do what it should.
fn fatal(error: host::Error) -> WorldError {
    WorldError::Fatal(error.to_string())
}

/// A level from its text.
fn level(text: impl Into<String>) -> Level {
    Level(text.into())
}
