//! Trials on this host's storage: what was made and changed for them, and their measurement.

use super::{
    RealTarget, counters,
    culprits::Culprits,
    databases::{Beside, Databases},
    settings,
    stage::{self, Stage, Stages},
};
use crate::{Session, TrialTimes, Watcher, WorldError};
use host::{Changes, DeviceNumber, QueueFolder, RequestOrder};
use load::{ClientProgram, LoadError, LoadSpec, ReplayLoad};
use plan::{Cell, Plan};
use record::{JobRole, Measurement, Mover, TrialId, Warning};
use std::{
    fmt::{self, Display, Formatter},
    panic::resume_unwind,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use units::Nanos;
use workload::EngineKind;

/// Owns everything that a run made or changed on this host.
pub struct RealSession<'a> {
    target: Rc<RealTarget>,
    plan: &'a Plan,
    times: TrialTimes,
    client_program: ClientProgram,
    /// None once everything has been put back.
    changes: Option<Changes>,
    stages: Option<Stages>,
    databases: Option<Databases>,
    /// The control group that bounds the page cache, while it does.
    bound: Option<host::PageCacheBound>,
    /// The device hangs: whatever touches it would wait, perhaps for ever.
    hung: std::cell::Cell<bool>,
    /// Who else writes the settings that are compared.
    culprits: Option<Culprits>,
    /// In which order requests go to these devices; none where this host does not say.
    order: Option<(Vec<DeviceNumber>, Option<RequestOrder>)>,
}

/// The session was used after it had ended.
#[derive(Debug, thiserror::Error)]
#[error("the session has ended")]
struct Ended;

/// A database's data go into a filesystem, and what is measured has none.
#[derive(Debug, thiserror::Error)]
#[error("a database was to run on a device without a filesystem")]
struct NoFolder;

impl<'a> RealSession<'a> {
    /// Makes what all trials need.
    pub fn prepare(
        target: Rc<RealTarget>,
        plan: &'a Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<RealSession<'a>, WorldError> {
        let words: Vec<String> = std::env::args().collect();
        let client_program = ClientProgram::own().map_err(WorldError::fatal)?;
        let changes = Changes::begin(&target.host, &words.join(" ")).map_err(WorldError::fatal)?;
        let mut session = RealSession {
            target,
            plan,
            times: TrialTimes::of(&plan.timing),
            client_program,
            changes: Some(changes),
            stages: None,
            databases: None,
            bound: None,
            hung: std::cell::Cell::new(false),
            culprits: None,
            order: None,
        };
        match session.make(stop, watcher) {
            Ok(()) => Ok(session),
            Err(ended) => Err(match session.end() {
                Ok(()) => ended,
                Err(left) => {
                    WorldError::NotRestored { ended: Box::new(ended), left: Box::new(left) }
                }
            }),
        }
    }

    fn make(&mut self, stop: &AtomicBool, watcher: &mut dyn Watcher) -> Result<(), WorldError> {
        let (target, plan) = (&*self.target, self.plan);
        let changes = self.changes.as_mut().ok_or(Ended).map_err(WorldError::fatal)?;
        changes.claim(&target.chain.claimed()).map_err(WorldError::fatal)?;
        self.stages = Some(Stages::prepare(target, changes, plan, stop, watcher)?);
        if plan.is_of_databases() {
            self.databases = Some(Databases::prepare(target, changes, plan, stop, watcher)?);
        }
        if let Some(limit) = plan.page_cache {
            // Joined once all is laid out: what is cached from now on is ours, and bounded.
            let bound = changes.bound_page_cache(limit).map_err(WorldError::fatal)?;
            // A database's server joins it; its clients are no part of it.
            if !plan.is_of_databases() {
                bound.join_ourselves().map_err(WorldError::fatal)?;
            }
            self.bound = Some(bound);
        }
        self.culprits = plan.sets_host().then(|| Culprits::begin(changes));
        Ok(())
    }

    /// The stage that the last `apply` made current.
    fn stage(&self) -> Result<&Stage, WorldError> {
        let stage = self.stages.as_ref().and_then(Stages::current);
        stage.ok_or(Ended).map_err(WorldError::fatal)
    }

    /// Puts everything back; does nothing the second time.
    fn end(&mut self) -> Result<(), WorldError> {
        self.bound = None;
        self.culprits = None;
        self.order = None;
        let Some(mut changes) = self.changes.take() else { return Ok(()) };
        if self.hung.get() {
            changes.leave_for_undo();
            return Err(WorldError::NothingPutBack);
        }
        // What cannot be taken away now stays in the journal, and is reported below.
        let databases = self.databases.take();
        let servers = databases.map_or(Ok(()), |all| all.leave(&mut changes));
        let stages = self.stages.take().map_or(Ok(()), |stages| stages.leave(&mut changes));
        let left = servers.and(stages);
        let report = changes.finish().map_err(WorldError::fatal)?;
        if report.is_complete() {
            return left;
        }
        Err(WorldError::left_behind(&report))
    }

    fn order(&self) -> Option<&RequestOrder> {
        self.order.as_ref()?.1.as_ref()
    }

    fn cell(&self, trial: TrialId) -> &'a Cell {
        &self.plan.cells[trial.cell]
    }

    /// Runs a cell's database workload on the server that `apply` started, and ends that.
    fn measure_database(
        &mut self,
        trial: TrialId,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        let plan = self.plan;
        let (workload, engine) = plan.workload_of(self.cell(trial)).map_err(WorldError::trial)?;
        let (Some(databases), Some(changes)) = (&mut self.databases, &mut self.changes) else {
            return Err(WorldError::fatal(Ended));
        };
        let stage = self.stages.as_ref().and_then(Stages::current);
        let began = host::monotonic_now();
        let beside = Beside::of(&workload, stage).map_err(WorldError::fatal)?;
        let spec = beside.as_ref().map(|beside| LoadSpec {
            workload: &beside.workload,
            replay: None,
            target: &beside.target,
            engine,
            warmup: plan.timing.warmup,
            measure: plan.timing.measure.limit(),
            tick: self.times.tick,
            seed: trial.seed(plan.seed),
            client_program: &self.client_program,
        });
        let order = self.order.as_ref().and_then(|(_, order)| order.as_ref());
        let over = AtomicBool::new(false);
        let (measured, beside) = std::thread::scope(|scope| {
            let mut thread = None;
            let mut begun = || {
                let over = &over;
                thread = spec.map(|spec| scope.spawn(move || load::run(&spec, over, &mut |_| {})));
            };
            let measured = databases.measure(
                (&self.target, order),
                (plan, trial),
                stage,
                stop,
                &mut begun,
                watcher,
            );
            over.store(measured.is_err(), Ordering::Relaxed);
            // A thread that panicked goes on doing so here.
            (measured, thread.map(|thread| thread.join().unwrap_or_else(|it| resume_unwind(it))))
        });
        let ended = match &measured {
            Ok(_) => databases.end_unless_kept(changes),
            // What went wrong must not reach the next trial.
            Err(_) => databases.end(changes),
        };
        let mut measurement = measured?;
        ended?;
        if let Some(beside) = beside {
            let beside = beside.map_err(|error| self.explain(error, began, stop))?;
            measurement.background = Some(beside.job);
            let warnings = beside.warnings.into_iter().map(|it| it.of_job(JobRole::Background));
            measurement.warnings.extend(warnings);
        }
        measurement.warnings.extend(self.page_cache_bound());
        Ok(measurement)
    }

    fn page_cache_bound(&self) -> Option<Warning> {
        self.bound.as_ref().map(|bound| Warning::PageCacheBounded {
            limit: bound.limit,
            cgroup_version: match bound.version {
                host::CgroupVersion::V1 => 1,
                host::CgroupVersion::V2 => 2,
            },
        })
    }

    /// Tells trouble that ends the run from trouble of one trial, which began at a moment of
    /// CLOCK_MONOTONIC.
    fn explain(&self, error: LoadError, began: Nanos, stop: &AtomicBool) -> WorldError {
        let hung = matches!(error, LoadError::Hung { .. });
        self.hung.set(hung);
        let stopped = matches!(error, LoadError::Stopped) || stop.load(Ordering::Relaxed);
        if stopped && !hung {
            return WorldError::Interrupted;
        }
        let devices = self.stages.as_ref().and_then(Stages::current).map(Stage::devices);
        let devices: Vec<_> = devices.into_iter().flatten().collect();
        let read = |number: &host::DeviceNumber| {
            host::BlockDevice::read(&self.target.host, *number).map(|device| device.name)
        };
        let names: Vec<String> = devices.iter().filter_map(|number| read(number).ok()).collect();
        let gone = names.len() < devices.len();
        let bottoms = self.target.chain.bottoms().map(|device| device.name.clone());
        let names: Vec<String> = names.into_iter().chain(bottoms).collect();
        let kernel = KernelSaid(host::kernel_said(began, &names));
        match (gone, hung) {
            (true, _) => WorldError::fatal(DeviceGone { kernel, source: error }),
            (false, true) => WorldError::fatal(DeviceHangs { kernel, source: error }),
            (false, false) => WorldError::trial(error),
        }
    }
}

/// Looks at the order of these devices' requests from now on. A kernel that does not say it, or a host without tracing,
/// leaves that out.
fn watch_order(
    changes: &mut Changes,
    order: &mut Option<(Vec<DeviceNumber>, Option<RequestOrder>)>,
    devices: &[DeviceNumber],
) -> Result<(), WorldError> {
    if order.as_ref().is_some_and(|(watched, _)| watched == devices) {
        return Ok(());
    }
    if let Some((_, Some(before))) = order.take() {
        changes.end_order(before).map_err(WorldError::fatal)?;
    }
    *order = Some((devices.to_vec(), changes.watch_order(devices).ok()));
    Ok(())
}

/// The device disappeared while it was measured.
#[derive(Debug, thiserror::Error)]
#[error("the device has disappeared; {kernel}")]
struct DeviceGone {
    kernel: KernelSaid,
    source: LoadError,
}

/// The device answers no more. Its operations may still come through in a later trial, so there is none.
#[derive(Debug, thiserror::Error)]
#[error("{source}; {kernel}")]
struct DeviceHangs {
    kernel: KernelSaid,
    source: LoadError,
}

/// What the kernel's log has on it.
#[derive(Debug)]
struct KernelSaid(Vec<String>);

impl Display for KernelSaid {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [] => f.write_str("the kernel's log (dmesg) says nothing about it"),
            lines => write!(f, "the kernel's log says: {}", lines.join(" | ")),
        }
    }
}

impl Session for RealSession<'_> {
    fn apply(&mut self, cell: &Cell) -> Result<(), WorldError> {
        let (target, plan) = (&*self.target, self.plan);
        let (Some(changes), Some(stages)) = (&mut self.changes, &mut self.stages) else {
            return Err(WorldError::fatal(Ended));
        };
        // The last trial's server uses what is now set anew.
        if let Some(databases) = &mut self.databases {
            databases.end_unless_kept(changes)?;
        }
        let filesystem = stage::filesystem_of(target, plan, cell);
        stages.enter(target, changes, plan, filesystem.as_ref())?;
        let Some(stage) = stages.current_mut() else { return Ok(()) };
        // Where no setting of the host is compared, none is touched.
        for (number, known) in stage.varied.iter_mut().filter(|_| plan.sets_host()) {
            settings::apply(changes, *number, known, cell)?;
        }
        if let Some(culprits) = &mut self.culprits {
            culprits.watch(&target.host, &stage.all_devices());
            watch_order(changes, &mut self.order, &stage.devices())?;
        }
        match (&mut self.databases, &stage.folder) {
            (Some(databases), Some(home)) => {
                databases.begin(target, changes, (plan, cell), home, self.bound.as_ref())
            }
            (Some(_), None) => Err(WorldError::fatal(NoFolder)),
            (None, _) => Ok(()),
        }
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        let stage = self.stage()?;
        let mut all = Vec::new();
        for (place, number) in stage.all_devices().into_iter().enumerate() {
            let folder = QueueFolder::of(&self.target.host, number).map_err(WorldError::fatal)?;
            let prefix = settings::prefix(place, number);
            let values = folder.read_all();
            all.extend(values.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        if let Some(databases) = &mut self.databases {
            all.extend(databases.settings()?.iter().cloned());
        }
        Ok(all)
    }

    fn who_moved(&mut self, setting: &str) -> Option<Mover> {
        let devices = self.stage().ok()?.all_devices();
        self.culprits.as_ref()?.who_moved(&devices, setting)
    }

    fn set_times(&mut self, times: TrialTimes) {
        self.times = times;
    }

    fn measure(
        &mut self,
        trial: TrialId,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        let plan = self.plan;
        if plan.is_of_databases() {
            return self.measure_database(trial, stop, watcher);
        }
        let (workload, engine) = plan.workload_of(self.cell(trial)).map_err(WorldError::trial)?;
        let began = host::monotonic_now();
        let stage = self.stage()?;
        let devices = stage.devices();
        load::forget_cached(&stage.target).map_err(|error| self.explain(error, began, stop))?;
        let mut sampler = counters::Sampling::begin(&self.target.host, &devices, self.order());
        let cached = load::CachedPart::of(&stage.target);
        let replay =
            self.target.trace.as_ref().zip(workload.replay.as_ref()).map(|(trace, how)| {
                Arc::new(ReplayLoad::new(Arc::clone(trace), how.mode, plan.size, &workload.job))
            });
        let spec = LoadSpec {
            workload: &workload,
            replay: replay.as_ref(),
            target: &stage.target,
            engine,
            warmup: self.times.warmup,
            measure: self.times.measure,
            tick: self.times.tick,
            seed: trial.seed(plan.seed),
            client_program: &self.client_program,
        };
        let measured = load::run(&spec, stop, &mut |live| {
            sampler.sample(live.at);
            if let Some(bytes) = cached.as_ref().and_then(load::CachedPart::bytes) {
                let id = ::counters::TARGET_CACHED.id.to_owned();
                sampler.add([(id, bytes.0 as f64)].into());
            }
            watcher.live(live);
        });
        let mut measurement = measured.map_err(|error| self.explain(error, began, stop))?;
        if stop.load(Ordering::Relaxed) && measurement.span < self.times.measure {
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
        measurement.warnings.extend(self.page_cache_bound());
        Ok(measurement)
    }

    fn finish(mut self: Box<Self>) -> Result<(), WorldError> {
        self.end()
    }
}

impl Drop for RealSession<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell; what fails stays in the journal, for `spindle undo`.
        let _in_the_journal = self.end();
    }
}
