//! From a path to the devices that have a scheduler: a tree, written from the top down.

use crate::{
    BlockDevice, DeviceKind, DeviceNumber, DirectIo, Host, Mount,
    error::{Error, Result, io_error},
    mounts::{is_network, mount_of, mounts},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};
use units::Bytes;

/// Everything between a path and the drives, from the top down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// What was asked for, with all links followed.
    pub target: PathBuf,
    /// What is there.
    pub kind: TargetKind,
    /// The steps from the top down; a step's `depth` is one more than that of what stands on it.
    pub layers: Vec<Layer>,
    /// The devices on which schedulers and queue settings act for this target, in order of
    /// `layers`. For a loop device both it and the device below its file.
    pub scheduled: Vec<DeviceNumber>,
    /// Those of `scheduled` whose settings an experiment varies: on each way down the uppermost, which
    /// decides what those below it see. Not a cache's, which other volumes may share.
    #[serde(default)]
    pub varied: Vec<DeviceNumber>,
    /// Why there is no device below the target; `None` when there is one.
    pub no_device: Option<NoDevice>,
    /// O_DIRECT on the target itself.
    pub direct_io: Option<DirectIo>,
}

/// What a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetKind {
    /// A folder, in which scratch files can be made.
    Directory,
    /// A regular file.
    File,
    /// A block device itself.
    BlockDevice,
}

impl TargetKind {
    /// What a path leads to.
    pub fn of(path: &Path) -> Result<TargetKind> {
        let meta = fs::metadata(path).map_err(|source| missing(path, source))?;
        TargetKind::of_metadata(path, &meta)
    }

    fn of_metadata(path: &Path, meta: &fs::Metadata) -> Result<TargetKind> {
        Ok(match meta.file_type() {
            kind if kind.is_dir() => TargetKind::Directory,
            kind if kind.is_file() => TargetKind::File,
            kind if kind.is_block_device() => TargetKind::BlockDevice,
            _ => {
                return Err(Error::WrongKind {
                    path: path.to_owned(),
                    found: "neither file, folder nor block device".to_owned(),
                    needed: "one of them",
                });
            }
        })
    }
}

/// Whether a path does not exist, or exists and cannot be looked at.
fn missing(path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Missing { what: "file, folder or device", path: path.to_owned() }
        }
        _ => io_error("follow", path)(source),
    }
}

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// How far below the target, from 0.
    pub depth: u32,
    /// What it does for what stands on it, where that stands on several devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// What is there.
    pub what: LayerKind,
}

/// What one of several devices does for what stands on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A member of an array, a volume or a filesystem.
    Member,
    /// A way to the same medium.
    Path,
    /// What a cache stands before.
    Backing,
    /// The cache.
    Cache,
}

/// A filesystem or a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// A mounted filesystem.
    Filesystem(Filesystem),
    /// A block device.
    Device(Box<BlockDevice>),
}

/// A mounted filesystem with its room.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filesystem {
    /// Where and how it is mounted.
    pub mount: Mount,
    /// Its block size.
    pub block_size: Bytes,
    /// Its size.
    pub size: Bytes,
    /// What an ordinary user may still write.
    pub available: Bytes,
}

/// A target without a block device of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoDevice {
    /// The filesystem's type.
    pub filesystem: String,
    /// Why there is no device, and what can be measured all the same.
    pub reason: String,
}

impl Chain {
    /// Follows `target` down to its drives.
    pub fn of(host: &Host, target: &Path) -> Result<Chain> {
        let path = fs::canonicalize(target).map_err(|source| missing(target, source))?;
        let meta = fs::metadata(&path).map_err(io_error("look at", &path))?;
        let kind = TargetKind::of_metadata(&path, &meta)?;
        let mut walk = Walk::new(host)?;
        let mut no_device = None;
        if kind == TargetKind::BlockDevice {
            walk.device(DeviceNumber::from_raw(meta.rdev()), Step::top())?;
        } else {
            no_device = walk.filesystem(&path, DeviceNumber::from_raw(meta.dev()), Step::top())?;
        }
        let direct_io = DirectIo::of(&path, mount_at(&walk.layers)).ok();
        Ok(walk.chain(path, kind, no_device, direct_io))
    }

    /// The chain below a device named by its number.
    pub fn of_device(host: &Host, number: DeviceNumber) -> Result<Chain> {
        let mut walk = Walk::new(host)?;
        walk.device(number, Step::top())?;
        let name = host.device_folder(number)?;
        let node = host.path("/dev").join(name.file_name().unwrap_or_default());
        Ok(walk.chain(node, TargetKind::BlockDevice, None, None))
    }

    /// The block devices from the top down.
    pub fn devices(&self) -> impl Iterator<Item = &BlockDevice> {
        self.layers.iter().filter_map(|layer| match &layer.what {
            LayerKind::Device(device) => Some(device.as_ref()),
            LayerKind::Filesystem(_) => None,
        })
    }

    /// The filesystems from the top down.
    pub fn filesystems(&self) -> impl Iterator<Item = &Filesystem> {
        self.layers.iter().filter_map(|layer| match &layer.what {
            LayerKind::Filesystem(filesystem) => Some(filesystem),
            LayerKind::Device(_) => None,
        })
    }

    /// The filesystem that the target itself lies in.
    pub fn filesystem(&self) -> Option<&Filesystem> {
        match &self.layers.first()?.what {
            LayerKind::Filesystem(filesystem) => Some(filesystem),
            LayerKind::Device(_) => None,
        }
    }

    /// Filesystems in which the file behind a loop device lies and that stand on no device, each with that loop
    /// device.
    pub fn files_elsewhere(&self) -> impl Iterator<Item = (&BlockDevice, &Filesystem)> {
        self.layers.iter().zip(self.layers.iter().skip(1)).enumerate().filter_map(
            |(place, (above, layer))| match (&above.what, &layer.what) {
                (LayerKind::Device(device), LayerKind::Filesystem(filesystem)) => {
                    let below = self.layers.get(place + 2).is_some_and(|it| it.depth > layer.depth);
                    (!below).then_some((device.as_ref(), filesystem))
                }
                _ => None,
            },
        )
    }

    /// The devices whose settings an experiment varies, from the top.
    pub fn varied_devices(&self) -> impl Iterator<Item = &BlockDevice> {
        self.devices().filter(|device| self.varied.contains(&device.number))
    }

    /// The devices that stand on no other.
    pub fn bottoms(&self) -> impl Iterator<Item = &BlockDevice> {
        self.layers.iter().enumerate().filter_map(|(place, layer)| match &layer.what {
            LayerKind::Device(device) => {
                let below = self.layers.get(place + 1).is_some_and(|it| it.depth > layer.depth);
                (!below && device.below.is_empty()).then_some(device.as_ref())
            }
            LayerKind::Filesystem(_) => None,
        })
    }

    /// The devices that a run on this chain has to itself: those that it varies, and those at the bottom.
    pub fn claimed(&self) -> Vec<DeviceNumber> {
        let mut all: Vec<DeviceNumber> =
            self.varied_devices().chain(self.bottoms()).map(|device| device.number).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The first of the devices whose settings an experiment varies.
    pub fn first_varied_device(&self) -> Option<&BlockDevice> {
        self.varied_devices().next()
    }
}

fn mount_at(layers: &[Layer]) -> Option<&Mount> {
    match &layers.first()?.what {
        LayerKind::Filesystem(filesystem) => Some(&filesystem.mount),
        LayerKind::Device(_) => None,
    }
}

/// Where a walk stands.
#[derive(Clone, Copy)]
struct Step {
    depth: u32,
    role: Option<Role>,
    /// Whether something above has a scheduler, or is a cache: then what follows is not varied.
    decided_above: bool,
}

impl Step {
    fn top() -> Self {
        Step { depth: 0, role: None, decided_above: false }
    }

    fn down(self, role: Option<Role>) -> Self {
        Step { depth: self.depth + 1, role, ..self }
    }
}

struct Walk<'a> {
    host: &'a Host,
    mounts: Vec<Mount>,
    layers: Vec<Layer>,
    seen: BTreeSet<DeviceNumber>,
    scheduled: Vec<DeviceNumber>,
    varied: Vec<DeviceNumber>,
}

impl<'a> Walk<'a> {
    fn new(host: &'a Host) -> Result<Self> {
        Ok(Walk {
            host,
            mounts: mounts(host)?,
            layers: Vec::new(),
            seen: BTreeSet::new(),
            scheduled: Vec::new(),
            varied: Vec::new(),
        })
    }

    fn chain(
        self,
        target: PathBuf,
        kind: TargetKind,
        no_device: Option<NoDevice>,
        direct_io: Option<DirectIo>,
    ) -> Chain {
        let Walk { layers, scheduled, varied, .. } = self;
        Chain { target, kind, layers, scheduled, varied, no_device, direct_io }
    }

    /// Adds the filesystem of `path` and what it lies on.
    fn filesystem(
        &mut self,
        path: &Path,
        device: DeviceNumber,
        step: Step,
    ) -> Result<Option<NoDevice>> {
        let inside = self.host.inside(path);
        let Some(mount) = mount_of(&self.mounts, &inside, device).cloned() else {
            return Err(Error::Missing { what: "mounted filesystem", path: path.to_owned() });
        };
        let room =
            rustix::fs::statvfs(path).map_err(|e| io_error("ask the size of", path)(e.into()))?;
        let below = self.devices_of(&mount, device);
        let kind = mount.kind.clone();
        let device_name = mount.source.clone();
        self.layers.push(Layer {
            depth: step.depth,
            role: step.role,
            what: LayerKind::Filesystem(Filesystem {
                mount,
                block_size: Bytes(room.f_frsize),
                size: Bytes(room.f_blocks * room.f_frsize),
                available: Bytes(room.f_bavail * room.f_frsize),
            }),
        });
        if below.is_empty() {
            let reason = no_device_reason(&kind, &device_name);
            return Ok(Some(NoDevice { filesystem: kind, reason }));
        }
        let role = (below.len() > 1).then_some(Role::Member);
        for number in below {
            self.device(number, step.down(role))?;
        }
        Ok(None)
    }

    /// The devices of a filesystem. btrfs and others give their files numbers of no device; then
    /// the mount's source says, for bcachefs all of them, and for btrfs of several devices its folder
    /// in sysfs.
    fn devices_of(&self, mount: &Mount, device: DeviceNumber) -> Vec<DeviceNumber> {
        let sources = mount.sources(self.host);
        if sources.len() > 1 {
            return sources;
        }
        for number in [device, mount.device] {
            if !number.is_anonymous() && self.host.device_folder(number).is_ok() {
                return vec![number];
            }
        }
        let Some(source) = sources.first() else {
            return Vec::new();
        };
        if mount.kind == "btrfs" {
            let members = self.btrfs_members(*source);
            if !members.is_empty() {
                return members;
            }
        }
        sources
    }

    fn btrfs_members(&self, member: DeviceNumber) -> Vec<DeviceNumber> {
        let base = self.host.path("/sys/fs/btrfs");
        crate::tree::names(&base)
            .iter()
            .map(|uuid| crate::tree::linked_devices(base.join(uuid).join("devices")))
            .find(|members| members.contains(&member))
            .unwrap_or_default()
    }

    /// Adds a device and what it stands on, each device once.
    fn device(&mut self, number: DeviceNumber, step: Step) -> Result<()> {
        if !self.seen.insert(number) {
            return Ok(());
        }
        let device = BlockDevice::read(self.host, number)?;
        let below: Vec<(DeviceNumber, Option<Role>)> =
            device.below.iter().map(|it| (*it, self.role(&device, *it))).collect();
        let file = device.loop_state().and_then(|state| state.backing_file.clone());
        let mut step =
            Step { decided_above: step.decided_above || step.role == Some(Role::Cache), ..step };
        let is_partition = matches!(device.kind, DeviceKind::Partition { .. });
        if device.has_scheduler() && !is_partition {
            self.scheduled.push(number);
            if !step.decided_above {
                self.varied.push(number);
            }
            step.decided_above = true;
        }
        let layer = LayerKind::Device(Box::new(device));
        self.layers.push(Layer { depth: step.depth, role: step.role, what: layer });
        for (number, role) in below {
            self.device(number, step.down(role))?;
        }
        // A deleted backing file, or one of another mount namespace, cannot be followed; the loop
        // device's own state says so.
        if let Some(file) = file {
            let path = self.host.path(&file);
            if let Ok(meta) = fs::metadata(&path) {
                if meta.file_type().is_block_device() {
                    self.device(DeviceNumber::from_raw(meta.rdev()), step.down(None))?;
                } else {
                    let device = DeviceNumber::from_raw(meta.dev());
                    self.filesystem(&path, device, step.down(None))?;
                }
            }
        }
        Ok(())
    }

    /// What `below` does for `device`. A backing device of bcache has a cache mode, a cache has none
    /// (the kernel's documentation, bcache).
    fn role(&self, device: &BlockDevice, below: DeviceNumber) -> Option<Role> {
        let multipath =
            matches!(&device.kind, DeviceKind::Mapper { flavour, .. } if flavour == "mpath");
        if matches!(below, DeviceNumber::NvmePath { .. }) || multipath {
            return Some(Role::Path);
        }
        if device.name.starts_with("bcache") {
            let folder = self.host.device_folder(below).ok()?;
            let backing = folder.join("bcache/cache_mode").exists();
            return Some(if backing { Role::Backing } else { Role::Cache });
        }
        (device.below.len() > 1).then_some(Role::Member)
    }
}

fn no_device_reason(kind: &str, source: &str) -> String {
    let what = without_device(kind, source);
    format!("{kind}: {what}. Scheduler, queue, write-back throttling and read-ahead drop out here")
}

/// Where files of such a filesystem are.
pub(crate) fn without_device(kind: &str, source: &str) -> String {
    match kind {
        "tmpfs" | "ramfs" | "hugetlbfs" => "its files are memory".to_owned(),
        "overlay" => {
            "it shows folders of other filesystems, which this mount namespace may not see \
             (a container's / is like this): run on the host, or give a volume"
                .to_owned()
        }
        kind if is_network(kind) => format!(
            "its files are on another machine ({source}), which has the disks and schedulers"
        ),
        "zfs" => "ZFS schedules the requests of its pools itself: see zpool status for its disks"
            .to_owned(),
        kind if kind.starts_with("fuse") => {
            format!("a program ({source}) serves its files, and only that knows where they are")
        }
        _ => "the kernel names no block device for it".to_owned(),
    }
}
