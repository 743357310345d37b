//! The emulated world: a block device of ours, with real data and a model's timing, on which the real
//! world does what it does.

mod pacing;
mod target;

pub use target::EmulatedTarget;

use super::{
    real::{RealSession, RealTarget},
    recorded,
};
use crate::{Options, Session, TrialTimes, Watcher, World, WorldError};
use blocklayer::{Config, Kernel};
use device::{Profile, profile};
use emulate::{DataPlace, EmulateError, Emulation, SERVER_VERB, Transport, Wanted};
use host::{Changes, Host};
use pacing::Pacing;
use plan::{
    Cell, EmulatedTransport, Factor, Intention, Level, Offer, Plan, PresetFacts, RawPlan, Refusal,
    SizeLimit,
};
use record::{Caveat, Environment, Measurement, Mover, TrialId, VoidReason, WorldKind};
use std::{
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
};
use units::{Bytes, Nanos};
use workload::Preset;

/// The size of a filesystem's file when no size is named: it is laid out, a raw device is not.
const DEFAULT_FILE: Bytes = Bytes::from_gib(1);

/// The speed at which a file is laid out, for the time estimate: the transport's, the model left out.
const LAYOUT_BYTES_PER_SECOND: u64 = 400_000_000;

/// A profile's device under this host's kernel.
pub struct EmulatedWorld {
    name: String,
    profile: Profile,
    capacity: Bytes,
    model_depth: u32,
    data: DataPlace,
    transport: Transport,
    pauses: bool,
    options: Options,
    /// The host as the device will find it: a loop device that is not attached yet, beside the state
    /// folder. All that can be planned without the device.
    host: RealTarget,
}

/// A device that was brought up, and the trials on it. Fields are dropped in their order: what is on the
/// device goes before the device.
struct EmulatedSession<'a> {
    world: &'a EmulatedWorld,
    plan: &'a Plan,
    /// None once everything has been taken down.
    up: Option<Up<'a>>,
}

struct Up<'a> {
    real: RealSession<'a>,
    emulation: Emulation,
    changes: Changes,
}

impl EmulatedWorld {
    /// Loads the profile and looks at the host; changes nothing.
    pub fn open(target: &EmulatedTarget, options: &Options) -> Result<EmulatedWorld, WorldError> {
        for (named, what) in [
            (options.own_loop, "--loop: an emulated device is a block device already"),
            (options.confirm.is_some(), "--confirm: an emulated device holds nobody's data"),
        ] {
            if named {
                return Err(WorldError::usage(format!("{target}: {what}: leave it out")));
            }
        }
        let transport = Transport::choose(target.transport).map_err(WorldError::usage)?;
        let profile = profile::load(&target.profile).map_err(WorldError::usage)?;
        let device = profile.build(0).map_err(WorldError::usage)?;
        let state = host::state_folder().map_err(WorldError::usage)?;
        let data = target.data.clone().unwrap_or_else(|| DataPlace::Scratch(state.clone()));
        let folder = state.ancestors().find(|folder| folder.is_dir());
        let folder = folder.unwrap_or(std::path::Path::new("/"));
        let beside = Options { own_loop: true, ..options.clone() };
        let mut host = RealTarget::look(folder, &beside)?;
        host.trace = options.replay.as_ref().map(recorded::load).transpose()?.map(Arc::new);
        Ok(EmulatedWorld {
            name: target.profile.clone(),
            capacity: emulate::size_of(&profile, device.capacity().bytes(), None)
                .map_err(WorldError::usage)?,
            model_depth: device.queue_depth(),
            pauses: target.pauses.unwrap_or(profile.rotates()),
            profile,
            data,
            transport,
            options: options.clone(),
            host,
        })
    }

    /// Commands that the device has at once.
    fn depth(&self) -> u32 {
        self.transport.tags(self.model_depth)
    }

    /// The queue of a new device, by the documented defaults.
    fn default_queue(&self) -> Result<blocklayer::Resolved, WorldError> {
        let scheduler = emulate::default_scheduler(self.model_depth);
        Config::new(Kernel::V6_12, self.depth())
            .with_scheduler(scheduler)
            .resolve()
            .map_err(WorldError::usage)
    }

    /// The cell with the scheduler and the queue's length that it has where it names none.
    fn complete(&self, cell: &Cell) -> Cell {
        let mut cell = cell.clone();
        if cell.host_settings().next().is_some() {
            let scheduler = emulate::default_scheduler(self.model_depth);
            let scheduler =
                cell.levels.entry(Factor::Scheduler).or_insert_with(|| level(scheduler)).clone();
            if scheduler.0 != "none" {
                // What a device with so many tags begins with; a loop device goes by all its own.
                let default = level(emulate::default_nr_requests(self.depth()));
                cell.levels.entry(Factor::NrRequests).or_insert(default);
            }
        }
        cell
    }

    /// The transport, as a plan shows it.
    fn made(&self) -> EmulatedTransport {
        match self.transport {
            Transport::Ublk => EmulatedTransport::Ublk,
            Transport::FuseUring => EmulatedTransport::FuseUring,
            Transport::Fuse => EmulatedTransport::Fuse,
        }
    }
}

impl<'a> EmulatedSession<'a> {
    fn bring_up(
        world: &'a EmulatedWorld,
        plan: &'a Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<EmulatedSession<'a>, WorldError> {
        let words: Vec<String> = std::env::args().collect();
        let wanted = Wanted {
            program: std::env::current_exe().map_err(WorldError::fatal)?,
            arguments: vec![SERVER_VERB.to_owned()],
            profile: world.name.clone(),
            seed: plan.seed,
            size: None,
            data: world.data.clone(),
            transport: Some(world.transport),
            pauses: Some(world.pauses),
        };
        let mut changes =
            Changes::begin(&Host::here(), &words.join(" ")).map_err(WorldError::fatal)?;
        let mut emulation = Emulation::start(&mut changes, &wanted).map_err(explain)?;
        emulation.bypass(true).map_err(explain)?;
        let options = Options {
            confirm: Some(emulation.confirmation.clone()),
            own_loop: false,
            ..world.options.clone()
        };
        let mut target = RealTarget::look(&emulation.node, &options)?;
        target.sparse = true;
        target.trace = world.host.trace.clone();
        let real = RealSession::prepare(Rc::new(target), plan, stop, watcher)?;
        Ok(EmulatedSession { world, plan, up: Some(Up { real, emulation, changes }) })
    }

    fn up(&mut self) -> Result<&mut Up<'a>, WorldError> {
        self.up.as_mut().ok_or_else(|| WorldError::fatal("the session has ended"))
    }

    /// Takes everything down; does nothing the second time.
    fn end(&mut self) -> Result<(), WorldError> {
        let Some(Up { real, mut emulation, changes }) = self.up.take() else { return Ok(()) };
        // Unmounting writes back what is cached: that takes no time of the model's. A server that has
        // died does not answer.
        let _no_answer = emulation.bypass(true);
        let restored = Box::new(real).finish();
        drop(emulation);
        let report = changes.finish().map_err(WorldError::fatal)?;
        match report.is_complete() {
            true => restored,
            false => Err(WorldError::left_behind(&report)),
        }
    }
}

impl Drop for EmulatedSession<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell; what fails stays in the journal, for `spindle undo`.
        let _in_the_journal = self.end();
    }
}

impl World for EmulatedWorld {
    fn kind(&self) -> WorldKind {
        WorldKind::Emulated
    }

    fn offer(&self) -> Result<Offer, WorldError> {
        let queue = self.default_queue()?;
        let mut offer = self.host.offer()?;
        offer.own_loop = false;
        // The emulated device is one, whatever its data are on.
        offer.slow.insert(Factor::Filesystem);
        for (name, value) in queue.tunables.iter() {
            let scheduler = queue.scheduler.to_string();
            let factor = Factor::Tunable { scheduler, name: name.to_owned() };
            offer.current.insert(factor, level(value));
        }
        offer.current.insert(Factor::Scheduler, level(queue.scheduler));
        offer.current.insert(Factor::NrRequests, level(queue.nr_requests));
        if let Some(depth) = offer.current.get_mut(&Factor::AsyncDepth) {
            *depth = level(queue.nr_requests);
        }
        if let Some(wbt) = offer.current.get_mut(&Factor::WbtLatUsec) {
            *wbt = level(if self.profile.rotates() { 75_000 } else { 2_000 });
        }
        let limit = self.capacity;
        let why =
            SizeLimit::Capacity { device: self.profile.name.clone(), size: limit, journal: None };
        if self.options.makes_filesystems {
            // Files are laid out, in data that take room.
            offer.layout_bytes_per_second = LAYOUT_BYTES_PER_SECOND;
            offer.default_size = DEFAULT_FILE.min(Bytes(limit.0 / 2));
            let room = offer.size_limit.take().filter(|_| self.data != DataPlace::Memory);
            offer.size_limit = room.filter(|(room, _)| *room < limit).or(Some((limit, why)));
        } else {
            // Nothing is laid out: what was never written reads as zeroes, in the model's time.
            offer.layout_bytes_per_second = 0;
            offer.default_size = limit;
            offer.size_limit = Some((limit, why));
        }
        Ok(offer)
    }

    fn preset(&self, raw: &RawPlan, preset: Preset) -> Result<PresetFacts, WorldError> {
        self.host.preset(raw, preset)
    }

    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<Refusal> {
        let cell = self.complete(cell);
        let number = |factor| cell.level(factor).and_then(|level| level.0.parse::<u32>().ok());
        let none = cell.level(&Factor::Scheduler).is_some_and(|level| level.0 == "none");
        match number(&Factor::NrRequests).filter(|it| none && *it > self.depth()) {
            Some(nr_requests) => Some(Refusal::MoreThanTags {
                device: self.profile.name.clone(),
                tags: self.depth(),
                nr_requests,
            }),
            None => self.host.refuse(plan, &cell),
        }
    }

    fn intentions(&self, plan: &Plan) -> Vec<Intention> {
        let mut all = vec![Intention::Emulate {
            profile: self.profile.name.clone(),
            size: self.capacity,
            transport: self.made(),
            data: match &self.data {
                DataPlace::Memory => None,
                DataPlace::Scratch(folder) | DataPlace::File(folder) => Some(folder.clone()),
            },
        }];
        all.extend(self.host.intentions_beside_scratch(plan));
        all
    }

    fn describe(&self, plan: &Plan) -> Result<Environment, WorldError> {
        let host = self.host.describe(plan)?;
        let queue = self.default_queue()?;
        let rotates = u8::from(self.profile.rotates()).to_string();
        let transport = self.transport.title().to_owned();
        let mut caveats = vec![Caveat::EmulatedModel {
            profile: self.profile.name.clone(),
            transport: transport.clone(),
        }];
        if self.model_depth > self.depth() {
            caveats.push(Caveat::FewerTags {
                model: self.model_depth,
                passed: self.depth(),
                transport,
            });
        }
        let trace = self.host.trace.iter();
        caveats.extend(trace.flat_map(|trace| recorded::caveats(trace, plan)));
        caveats.extend(host.caveats.iter().filter(|caveat| is_of_the_machine(caveat)).cloned());
        Ok(Environment {
            world: self.kind(),
            target: plan.target.clone(),
            device: format!(
                "emulated {} ({}, {}) over {}",
                self.profile.name,
                self.profile.kind_name(),
                self.capacity,
                self.transport.title()
            ),
            settings: vec![
                ("scheduler".to_owned(), queue.scheduler.to_string()),
                ("nr_requests".to_owned(), queue.nr_requests.to_string()),
                ("rotational".to_owned(), rotates),
                ("device/queue_depth".to_owned(), self.depth().to_string()),
            ],
            caveats,
            inspection: serde_json::json!({
                "profile": self.profile.name,
                "title": self.profile.title,
                "notes": self.profile.notes,
                "text": self.profile.text,
                "transport": self.transport.name(),
                "pauses": self.pauses,
                "tags": self.depth(),
                "model_queue_depth": self.model_depth,
                "host": host.inspection,
            }),
            ..host
        })
    }

    fn prepare<'a>(
        &'a self,
        plan: &'a Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Box<dyn Session + 'a>, WorldError> {
        Ok(Box::new(EmulatedSession::bring_up(self, plan, stop, watcher)?))
    }
}

impl Session for EmulatedSession<'_> {
    fn apply(&mut self, cell: &Cell) -> Result<(), WorldError> {
        let (world, plan) = (self.world, self.plan);
        let cell = world.complete(cell);
        let Up { emulation, real, changes } = self.up()?;
        // Making a filesystem and laying out its file take no time of the model's.
        emulation.bypass(true).map_err(explain)?;
        if plan.sets_host() {
            // A cell without a scheduler may have changed how many tags are in use.
            emulation.use_own_tags(changes).map_err(explain)?;
        }
        real.apply(&cell)?;
        emulation.bypass(false).map_err(explain)
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        let depth = self.world.depth();
        let mut all = self.up()?.real.settings()?;
        all.push(("device/queue_depth".to_owned(), depth.to_string()));
        Ok(all)
    }

    fn who_moved(&mut self, setting: &str) -> Option<Mover> {
        self.up().ok()?.real.who_moved(setting)
    }

    fn set_times(&mut self, times: TrialTimes) {
        if let Ok(Up { real, .. }) = self.up() {
            real.set_times(times);
        }
    }

    fn measure(
        &mut self,
        trial: TrialId,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Measurement, WorldError> {
        let plan = self.plan;
        let Up { emulation, real, .. } = self.up()?;
        // As new for each trial: what one leaves behind in a cache must not reach the next.
        emulation.reset(trial.seed(plan.seed)).map_err(explain)?;
        let mut pacing = Pacing::of(emulation, watcher);
        let measured = real.measure(trial, stop, &mut pacing);
        let paced = pacing.end();
        let mut measurement = measured?;
        let paced = paced.map_err(explain)?;
        if let Some(late) = paced.too_late(plan.margin) {
            return Err(WorldError::Void(VoidReason::CompletionsLate(late)));
        }
        paced.enter(&mut measurement);
        Ok(measurement)
    }

    fn finish(mut self: Box<Self>) -> Result<(), WorldError> {
        self.end()
    }
}

/// Whether a caveat concerns a device whose data are a server's: a trap of the machine, not of the
/// storage below.
fn is_of_the_machine(caveat: &Caveat) -> bool {
    const OF_THE_MACHINE: [&str; 4] = ["unfinished-run", "group-limit", "busy-host", "steal"];
    matches!(caveat, Caveat::Trap { id, .. } if OF_THE_MACHINE.contains(&id.as_str()))
}

fn level(value: impl ToString) -> Level {
    Level(value.to_string())
}

fn explain(error: EmulateError) -> WorldError {
    match error.is_usage() {
        true => WorldError::usage(error),
        false => WorldError::fatal(error),
    }
}

/// A second's length, for shares of it.
const SECOND: Nanos = Nanos::from_secs(1);
