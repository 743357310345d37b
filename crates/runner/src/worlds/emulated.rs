//! The emulated world: a block device of ours, with real data and a model's timing, on which the real
//! world does what it does.

mod pacing;

use super::real::RealWorld;
use crate::{Watcher, World, WorldError};
use blocklayer::{Config, Kernel};
use device::{Profile, profile};
use emulate::{DataPlace, EmulateError, Emulation, SERVER_WORD, Transport, Wanted};
use host::{Changes, Host, Setting};
use pacing::Pacing;
use plan::{Cell, Factor, Level, Offer, Plan, RawPlan};
use record::{Environment, Measurement};
use std::{path::PathBuf, sync::atomic::AtomicBool};
use units::{Bytes, Nanos};

/// The words in front of a profile's name.
pub const PREFIX: &str = "emulated:";

/// A filesystem's file when nothing is said: it is laid out, a raw device is not.
const FILE_USUAL: Bytes = Bytes::from_gib(1);

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
    raw: RawPlan,
    /// The real world on a loop device that is not there: what can be planned without a device.
    likeness: RealWorld,
    up: Option<Up>,
}

/// What `prepare` brought up.
struct Up {
    emulation: Emulation,
    real: RealWorld,
    changes: Changes,
}

impl EmulatedWorld {
    /// Of `emulated:PROFILE`, `emulated:PROFILE,data=memory` (or a folder),
    /// `emulated:PROFILE,transport=fuse` or `emulated:PROFILE,pauses=yes`. Changes nothing.
    pub fn open(target: &str, raw: &RawPlan) -> Result<EmulatedWorld, WorldError> {
        let words = target.strip_prefix(PREFIX).unwrap_or(target);
        let mut words = words.split(',');
        let name = words.next().unwrap_or_default();
        let (mut data, mut transport, mut pauses) = (None, None, None);
        for option in words {
            match option.split_once('=') {
                Some(("data", place)) => data = Some(place),
                Some(("transport", word)) => {
                    transport = Some(word.parse().map_err(WorldError::Usage)?);
                }
                Some(("pauses", "yes")) => pauses = Some(true),
                Some(("pauses", "no")) => pauses = Some(false),
                _ => {
                    return Err(WorldError::Usage(format!(
                        "'{option}' behind a profile is not known: write \
                         emulated:{name},data=memory (or a folder), emulated:{name},transport=fuse, \
                         emulated:{name},pauses=yes (or no), or leave it out"
                    )));
                }
            }
        }
        for (named, what) in [
            (raw.own_loop == Some(true), "--loop: an emulated device is a block device already"),
            (raw.confirm.is_some(), "--confirm: an emulated device is ours, nothing is in it"),
        ] {
            if named {
                return Err(WorldError::Usage(format!("{target}: {what}: leave it out")));
            }
        }
        let transport = Transport::choose(transport).map_err(usage)?;
        let profile = profile::load(name).map_err(usage)?;
        let device = profile.build(0).map_err(usage)?;
        let state = host::state_folder().map_err(usage)?;
        let data = match data {
            Some("memory") => DataPlace::Memory,
            Some(folder) if PathBuf::from(folder).is_dir() => DataPlace::Scratch(folder.into()),
            Some(other) => {
                return Err(WorldError::Usage(format!(
                    "data={other}: it is neither `memory` nor a folder"
                )));
            }
            None => DataPlace::Scratch(state.clone()),
        };
        let there = state.ancestors().find(|folder| folder.is_dir());
        let there = there.map_or_else(|| "/".to_owned(), |it| it.to_string_lossy().into_owned());
        let own_loop = RawPlan { own_loop: Some(true), ..raw.clone() };
        Ok(EmulatedWorld {
            name: name.to_owned(),
            capacity: emulate::size_of(&profile, device.capacity().bytes(), None).map_err(usage)?,
            model_depth: device.queue_depth(),
            pauses: pauses.unwrap_or(profile.rotates()),
            profile,
            data,
            transport,
            raw: raw.clone(),
            likeness: RealWorld::open(&there, &own_loop)?,
            up: None,
        })
    }

    /// Commands that the device has at once.
    fn depth(&self) -> u32 {
        self.transport.tags(self.model_depth)
    }

    fn makes_filesystems(&self) -> bool {
        self.raw.factors.contains_key(&Factor::Filesystem.to_string())
    }

    /// The queue as the device begins with it, by the documented defaults.
    fn usual(&self) -> Result<blocklayer::Resolved, WorldError> {
        let scheduler = emulate::usual_scheduler(self.model_depth);
        Config::new(Kernel::V6_12, self.depth()).with_scheduler(scheduler).resolve().map_err(usage)
    }

    fn up(&mut self) -> Result<&mut Up, WorldError> {
        self.up.as_mut().ok_or_else(|| WorldError::Fatal("nothing has been prepared".to_owned()))
    }

    /// The cell with the scheduler that it has where it names none.
    fn with_scheduler(&self, cell: &Cell) -> Cell {
        let mut cell = cell.clone();
        if cell.host_settings().next().is_some() {
            let usual = emulate::usual_scheduler(self.model_depth);
            cell.levels.entry(Factor::Scheduler).or_insert_with(|| level(usual));
        }
        cell
    }

    fn bring_up(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<(), WorldError> {
        let words: Vec<String> = std::env::args().collect();
        let program = std::env::current_exe()
            .map_err(|error| WorldError::Fatal(format!("this program's own file: {error}")))?;
        let wanted = Wanted {
            program,
            words: vec![SERVER_WORD.to_owned()],
            profile: self.name.clone(),
            seed: plan.seed,
            size: None,
            data: self.data.clone(),
            transport: Some(self.transport),
            pauses: Some(self.pauses),
        };
        let mut changes = Changes::begin(&Host::here(), &words.join(" ")).map_err(fatal)?;
        let mut emulation = Emulation::start(&mut changes, &wanted).map_err(explain)?;
        emulation.bypass(true).map_err(explain)?;
        let raw = RawPlan {
            confirm: Some(emulation.confirmation.clone()),
            own_loop: None,
            ..self.raw.clone()
        };
        let mut real = RealWorld::open(&emulation.node.to_string_lossy(), &raw)?;
        real.leave_sparse();
        let prepared = real.prepare(plan, stop, watcher);
        self.up = Some(Up { emulation, real, changes });
        prepared
    }
}

impl World for EmulatedWorld {
    fn offer(&mut self) -> Result<Offer, WorldError> {
        let usual = self.usual()?;
        let mut offer = self.likeness.offer()?;
        offer.own_loop = false;
        for (name, value) in usual.tunables.iter() {
            let scheduler = usual.scheduler.to_owned();
            let factor = Factor::Tunable { scheduler, name: name.to_owned() };
            offer.current.insert(factor, level(value));
        }
        offer.current.insert(Factor::Scheduler, level(usual.scheduler));
        offer.current.insert(Factor::NrRequests, level(usual.nr_requests));
        if let Some(wbt) = offer.current.get_mut(&Factor::WbtLatUsec) {
            *wbt = level(if self.profile.rotates() { 75_000 } else { 2_000 });
        }
        let (limit, why) = (self.capacity, format!("{} has {}", self.profile.name, self.capacity));
        if self.makes_filesystems() {
            // Files are laid out, in data that take room.
            offer.layout_bytes_per_second = LAYOUT_BYTES_PER_SECOND;
            offer.size_usual = FILE_USUAL.min(Bytes(limit.0 / 2));
            let room = offer.size_limit.take().filter(|_| self.data != DataPlace::Memory);
            offer.size_limit = room.filter(|(room, _)| *room < limit).or(Some((limit, why)));
        } else {
            // Nothing is laid out: what was never written reads as zeroes, in the model's time.
            offer.layout_bytes_per_second = 0;
            offer.size_usual = limit;
            offer.size_limit = Some((limit, why));
        }
        Ok(offer)
    }

    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<String> {
        let cell = self.with_scheduler(cell);
        let number = |factor| cell.level(factor).and_then(|level| level.0.parse::<u32>().ok());
        let none = cell.level(&Factor::Scheduler).is_some_and(|level| level.0 == "none");
        if let Some(asked) = number(&Factor::NrRequests).filter(|it| none && *it > self.depth()) {
            return Some(format!(
                "without a scheduler nr_requests cannot exceed the device's tags: {} has {}, and \
                 {asked} were asked",
                self.profile.name,
                self.depth()
            ));
        }
        self.likeness.refuse(plan, &cell)
    }

    fn intentions(&self, plan: &Plan) -> Vec<String> {
        let place = match &self.data {
            DataPlace::Memory => "memory".to_owned(),
            DataPlace::Scratch(folder) | DataPlace::File(folder) => {
                format!("a sparse scratch file in {}", folder.display())
            }
        };
        let made = match self.transport {
            Transport::Ublk => "a ublk device",
            Transport::FuseUring => {
                "a FUSE mount (its io_uring switched on for that moment), a loop device"
            }
            Transport::Fuse => "a FUSE mount, a loop device",
        };
        let mut all = vec![format!(
            "bring up an emulated {} ({}): a server process, {made}, its data in {place}; and take them \
             down in the end",
            self.profile.name, self.capacity
        )];
        // Of what the real world intends, its scratch file and its loop device are not made.
        let made = ["lay out", "attach"];
        let theirs = self.likeness.intentions(plan).into_iter();
        all.extend(theirs.filter(|it| !made.iter().any(|word| it.starts_with(word))));
        all
    }

    fn describe(&mut self, plan: &Plan) -> Result<Environment, WorldError> {
        let host = self.likeness.describe(plan)?;
        let usual = self.usual()?;
        let rotates = u8::from(self.profile.rotates()).to_string();
        let mut caveats = vec![format!(
            "the device is a model ({}), paced in wall time behind {}; its data are real, the model \
             begins each trial as new",
            self.profile.name,
            self.transport.title()
        )];
        if self.model_depth > self.depth() {
            caveats.push(format!(
                "the model takes {} commands, of which {} {} at once",
                self.model_depth,
                match self.transport {
                    Transport::Ublk => "ublk passes",
                    Transport::FuseUring | Transport::Fuse => "a loop device passes",
                },
                self.depth()
            ));
        }
        caveats.extend(of_the_machine(&host.inspection));
        Ok(Environment {
            world: "emulated".to_owned(),
            target: plan.target.clone(),
            device: format!(
                "emulated {} ({}, {}) over {}",
                self.profile.name,
                self.profile.kind_name(),
                self.capacity,
                self.transport.title()
            ),
            settings: vec![
                ("scheduler".to_owned(), usual.scheduler.to_owned()),
                ("nr_requests".to_owned(), usual.nr_requests.to_string()),
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

    fn prepare(
        &mut self,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<(), WorldError> {
        self.bring_up(plan, stop, watcher)
    }

    fn apply(&mut self, plan: &Plan, cell: &Cell) -> Result<(), WorldError> {
        let cell = self.with_scheduler(cell);
        let usual = emulate::usual_requests(self.depth());
        let Up { emulation, real, changes } = self.up()?;
        // Making a filesystem and laying out its file take no time of the model's.
        emulation.bypass(true).map_err(explain)?;
        if plan.sets_host() {
            // A cell without a scheduler may have changed how many tags are in use.
            emulation.use_own_tags(changes).map_err(explain)?;
        }
        real.apply(plan, &cell)?;
        let scheduler = cell.level(&Factor::Scheduler).is_some_and(|level| level.0 != "none");
        if plan.sets_host() && scheduler && cell.level(&Factor::NrRequests).is_none() {
            // What a device with so many tags would begin with; a loop device goes by all its own.
            let set = changes.set(emulation.number, &Setting::NrRequests, &usual.to_string());
            set.map_err(|error| WorldError::Trial(error.to_string()))?;
        }
        emulation.bypass(false).map_err(explain)
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, WorldError> {
        let depth = self.depth();
        let mut all = self.up()?.real.settings()?;
        all.push(("device/queue_depth".to_owned(), depth.to_string()));
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
        let Up { emulation, real, .. } = self.up()?;
        // As new for each trial: what one leaves behind in a cache is nothing to the next.
        emulation.reset(seed).map_err(explain)?;
        let mut pacing = Pacing::of(emulation, watcher);
        let measured = real.measure(plan, cell, seed, stop, &mut pacing);
        let told = pacing.end();
        let mut measurement = measured?;
        let told = told.map_err(explain)?;
        if let Some(reason) = told.void(plan.margin) {
            return Err(WorldError::Void(reason));
        }
        told.enter(&mut measurement);
        Ok(measurement)
    }

    fn restore(&mut self) -> Result<(), WorldError> {
        let Some(Up { mut emulation, mut real, changes }) = self.up.take() else { return Ok(()) };
        // Unmounting writes back what is cached: in no time of the model's.
        let _dead_servers_answer_nothing = emulation.bypass(true);
        let restored = real.restore();
        drop(emulation);
        let report = changes.finish().map_err(fatal)?;
        if report.is_complete() {
            return restored;
        }
        Err(super::left_behind(&report, "taken down"))
    }
}

/// The host's traps that concern a device whose data are a server's: not those of the storage below.
fn of_the_machine(inspection: &serde_json::Value) -> Vec<String> {
    const THEIRS: [&str; 4] = ["unfinished-run", "group-limit", "busy-host", "steal"];
    let traps = inspection["traps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let word = |trap: &serde_json::Value, name: &str| trap[name].as_str().map(str::to_owned);
    traps
        .iter()
        .filter(|trap| word(trap, "id").is_some_and(|id| THEIRS.contains(&id.as_str())))
        .filter_map(|trap| Some(format!("{} ({})", word(trap, "title")?, word(trap, "evidence")?)))
        .collect()
}

fn level(value: impl ToString) -> Level {
    Level(value.to_string())
}

/// The user's words do not fit.
fn usage(error: impl std::fmt::Display) -> WorldError {
    WorldError::Usage(error.to_string())
}

fn fatal(error: host::Error) -> WorldError {
    WorldError::Fatal(error.to_string())
}

fn explain(error: EmulateError) -> WorldError {
    match error {
        EmulateError::Usage(text) => WorldError::Usage(text),
        other => WorldError::Fatal(other.to_string()),
    }
}

/// A second's length, for shares of it.
const SECOND: Nanos = Nanos::from_secs(1);
