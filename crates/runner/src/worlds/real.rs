//! The real world: this host's storage as it is.

mod application;
mod counters;
mod culprits;
mod databases;
mod describe;
mod session;
mod settings;
mod stage;

pub use application::{
    ApplyError, ApplyObjection, Deviation, Intended, IntendedChange, IntendedDevice,
};
pub(super) use session::RealSession;
pub(crate) use stage::new_file;

use super::recorded;
use crate::{Options, Session, Watcher, World, WorldError};
use databases::Servers;
use host::{DataFolder, Host, ScratchPlace, TargetKind};
use plan::{Cell, Factor, Intention, LoadingPace, Offer, Plan, PresetFacts, RawPlan, Refusal};
use record::{Caveat, Environment, WorldKind};
use std::{
    path::{Path, PathBuf},
    rc::Rc,
    sync::{Arc, atomic::AtomicBool},
};
use units::{Bytes, Nanos};
use workload::Preset;

/// This host's storage.
pub struct RealWorld {
    target: Rc<RealTarget>,
}

/// What real load goes to, and what the host says of it.
pub(super) struct RealTarget {
    pub host: Host,
    pub path: PathBuf,
    pub chain: host::Chain,
    /// Where scratch files go; none for a block device.
    scratch: Option<ScratchPlace>,
    /// The scratch file goes behind a loop device of its own.
    pub own_loop: bool,
    pub confirm: Option<String>,
    /// A block device is not laid out: what was never written reads as zeroes, at the device's speed.
    pub sparse: bool,
    pub use_existing: bool,
    pub servers: Servers,
    /// What is replayed in place of a job.
    pub trace: Option<Arc<trace::Trace>>,
}

/// The size of a scratch file when no size is named.
const DEFAULT_SIZE: Bytes = Bytes::from_gib(1);

/// The speed at which files are laid out, for the time estimate: a slow disk's.
const LAYOUT_BYTES_PER_SECOND: u64 = 100_000_000;

/// What databases take beside what is measured: a slow disk's.
const DATABASES: LoadingPace = LoadingPace {
    load_bytes_per_second: 12_000_000,
    copy_bytes_per_second: 100_000_000,
    server: Nanos::from_secs(2),
};

impl RealTarget {
    /// Looks at a path; changes nothing.
    pub fn look(path: &Path, options: &Options) -> Result<RealTarget, WorldError> {
        let host = Host::here();
        let chain = host::Chain::of(&host, path).map_err(WorldError::usage)?;
        let is_device = chain.kind == TargetKind::BlockDevice;
        if is_device && options.own_loop {
            return Err(WorldError::usage(format!(
                "--loop puts a scratch file behind a loop device, and {} is a block device, on which \
                 there is no scratch file: leave --loop out, or name a directory",
                path.display()
            )));
        }
        if let Some(limit) = options.page_cache.filter(|limit| *limit < host::PAGE_CACHE_BOUND_MIN)
        {
            return Err(WorldError::usage(format!(
                "a page cache of {limit} would not hold the load's own memory, which counts too: \
                 use {} or more",
                host::PAGE_CACHE_BOUND_MIN
            )));
        }
        let folder = match chain.kind {
            TargetKind::Directory => Some(chain.target.as_path()),
            TargetKind::File => chain.target.parent(),
            TargetKind::BlockDevice => None,
        };
        let scratch = folder.map(|folder| ScratchPlace::of(&host, folder)).transpose();
        let scratch = scratch.map_err(WorldError::usage)?;
        Ok(RealTarget {
            scratch,
            host,
            path: path.to_owned(),
            // A filesystem that is made needs a block device to be made on.
            own_loop: !is_device && (options.own_loop || options.makes_filesystems),
            chain,
            confirm: options.confirm.clone(),
            sparse: false,
            use_existing: options.use_existing,
            servers: Servers::default(),
            trace: None,
        })
    }

    /// The directory in which scratch files are made; none for a block device.
    pub fn folder(&self) -> Option<PathBuf> {
        self.scratch.as_ref().map(|place| place.folder.clone())
    }

    /// What a reader must know of where scratch files go.
    pub fn caveats(&self) -> Vec<Caveat> {
        let place = self.scratch.as_ref();
        let beside = place.and_then(|place| Some((&place.folder, place.beside.as_ref()?)));
        let caveat = |(folder, data): (&PathBuf, &DataFolder)| Caveat::ScratchBesideData {
            server: data.server.to_string(),
            data: data.path.display().to_string(),
            folder: folder.display().to_string(),
        };
        beside.map(caveat).into_iter().collect()
    }

    /// What can be set and what is set now.
    pub fn offer(&self) -> Result<Offer, WorldError> {
        let mut offer = settings::offer(self);
        offer.own_loop = self.own_loop;
        offer.layout_bytes_per_second = LAYOUT_BYTES_PER_SECOND;
        offer.databases = DATABASES;
        // A loop device for each filesystem keeps all of them ready.
        if self.chain.kind == TargetKind::BlockDevice {
            offer.slow.insert(Factor::Filesystem);
        }
        offer.runs_servers = true;
        offer.atomic_write = databases::atomic_max(self);
        let (limit, why) = describe::size_limit(self)?;
        offer.default_size = match self.chain.kind {
            // A small device is used whole.
            TargetKind::BlockDevice => self.wanted_size().min(limit),
            TargetKind::Directory | TargetKind::File => self.wanted_size(),
        };
        offer.size_limit = Some((limit, why));
        Ok(offer)
    }

    /// The span of a trace, or what a job has.
    fn wanted_size(&self) -> Bytes {
        self.trace.as_ref().map_or(DEFAULT_SIZE, |trace| recorded::span(trace))
    }

    /// What a preset stands for on the plan's server and this storage.
    pub fn preset(&self, raw: &RawPlan, preset: Preset) -> Result<PresetFacts, WorldError> {
        databases::preset_facts(self, raw, preset)
    }

    /// Why a cell is not possible.
    pub fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<Refusal> {
        settings::refuse(self, cell).or_else(|| describe::refuse_workload(self, plan, cell))
    }

    /// The host and what is below the path.
    pub fn describe(&self, plan: &Plan) -> Result<Environment, WorldError> {
        describe::environment(self, plan)
    }

    /// What a run will change in a bare host: everything but scratch files and loop devices.
    pub fn intentions_beside_scratch(&self, plan: &Plan) -> Vec<Intention> {
        describe::intentions_beside_scratch(self, plan)
    }
}

impl RealWorld {
    /// Looks at a path; changes nothing.
    pub fn open(path: &Path, options: &Options) -> Result<RealWorld, WorldError> {
        let mut target = RealTarget::look(path, options)?;
        target.trace = options.replay.as_ref().map(recorded::load).transpose()?.map(Arc::new);
        Ok(RealWorld { target: Rc::new(target) })
    }
}

impl World for RealWorld {
    fn kind(&self) -> WorldKind {
        WorldKind::Real
    }

    fn offer(&self) -> Result<Offer, WorldError> {
        self.target.offer()
    }

    fn preset(&self, raw: &RawPlan, preset: Preset) -> Result<PresetFacts, WorldError> {
        self.target.preset(raw, preset)
    }

    fn refuse(&self, plan: &Plan, cell: &Cell) -> Option<Refusal> {
        self.target.refuse(plan, cell)
    }

    fn intentions(&self, plan: &Plan) -> Vec<Intention> {
        describe::intentions(&self.target, plan)
    }

    fn caveats(&self) -> Vec<Caveat> {
        self.target.caveats()
    }

    fn describe(&self, plan: &Plan) -> Result<Environment, WorldError> {
        self.target.describe(plan)
    }

    fn prepare<'a>(
        &'a self,
        plan: &'a Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Box<dyn Session + 'a>, WorldError> {
        Ok(Box::new(RealSession::prepare(Rc::clone(&self.target), plan, stop, watcher)?))
    }
}
