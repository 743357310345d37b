//! From a path to the devices that have a scheduler.

use crate::{
    BlockDevice, DeviceKind, DeviceNumber, DirectIo, Host, Mount,
    error::{Error, Result, io_error},
    mounts::{mount_of, mounts},
    tree::block_node,
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
    /// What is there.
    pub what: LayerKind,
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
        let mut walk =
            Walk { host, mounts: mounts(host)?, layers: Vec::new(), seen: BTreeSet::new() };
        let mut no_device = None;
        if kind == TargetKind::BlockDevice {
            walk.device(DeviceNumber::from_raw(meta.rdev()), 0)?;
        } else {
            no_device = walk.filesystem(&path, DeviceNumber::from_raw(meta.dev()), 0)?;
        }
        let direct_io = DirectIo::of(&path, mount_at(&walk.layers)).ok();
        let mut chain = Chain {
            target: path,
            kind,
            layers: walk.layers,
            scheduled: Vec::new(),
            no_device,
            direct_io,
        };
        chain.scheduled = chain
            .devices()
            .filter(|device| {
                device.has_scheduler() && !matches!(device.kind, DeviceKind::Partition { .. })
            })
            .map(|device| device.number)
            .collect();
        Ok(chain)
    }

    /// The chain below a device named by its number.
    pub fn of_device(host: &Host, number: DeviceNumber) -> Result<Chain> {
        let mut walk =
            Walk { host, mounts: mounts(host)?, layers: Vec::new(), seen: BTreeSet::new() };
        walk.device(number, 0)?;
        let mut chain = Chain {
            target: host
                .path("/dev")
                .join(host.device_folder(number)?.file_name().unwrap_or_default()),
            kind: TargetKind::BlockDevice,
            layers: walk.layers,
            scheduled: Vec::new(),
            no_device: None,
            direct_io: None,
        };
        chain.scheduled = chain
            .devices()
            .filter(|device| {
                device.has_scheduler() && !matches!(device.kind, DeviceKind::Partition { .. })
            })
            .map(|device| device.number)
            .collect();
        Ok(chain)
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

    /// The topmost device with a scheduler: the one whose settings an experiment varies.
    pub fn scheduled_device(&self) -> Option<&BlockDevice> {
        let first = self.scheduled.first()?;
        self.devices().find(|device| device.number == *first)
    }
}

fn mount_at(layers: &[Layer]) -> Option<&Mount> {
    match &layers.first()?.what {
        LayerKind::Filesystem(filesystem) => Some(&filesystem.mount),
        LayerKind::Device(_) => None,
    }
}

struct Walk<'a> {
    host: &'a Host,
    mounts: Vec<Mount>,
    layers: Vec<Layer>,
    seen: BTreeSet<DeviceNumber>,
}

impl Walk<'_> {
    /// Adds the filesystem of `path` and what it lies on.
    fn filesystem(
        &mut self,
        path: &Path,
        device: DeviceNumber,
        depth: u32,
    ) -> Result<Option<NoDevice>> {
        let Some(mount) = mount_of(&self.mounts, path, device).cloned() else {
            return Err(Error::Missing { what: "mounted filesystem", path: path.to_owned() });
        };
        let room =
            rustix::fs::statvfs(path).map_err(|e| io_error("ask the size of", path)(e.into()))?;
        let below = self.devices_of(&mount, device);
        let kind = mount.kind.clone();
        let device_name = mount.source.clone();
        self.layers.push(Layer {
            depth,
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
        for number in below {
            self.device(number, depth + 1)?;
        }
        Ok(None)
    }

    /// The devices of a filesystem. btrfs and others give their files numbers of no device; then
    /// the mount's source says, and for btrfs of several devices its folder in sysfs.
    fn devices_of(&self, mount: &Mount, device: DeviceNumber) -> Vec<DeviceNumber> {
        for number in [device, mount.device] {
            if number.major != 0 && self.host.device_folder(number).is_ok() {
                return vec![number];
            }
        }
        let Ok(Some(source)) = block_node(self.host.path(&mount.source)) else {
            return Vec::new();
        };
        if mount.kind == "btrfs" {
            let members = self.btrfs_members(source);
            if !members.is_empty() {
                return members;
            }
        }
        vec![source]
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
    fn device(&mut self, number: DeviceNumber, depth: u32) -> Result<()> {
        if !self.seen.insert(number) {
            return Ok(());
        }
        let device = BlockDevice::read(self.host, number)?;
        let below = device.below.clone();
        let file = device.loop_state().and_then(|state| state.backing_file.clone());
        self.layers.push(Layer { depth, what: LayerKind::Device(Box::new(device)) });
        for number in below {
            self.device(number, depth + 1)?;
        }
        // A deleted backing file, or one of another mount namespace, cannot be followed; the loop
        // device's own state says so.
        if let Some(file) = file
            && let Ok(meta) = fs::metadata(self.host.path(&file))
        {
            if meta.file_type().is_block_device() {
                self.device(DeviceNumber::from_raw(meta.rdev()), depth + 1)?;
            } else {
                self.filesystem(&file, DeviceNumber::from_raw(meta.dev()), depth + 1)?;
            }
        }
        Ok(())
    }
}

fn no_device_reason(kind: &str, source: &str) -> String {
    let what = match kind {
        "tmpfs" | "ramfs" | "hugetlbfs" => "its files are memory".to_owned(),
        "overlay" => {
            "it shows folders of other filesystems, which this mount namespace may not see \
             (a container's / is like this): run on the host, or give a volume"
                .to_owned()
        }
        "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "virtiofs" | "ceph" | "glusterfs" | "lustre" => {
            format!(
                "its files are on another machine ({source}), which has the disks and schedulers"
            )
        }
        "zfs" => "ZFS schedules the requests of its pools itself: see zpool status for its disks"
            .to_owned(),
        kind if kind.starts_with("fuse") => {
            format!("a program ({source}) serves its files, and only that knows where they are")
        }
        _ => "the kernel names no block device for it".to_owned(),
    };
    format!("{kind}: {what}. Scheduler, queue, write-back throttling and read-ahead drop out here")
}
