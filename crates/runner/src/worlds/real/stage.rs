//! What load goes to: a scratch file, a loop device, or a block device; with a filesystem made for it
//! where that is a factor.

use super::{RealWorld, fatal};
use crate::{Watcher, WorldError};
use host::{
    Changes, ClearedDevice, DeviceNumber, Host, LoopOptions, MountedFilesystem, QueueFolder,
    ScratchDevice, Setting,
};
use load::{LayOut, LoadError, Target, lay_out};
use plan::{Cell, Factor, Filesystem, Level, Plan};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};
use units::Bytes;

/// Something load can go to.
pub struct Stage {
    /// The file or device.
    pub target: Target,
    /// The folder in which a database's data go.
    pub folder: PathBuf,
    /// The device whose settings are varied; none where there is none.
    pub device: Option<DeviceNumber>,
    /// The other devices below that have settings: they must stay what they are.
    pub below: Vec<DeviceNumber>,
    /// The device's settings before anything was changed.
    pub before: BTreeMap<Setting, String>,
    /// What a reader must know of it.
    pub warnings: Vec<String>,
}

/// A stage for each filesystem that is compared; a single one without a name where none is.
pub struct Stages {
    ready: BTreeMap<Option<Level>, Stage>,
    current: Option<Level>,
    /// The user's block device, held exclusively as long as we write to it.
    _held: Option<ClearedDevice>,
    /// The user's block device on which filesystems are made: one at a time.
    device: Option<ScratchDevice>,
    mounted: Option<MountedFilesystem>,
}

/// What a filesystem that is made may need beside the scratch file: its own tables, and the least
/// that the mkfs programs take.
pub fn filesystem_needs(size: Bytes) -> Bytes {
    Bytes(size.0 / 8) + Bytes::from_mib(384)
}

/// The filesystem of a database's data on a device, where none is compared.
const FILESYSTEM_USUAL: &str = "ext4";

/// The filesystem that is made for a cell: what it names, and for a database on a device of its own
/// one in any case.
pub fn filesystem_of(world: &RealWorld, plan: &Plan, cell: &Cell) -> Option<Level> {
    let on_device = world.own_loop || world.folder().is_none();
    let usual = || (plan.is_of_databases() && on_device).then(|| super::level(FILESYSTEM_USUAL));
    cell.level(&Factor::Filesystem).cloned().or_else(usual)
}

/// The filesystems that are made for a plan.
pub fn filesystems(world: &RealWorld, plan: &Plan) -> Vec<Level> {
    let mut levels: Vec<Level> =
        plan.cells.iter().filter_map(|cell| filesystem_of(world, plan, cell)).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

impl Stages {
    /// Makes and lays out what the plan needs.
    pub fn prepare(
        world: &RealWorld,
        changes: &mut Changes,
        plan: &Plan,
        stop: &AtomicBool,
        watcher: &mut dyn Watcher,
    ) -> Result<Stages, WorldError> {
        let mut stages = Stages {
            ready: BTreeMap::new(),
            current: None,
            _held: None,
            device: None,
            mounted: None,
        };
        let filesystems = filesystems(world, plan);
        let mut filler = Filler { plan, stop, watcher };
        let Some(folder) = world.folder() else {
            let held = cleared(world)?;
            if !filesystems.is_empty() {
                stages.device = Some(ScratchDevice::of_cleared(held));
                return Ok(stages);
            }
            let target = held_target(&held, plan.size)?;
            if !world.sparse {
                filler.fill(&target)?;
            }
            stages.ready.insert(None, Stage::on(&world.host, target, &world.chain.scheduled)?);
            stages._held = Some(held);
            return Ok(stages);
        };
        let scratch = changes.scratch_folder(&folder).map_err(fatal)?;
        if !world.own_loop {
            let target = Target::new(scratch.path.join("data"), plan.size);
            if !plan.is_of_databases() {
                filler.fill(&target)?;
            }
            stages.ready.insert(None, Stage::on(&world.host, target, &world.chain.scheduled)?);
            return Ok(stages);
        }
        if filesystems.is_empty() {
            let stage = loop_stage(world, changes, &scratch.path.join("data"), None, &mut filler)?;
            stages.ready.insert(None, stage);
        }
        for (place, level) in filesystems.into_iter().enumerate() {
            let file = scratch.path.join(format!("data-{place}"));
            let stage = loop_stage(world, changes, &file, Some(&level), &mut filler)?;
            stages.ready.insert(Some(level), stage);
        }
        Ok(stages)
    }

    /// Makes the stage of a filesystem the current one: on the user's device it is made now.
    pub fn enter(
        &mut self,
        world: &RealWorld,
        changes: &mut Changes,
        plan: &Plan,
        level: Option<&Level>,
    ) -> Result<(), WorldError> {
        let made_already = self.ready.contains_key(&level.cloned());
        if let (Some(level), Some(device), false) = (level, self.device.clone(), made_already) {
            self.ready.clear();
            if let Some(mounted) = self.mounted.take() {
                changes.unmount(mounted).map_err(fatal)?;
            }
            let mounted = mount(changes, &device, level)?;
            let stop = AtomicBool::new(false);
            let mut filler = Filler { plan, stop: &stop, watcher: &mut Silent };
            let stage = filesystem_stage(world, &mounted, &world.chain.scheduled, &mut filler)?;
            self.mounted = Some(mounted);
            self.ready.insert(Some(level.clone()), stage);
        }
        self.current = level.cloned();
        Ok(())
    }

    /// The stage in use.
    pub fn current(&self) -> Option<&Stage> {
        self.ready.get(&self.current)
    }

    /// Takes away what was made on the user's device, so that it is as unclaimed as it was.
    pub fn leave(mut self, changes: &mut Changes) -> Result<(), WorldError> {
        if let Some(mounted) = self.mounted.take() {
            changes.unmount(mounted).map_err(fatal)?;
        }
        match &self.device {
            Some(device) => changes.wipe(device).map_err(fatal),
            None => Ok(()),
        }
    }
}

impl Stage {
    /// On the first of `scheduled`, whose settings are noted.
    fn on(host: &Host, target: Target, scheduled: &[DeviceNumber]) -> Result<Stage, WorldError> {
        let device = scheduled.first().copied();
        let before = match device {
            Some(number) => QueueFolder::of(host, number).map_err(fatal)?.read_all(),
            None => BTreeMap::new(),
        };
        let below = scheduled.iter().skip(1).copied().collect();
        let folder = target.path.parent().map(PathBuf::from).unwrap_or_default();
        Ok(Stage { target, folder, device, below, before, warnings: Vec::new() })
    }
}

/// A loop device on `file`, and a filesystem on it where a level names one.
fn loop_stage(
    world: &RealWorld,
    changes: &mut Changes,
    file: &Path,
    level: Option<&Level>,
    filler: &mut Filler,
) -> Result<Stage, WorldError> {
    let size = filler.plan.size;
    let room = if level.is_some() { size + filesystem_needs(size) } else { size };
    filler.fill(&Target::new(file, room))?;
    let device = changes.attach(file, LoopOptions::default()).map_err(fatal)?;
    let mut scheduled = vec![device.number];
    scheduled.extend(&world.chain.scheduled);
    let Some(level) = level else {
        return Stage::on(&world.host, Target::new(&device.node, size), &scheduled);
    };
    let device = ScratchDevice::of_loop(&world.host, &device).map_err(fatal)?;
    let mounted = mount(changes, &device, level)?;
    filesystem_stage(world, &mounted, &scheduled, filler)
}

/// Makes a filesystem and mounts it.
fn mount(
    changes: &mut Changes,
    device: &ScratchDevice,
    level: &Level,
) -> Result<MountedFilesystem, WorldError> {
    let wanted: Filesystem =
        level.0.parse().map_err(|error: plan::WordError| WorldError::Fatal(error.to_string()))?;
    let kind = host_kind(&wanted).map_err(WorldError::Fatal)?;
    changes
        .make_filesystem(device, kind, &wanted.mkfs)
        .and_then(|()| changes.mount(device, kind, &wanted.mount))
        .map_err(|error| WorldError::Fatal(format!("filesystem {level}: {error}")))
}

/// The host's kind of a filesystem.
pub fn host_kind(wanted: &Filesystem) -> Result<host::FilesystemKind, String> {
    wanted.kind.to_string().parse().map_err(|error: host::UnknownFilesystem| error.to_string())
}

/// A laid-out file in a mounted filesystem.
fn filesystem_stage(
    world: &RealWorld,
    mounted: &MountedFilesystem,
    scheduled: &[DeviceNumber],
    filler: &mut Filler,
) -> Result<Stage, WorldError> {
    let target = Target::new(mounted.point.join("data"), filler.plan.size);
    if !filler.plan.is_of_databases() {
        filler.fill(&target)?;
    }
    let mut stage = Stage::on(&world.host, target, scheduled)?;
    stage.warnings.clone_from(&mounted.warnings);
    Ok(stage)
}

/// The user's block device, once every guard clears it.
fn cleared(world: &RealWorld) -> Result<ClearedDevice, WorldError> {
    let cleared = host::clear(&world.host, &world.target, world.confirm.as_deref());
    cleared.map_err(fatal)?.map_err(|objections| {
        let all: Vec<String> = objections
            .iter()
            .map(|objection| {
                format!("  {} ({}); {}", objection.what, objection.why, objection.mend)
            })
            .collect();
        WorldError::Usage(format!(
            "{} would be overwritten, and is not:\n{}",
            world.target.display(),
            all.join("\n")
        ))
    })
}

/// A target that goes on meaning the device that was cleared.
fn held_target(held: &ClearedDevice, size: Bytes) -> Result<Target, WorldError> {
    let device_fd = held.file().try_clone().map_err(|error| {
        WorldError::Fatal(format!("cannot hold {}: {error}", held.node.display()))
    })?;
    Ok(Target { path: held.node.clone(), size, device_fd: Some(device_fd.into()) })
}

/// Writes files and devices full of random data, so that no trial measures holes or first
/// allocations.
struct Filler<'a> {
    plan: &'a Plan,
    stop: &'a AtomicBool,
    watcher: &'a mut dyn Watcher,
}

impl Filler<'_> {
    fn fill(&mut self, target: &Target) -> Result<(), WorldError> {
        let what = LayOut { target, seed: self.plan.seed, reuse: false };
        let (watcher, size) = (&mut *self.watcher, target.size);
        match lay_out(&what, &mut |done| watcher.laying_out(done, size), self.stop) {
            Ok(_) => Ok(()),
            Err(LoadError::Stopped) => Err(WorldError::Interrupted),
            Err(error) => Err(WorldError::Fatal(error.to_string())),
        }
    }
}

/// Watches nothing: laying out again between trials is not told.
struct Silent;

impl Watcher for Silent {
    fn laying_out(&mut self, _: Bytes, _: Bytes) {}
    fn trial_begins(&mut self, _: &Plan, _: u32, _: usize, _: usize, _: usize) {}
    fn live(&mut self, _: &crate::Live) {}
    fn trial_ended(&mut self, _: &record::Trial) {}
    fn note(&mut self, _: &str) {}
}
