//! What load goes to: a scratch file, a loop device, or a block device; with a filesystem made for it
//! where that is a factor.

use super::{RealTarget, settings::Known};
use crate::{Watcher, WorldError, world::Unwatched};
use host::{
    Changes, ClearedDevice, DeviceNumber, HeldFolder, Host, LoopOptions, MountedFilesystem,
    QueueFolder, ScratchDevice,
};
use load::{LayOut, LoadError, Target, lay_out};
use plan::{Cell, Factor, Filesystem, FilesystemKind, Level, Plan};
use record::Warning;
use std::{collections::BTreeMap, os::fd::AsFd, path::PathBuf, sync::atomic::AtomicBool};
use units::Bytes;

/// Something load can go to.
pub struct Stage {
    /// The file or device.
    pub target: Target,
    /// The folder in which a database's data go; none on a bare device.
    pub folder: Option<HeldFolder>,
    /// The file of the job beside a database.
    pub beside: Option<Target>,
    /// The devices whose settings are varied, with what is known of each one's settings.
    pub varied: Vec<(DeviceNumber, Known)>,
    /// The other devices below that have settings: they must stay what they are.
    pub others: Vec<DeviceNumber>,
    /// What a reader must know of it.
    pub warnings: Vec<Warning>,
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
const DEFAULT_FILESYSTEM: &str = "ext4";

/// The filesystem that is made for a cell: what it names, and for a database on a device of its own
/// one in any case.
pub fn filesystem_of(target: &RealTarget, plan: &Plan, cell: &Cell) -> Option<Level> {
    let on_device = target.own_loop || target.folder().is_none();
    let default =
        || (plan.is_of_databases() && on_device).then(|| Level(DEFAULT_FILESYSTEM.to_owned()));
    cell.level(&Factor::Filesystem).cloned().or_else(default)
}

/// The filesystems that are made for a plan.
pub fn filesystems(target: &RealTarget, plan: &Plan) -> Vec<Level> {
    let mut levels: Vec<Level> =
        plan.cells.iter().filter_map(|cell| filesystem_of(target, plan, cell)).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

impl Stages {
    /// Makes and lays out what the plan needs.
    pub fn prepare(
        target: &RealTarget,
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
        let filesystems = filesystems(target, plan);
        let mut filler = Filler { plan, stop, watcher };
        let Some(folder) = target.folder() else {
            let held = cleared(target)?;
            if !filesystems.is_empty() {
                stages.device = Some(ScratchDevice::of_cleared(held));
                return Ok(stages);
            }
            let load = held_target(&held, plan.size)?;
            if !target.sparse {
                filler.fill(&load)?;
            }
            stages.ready.insert(None, Stage::on(&target.host, load, &Devices::of(target))?);
            stages._held = Some(held);
            return Ok(stages);
        };
        let scratch = changes.scratch_folder(&folder).map_err(WorldError::fatal)?.held;
        if !target.own_loop {
            let stage = folder_stage(target, scratch, &Devices::of(target), &mut filler)?;
            stages.ready.insert(None, stage);
            return Ok(stages);
        }
        if filesystems.is_empty() {
            let stage = loop_stage(target, changes, (&scratch, "data"), None, &mut filler)?;
            stages.ready.insert(None, stage);
        }
        for (place, level) in filesystems.into_iter().enumerate() {
            let file = format!("data-{place}");
            let stage = loop_stage(target, changes, (&scratch, &file), Some(&level), &mut filler)?;
            stages.ready.insert(Some(level), stage);
        }
        Ok(stages)
    }

    /// Makes the stage of a filesystem the current one: on the user's device it is made now.
    pub fn enter(
        &mut self,
        target: &RealTarget,
        changes: &mut Changes,
        plan: &Plan,
        level: Option<&Level>,
    ) -> Result<(), WorldError> {
        let made_already = self.ready.contains_key(&level.cloned());
        if let (Some(level), Some(device), false) = (level, self.device.clone(), made_already) {
            self.ready.clear();
            if let Some(mounted) = self.mounted.take() {
                changes.unmount(mounted).map_err(WorldError::fatal)?;
            }
            let mounted = mount(changes, &device, level)?;
            let stop = AtomicBool::new(false);
            let mut filler = Filler { plan, stop: &stop, watcher: &mut Unwatched };
            let stage = filesystem_stage(target, &mounted, &Devices::of(target), &mut filler)?;
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

    /// The same, to learn of its settings.
    pub fn current_mut(&mut self) -> Option<&mut Stage> {
        self.ready.get_mut(&self.current)
    }

    /// Takes away what was made on the user's device, so that it is as unclaimed as it was.
    pub fn leave(mut self, changes: &mut Changes) -> Result<(), WorldError> {
        // Their files are held open in what is unmounted now.
        self.ready.clear();
        if let Some(mounted) = self.mounted.take() {
            changes.unmount(mounted).map_err(WorldError::fatal)?;
        }
        match &self.device {
            Some(device) => changes.wipe(device).map_err(WorldError::fatal),
            None => Ok(()),
        }
    }
}

/// Devices with settings.
struct Devices {
    varied: Vec<DeviceNumber>,
    others: Vec<DeviceNumber>,
}

impl Devices {
    /// Those of the target as it is.
    fn of(target: &RealTarget) -> Devices {
        let varied = target.chain.varied.clone();
        let others =
            target.chain.scheduled.iter().copied().filter(|it| !varied.contains(it)).collect();
        Devices { varied, others }
    }

    /// A loop device of our own in front of them.
    fn below_loop(target: &RealTarget, number: DeviceNumber) -> Devices {
        Devices { varied: vec![number], others: target.chain.scheduled.clone() }
    }
}

impl Stage {
    /// On these devices, whose settings are noted.
    fn on(host: &Host, target: Target, devices: &Devices) -> Result<Stage, WorldError> {
        let known = |number: &DeviceNumber| {
            let folder = QueueFolder::of(host, *number).map_err(WorldError::fatal)?;
            Ok((*number, Known::of(folder.read_all())))
        };
        let varied = devices.varied.iter().map(known).collect::<Result<_, _>>()?;
        let others = devices.others.clone();
        Ok(Stage { target, folder: None, beside: None, varied, others, warnings: Vec::new() })
    }

    /// The devices whose settings are varied and whose requests are counted.
    pub fn devices(&self) -> Vec<DeviceNumber> {
        self.varied.iter().map(|(number, _)| *number).collect()
    }

    /// All devices with settings: those that are varied first.
    pub fn all_devices(&self) -> Vec<DeviceNumber> {
        self.devices().into_iter().chain(self.others.iter().copied()).collect()
    }
}

/// A loop device on a file in a scratch folder, and a filesystem on it where a level names one.
fn loop_stage(
    target: &RealTarget,
    changes: &mut Changes,
    (scratch, name): (&HeldFolder, &str),
    level: Option<&Level>,
    filler: &mut Filler,
) -> Result<Stage, WorldError> {
    let size = filler.plan.size;
    let room = if level.is_some() { size + filesystem_needs(size) } else { size };
    let file = new_file(scratch, name, room)?;
    filler.fill(&file)?;
    let backing = file.held.as_ref().ok_or_else(|| WorldError::fatal(NotHeld))?;
    // A device's settings outlive its file: on one that others have used, the baseline would be theirs.
    let fresh = LoopOptions { added: true, ..LoopOptions::default() };
    let device = changes
        .attach_open(backing.as_fd(), file.path.clone(), fresh)
        .map_err(WorldError::fatal)?;
    let devices = Devices::below_loop(target, device.number);
    let Some(level) = level else {
        return Stage::on(&target.host, Target::new(&device.node, size), &devices);
    };
    let device = ScratchDevice::of_loop(&target.host, &device).map_err(WorldError::fatal)?;
    let mounted = mount(changes, &device, level)?;
    filesystem_stage(target, &mounted, &devices, filler)
}

/// A file that was made here is not held.
#[derive(Debug, thiserror::Error)]
#[error("a file that was made for this run is not held open")]
struct NotHeld;

/// A file that was not there, empty and held: load goes to it, whatever comes under its name.
pub fn new_file(folder: &HeldFolder, name: &str, size: Bytes) -> Result<Target, WorldError> {
    let file = folder.create_file(name).map_err(WorldError::fatal)?;
    Ok(Target::held(folder.path().join(name), size, file))
}

/// Makes a filesystem and mounts it.
fn mount(
    changes: &mut Changes,
    device: &ScratchDevice,
    level: &Level,
) -> Result<MountedFilesystem, WorldError> {
    let wanted: Filesystem = level.0.parse().map_err(WorldError::fatal)?;
    let kind = host_kind(wanted.kind);
    changes
        .make_filesystem(device, kind, &wanted.mkfs)
        .and_then(|()| changes.mount(device, kind, &wanted.mount))
        .map_err(|source| WorldError::fatal(NotMounted { filesystem: level.0.clone(), source }))
}

/// A filesystem could not be made or mounted.
#[derive(Debug, thiserror::Error)]
#[error("the filesystem {filesystem} could not be made or mounted")]
struct NotMounted {
    filesystem: String,
    source: host::Error,
}

/// The host's kind of a filesystem.
pub fn host_kind(kind: FilesystemKind) -> host::FilesystemKind {
    match kind {
        FilesystemKind::Ext2 => host::FilesystemKind::Ext2,
        FilesystemKind::Ext3 => host::FilesystemKind::Ext3,
        FilesystemKind::Ext4 => host::FilesystemKind::Ext4,
        FilesystemKind::Xfs => host::FilesystemKind::Xfs,
        FilesystemKind::Btrfs => host::FilesystemKind::Btrfs,
    }
}

/// A laid-out file in a mounted filesystem.
fn filesystem_stage(
    target: &RealTarget,
    mounted: &MountedFilesystem,
    devices: &Devices,
    filler: &mut Filler,
) -> Result<Stage, WorldError> {
    let folder = HeldFolder::open(&mounted.point).map_err(WorldError::fatal)?;
    let mut stage = folder_stage(target, folder, devices, filler)?;
    stage.warnings = mounted
        .unsafe_options
        .iter()
        .map(|option| Warning::UnsafeMountOption { option: option.clone() })
        .collect();
    Ok(stage)
}

/// What trials read and write in a folder: a laid-out file; or a database, and a laid-out file where a job runs
/// beside it.
fn folder_stage(
    target: &RealTarget,
    folder: HeldFolder,
    devices: &Devices,
    filler: &mut Filler,
) -> Result<Stage, WorldError> {
    let plan = filler.plan;
    let mut make = |name: &str, size| {
        let file = new_file(&folder, name, size)?;
        filler.fill(&file).map(|()| file)
    };
    let (load, beside) = match plan.is_of_databases() {
        false => (make("data", plan.size)?, None),
        true => {
            let beside = plan.beside_size().map(|size| make("beside", size)).transpose()?;
            (Target::new(folder.path(), plan.size), beside)
        }
    };
    let stage = Stage::on(&target.host, load, devices)?;
    Ok(Stage { folder: Some(folder), beside, ..stage })
}

/// The user's block device, once every guard clears it.
fn cleared(target: &RealTarget) -> Result<ClearedDevice, WorldError> {
    let cleared = host::clear(&target.host, &target.path, target.confirm.as_deref());
    cleared.map_err(WorldError::fatal)?.map_err(|objections| {
        WorldError::usage(Guarded { device: target.path.clone(), objections })
    })
}

/// Guards refuse to let a device be overwritten.
#[derive(Debug, thiserror::Error)]
#[error("{} will not be overwritten:\n{}", device.display(), list(objections))]
struct Guarded {
    device: PathBuf,
    objections: Vec<host::Objection>,
}

fn list(objections: &[host::Objection]) -> String {
    let line = |it: &host::Objection| format!("  {} ({}); {}", it.what, it.why, it.fix);
    objections.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A target that goes on meaning the device that was cleared.
fn held_target(held: &ClearedDevice, size: Bytes) -> Result<Target, WorldError> {
    let device_fd = held.file().try_clone().map_err(WorldError::fatal)?;
    Ok(Target::held(&held.node, size, device_fd))
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
            Err(error) => Err(WorldError::fatal(error)),
        }
    }
}
