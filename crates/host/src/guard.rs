//! Before a block device is written to: every reason not to.
//!
//! A device is looked at while it is held open exclusively and read-only, so that looking changes
//! nothing: not a byte, and no event that would make udev look again. Only a device without any
//! objection is opened for writing, exclusively, and handed over held.

use crate::{
    BlockDevice, DeviceKind, DeviceNumber, Host, Result, Signature, SignatureKind,
    error::io_error,
    exclusive::{open_exclusively, try_exclusively},
    mounts::{Mount, mount_above, mount_of, mounts},
    open_files::opened_by,
    signature::{begins_empty, signatures},
    tree::block_node,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

/// A reason not to write to a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// Which guard objects.
    pub guard: Guard,
    /// What was found.
    pub what: String,
    /// Why that matters.
    pub why: String,
    /// What to do when the device is meant all the same.
    pub fix: String,
}

/// The guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// It, a partition of it or something on it is mounted.
    Mounted,
    /// It, a partition of it or something on it is swapped to.
    Swap,
    /// A volume, array or encryption stands on it.
    Holder,
    /// It has partitions.
    Partitions,
    /// It bears the mark of something.
    Signature,
    /// Something has it open exclusively.
    Held,
    /// Its file, or it as a file, is used by something else.
    BackingFile,
    /// It takes no writes.
    ReadOnly,
    /// It takes writes in order only.
    Zoned,
    /// We may not open it.
    Permission,
    /// The user has not confirmed that it is the one that is meant.
    Confirmation,
}

/// What the guards found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examination {
    /// The device.
    pub device: BlockDevice,
    /// What the user must type or pass to confirm this device.
    pub confirmation: Confirmation,
    /// Every reason not to write to it, those of confirming apart.
    pub objections: Vec<Objection>,
    /// Whether it begins with zeroes; `None` when it could not be read.
    pub begins_empty: Option<bool>,
}

/// What identifies a device to a person, and what they must repeat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmation {
    /// "serial number", "backing file", "size in bytes".
    pub kind: String,
    /// Its value.
    pub value: String,
}

/// A device that no guard objects to, held open.
#[derive(Debug)]
pub struct ClearedDevice {
    /// The device.
    pub device: BlockDevice,
    /// Its path with all links followed.
    pub node: PathBuf,
    file: File,
}

impl ClearedDevice {
    /// The file, open for reading and writing, exclusive.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Lets go, as a program that makes a filesystem needs, which holds the device itself.
    pub fn release(self) -> (BlockDevice, PathBuf) {
        (self.device, self.node)
    }
}

impl Confirmation {
    /// Of a device: its serial number, else for a loop device its file, else its size in bytes.
    pub fn of(device: &BlockDevice) -> Confirmation {
        let file = device.loop_state().and_then(|state| state.backing_file.as_ref());
        let (kind, value) = match (&device.serial, file) {
            (Some(serial), _) => ("serial number", serial.clone()),
            (None, Some(file)) => ("backing file", file.display().to_string()),
            (None, None) => ("size in bytes", device.size.0.to_string()),
        };
        Confirmation { kind: kind.to_owned(), value }
    }
}

/// Looks at the device at `path` (a node or a link to one) and lists every objection.
pub fn examine(host: &Host, path: &Path) -> Result<Examination> {
    let node = fs::canonicalize(path).map_err(io_error("follow", path))?;
    let Some(number) = block_node(&node).map_err(io_error("look at", &node))? else {
        return Err(crate::Error::WrongKind {
            path: node,
            found: "no block device".to_owned(),
            needed: "a block device",
        });
    };
    let device = BlockDevice::read(host, number)?;
    let mut objections = Vec::new();
    let family = family(host, &device)?;
    objections.extend(mounted(host, &device, &family)?);
    objections.extend(swapped(host, &device, &family));
    objections.extend(held_by_others(host, &device, &family));
    objections.extend(backing(host, &device));
    objections.extend(no_writes(&device));
    // What is refused anyway need not be waited for.
    let held = match objections.is_empty() {
        true => open_exclusively(&node, false),
        false => try_exclusively(&node, false),
    };
    let mut empty = None;
    match held {
        Ok(file) => {
            objections.extend(marks(&device, &file).map_err(io_error("read", &node))?);
            empty = begins_empty(&file, device.size).ok();
        }
        Err(error) => {
            objections.push(not_open(&device, &error));
            // Held by others it can still be read, to name what is on it.
            if let Ok(file) = File::open(&node) {
                objections.extend(marks(&device, &file).map_err(io_error("read", &node))?);
            }
        }
    }
    objections.sort_by_key(|objection| objection.guard);
    let confirmation = Confirmation::of(&device);
    Ok(Examination { device, confirmation, objections, begins_empty: empty })
}

/// Hands over the device at `path`, held exclusively and open for writing, or every objection.
pub fn clear(
    host: &Host,
    path: &Path,
    confirmed: Option<&str>,
) -> Result<std::result::Result<ClearedDevice, Vec<Objection>>> {
    let mut examination = examine(host, path)?;
    if let Some(objection) = unconfirmed(&examination, confirmed) {
        examination.objections.push(objection);
    }
    if !examination.objections.is_empty() {
        return Ok(Err(examination.objections));
    }
    let node = fs::canonicalize(path).map_err(io_error("follow", path))?;
    let file = match open_exclusively(&node, true) {
        Ok(file) => file,
        Err(error) => return Ok(Err(vec![not_open(&examination.device, &error)])),
    };
    // Between looking and holding, the path may have come to mean another device, or somebody may
    // have made something on this one.
    let meta = file.metadata().map_err(io_error("look at", &node))?;
    if DeviceNumber::from_raw(meta.rdev()) != examination.device.number {
        return Err(crate::Error::OtherDevice {
            device: examination.device.title(),
            difference: format!("{} means another device now", node.display()),
        });
    }
    let marks = marks(&examination.device, &file).map_err(io_error("read", &node))?;
    if !marks.is_empty() {
        return Ok(Err(marks));
    }
    Ok(Ok(ClearedDevice { device: examination.device, node, file }))
}

fn unconfirmed(examination: &Examination, confirmed: Option<&str>) -> Option<Objection> {
    let Confirmation { kind, value } = &examination.confirmation;
    let what = match confirmed {
        Some(typed) if typed.trim() == value.as_str() => return None,
        Some(typed) => {
            format!("'{}' is not the {kind} of {}", typed.trim(), examination.device.title())
        }
        None => format!("{} was named without its confirmation", examination.device.title()),
    };
    Some(Objection {
        guard: Guard::Confirmation,
        what,
        why: "everything on the device would be overwritten, and names are easily mistaken"
            .to_owned(),
        fix: format!("if it is meant, give its {kind}: --confirm '{value}'"),
    })
}

/// The device, its partitions or its disk, and everything that stands on any of them.
fn family(host: &Host, device: &BlockDevice) -> Result<Vec<BlockDevice>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut waiting = vec![device.number];
    if let DeviceKind::Partition { disk, .. } = device.kind {
        // Of the disk only itself: the partitions beside ours are not written to.
        seen.insert(disk);
        let disk = BlockDevice::read(host, disk)?;
        waiting.extend(&disk.holders);
        found.push(disk);
    }
    while let Some(number) = waiting.pop() {
        if !seen.insert(number) {
            continue;
        }
        // A holder may go while we look; then it holds no longer.
        let Ok(member) = BlockDevice::read(host, number) else { continue };
        waiting.extend(&member.partitions);
        waiting.extend(&member.holders);
        waiting.extend(loops_on(host, member.number));
        found.push(member);
    }
    Ok(found)
}

/// Loop devices whose file is the block device `number`. Files that a server has are not asked for: they
/// are none, and each would hold us while its server hangs.
fn loops_on(host: &Host, number: DeviceNumber) -> Vec<DeviceNumber> {
    let mounts = mounts(host).unwrap_or_default();
    let on_it = |file: &Path| {
        !mount_above(&mounts, file).is_some_and(Mount::is_served)
            && block_node(host.path(file)).ok().flatten() == Some(number)
    };
    loops(host).into_iter().filter(|(_, file)| on_it(file)).map(|(number, _)| number).collect()
}

/// Every attached loop device with its file.
fn loops(host: &Host) -> Vec<(DeviceNumber, PathBuf)> {
    host.names("/sys/block")
        .into_iter()
        .filter(|name| name.starts_with("loop"))
        .filter_map(|name| host.text(format!("/sys/block/{name}/dev"))?.parse().ok())
        .filter_map(|number| BlockDevice::read(host, number).ok())
        .filter_map(|device| Some((device.number, device.loop_state()?.backing_file.clone()?)))
        .collect()
}

/// "it", "its partition vda1", "dm-0, which stands on it".
fn relation(device: &BlockDevice, member: &BlockDevice) -> String {
    match &member.kind {
        _ if member.number == device.number => device.title(),
        DeviceKind::Partition { disk, .. } if *disk == device.number => {
            format!("{}, a partition of {},", member.title(), device.title())
        }
        _ if matches!(device.kind, DeviceKind::Partition { disk, .. } if disk == member.number) => {
            format!("{}, the whole disk of {},", member.title(), device.title())
        }
        _ => format!("{}, which stands on {},", member.title(), device.title()),
    }
}

fn mounted(host: &Host, device: &BlockDevice, family: &[BlockDevice]) -> Result<Vec<Objection>> {
    let mut found = Vec::new();
    for mount in mounts(host)? {
        // btrfs and others have numbers of their own in mountinfo: their source tells.
        let sources = mount.sources(host);
        let is_on = |member: &&BlockDevice| {
            member.number == mount.device || sources.contains(&member.number)
        };
        let Some(member) = family.iter().find(is_on) else { continue };
        found.push(Objection {
            guard: Guard::Mounted,
            what: format!(
                "{} is mounted on {} ({})",
                relation(device, member),
                mount.point.display(),
                mount.kind
            ),
            why: "writing below a mounted filesystem destroys it".to_owned(),
            fix: format!(
                "give a folder in {} as the target, or another device; \
                 if its data may go: umount {0}",
                mount.point.display()
            ),
        });
    }
    Ok(found)
}

fn swapped(host: &Host, device: &BlockDevice, family: &[BlockDevice]) -> Vec<Objection> {
    let swaps = host.text("/proc/swaps").unwrap_or_default();
    let mut found = Vec::new();
    for area in swaps.lines().skip(1).filter_map(|line| line.split_whitespace().next()) {
        let number = block_node(host.path(area)).ok().flatten();
        let Some(member) = family.iter().find(|member| Some(member.number) == number) else {
            continue;
        };
        found.push(Objection {
            guard: Guard::Swap,
            what: format!("{} is in use as swap space", relation(device, member)),
            why: "memory of running programs is in it".to_owned(),
            fix: format!("choose another device; if it may go: swapoff {area}"),
        });
    }
    found
}

fn held_by_others(host: &Host, device: &BlockDevice, family: &[BlockDevice]) -> Vec<Objection> {
    let mut found = Vec::new();
    for holder in family.iter().flat_map(|member| &member.holders).collect::<BTreeSet<_>>() {
        let Ok(holder) = BlockDevice::read(host, *holder) else { continue };
        let (kind, fix) = match &holder.kind {
            DeviceKind::Md { level } => (
                format!("the array {} ({level})", holder.name),
                format!("mdadm --stop /dev/{}", holder.name),
            ),
            DeviceKind::Mapper { name, flavour } if flavour == "LVM" => (
                format!("the logical volume {name}"),
                format!("vgchange -an, or lvchange -an {name}"),
            ),
            DeviceKind::Mapper { name, flavour } if flavour.starts_with("CRYPT") => {
                (format!("the encrypted device {name}"), format!("cryptsetup close {name}"))
            }
            DeviceKind::Mapper { name, .. } => {
                (format!("the mapped device {name}"), format!("dmsetup remove {name}"))
            }
            _ => (holder.title(), format!("see lsblk /dev/{}", holder.name)),
        };
        found.push(Objection {
            guard: Guard::Holder,
            what: format!("{kind} stands on {}", device.title()),
            why: "its data lies on this device".to_owned(),
            fix: format!("choose another device, or the one on top; if it may go: {fix}"),
        });
    }
    if !device.partitions.is_empty() {
        found.push(Objection {
            guard: Guard::Partitions,
            what: format!("{} has {} partitions", device.title(), device.partitions.len()),
            why: "they and their table would be overwritten".to_owned(),
            fix: "name one partition that may go, or remove the table first (wipefs)".to_owned(),
        });
    }
    found
}

/// A file behind a loop device can be reached by other ways, which O_EXCL does not see.
fn backing(host: &Host, device: &BlockDevice) -> Vec<Objection> {
    let mut found = Vec::new();
    let mut object = |what: String, fix: &str| {
        found.push(Objection {
            guard: Guard::BackingFile,
            what,
            why: "what is written to the one would appear in the other".to_owned(),
            fix: fix.to_owned(),
        });
    };
    for number in loops_on(host, device.number) {
        object(
            format!("loop device {number} is attached to {}", device.title()),
            "detach it first (losetup -d), or choose another device",
        );
    }
    let Some(file) = device.loop_state().and_then(|state| state.backing_file.clone()) else {
        return found;
    };
    let Ok(meta) = fs::metadata(host.path(&file)) else {
        return found;
    };
    let same = |other: &fs::Metadata| other.dev() == meta.dev() && other.ino() == meta.ino();
    // Only what is on the same filesystem is asked for: another one may hang.
    let mounts = mounts(host).unwrap_or_default();
    let its_mount = mount_of(&mounts, &file, DeviceNumber::from_raw(meta.dev()));
    let beside = |mount: Option<&Mount>| mount.map(|it| it.device) == its_mount.map(|it| it.device);
    for (number, other) in loops(host) {
        if number != device.number
            && beside(mount_above(&mounts, &other))
            && fs::metadata(host.path(other)).is_ok_and(|it| same(&it))
        {
            object(
                format!("loop device {number} is attached to the same file {}", file.display()),
                "detach one of them first (losetup -d)",
            );
        }
    }
    if meta.file_type().is_block_device() {
        if let Ok(below) = examine(host, &file) {
            for objection in below.objections {
                object(
                    format!("the device below, {}: {}", below.device.title(), objection.what),
                    &objection.fix,
                );
            }
        }
        return found;
    }
    for (pid, name) in opened_by(host, |mount| beside(Some(mount)), same) {
        object(
            format!("process {pid} ({name}) has its file {} open", file.display()),
            "end that process first",
        );
    }
    found
}

fn no_writes(device: &BlockDevice) -> Vec<Objection> {
    let mut found = Vec::new();
    if device.read_only {
        found.push(Objection {
            guard: Guard::ReadOnly,
            what: format!("{} is read-only", device.title()),
            why: "every write would fail".to_owned(),
            fix: "choose another device, or read-only workloads; see blockdev --setrw".to_owned(),
        });
    }
    let zoned = device.queue.as_ref().and_then(|queue| queue.zoned.as_deref());
    if zoned == Some("host-managed") {
        found.push(Objection {
            guard: Guard::Zoned,
            what: format!("{} is a host-managed zoned device", device.title()),
            why: "it takes writes only in order within each zone".to_owned(),
            fix: "put a filesystem for zoned devices on it (btrfs, f2fs) and give a folder"
                .to_owned(),
        });
    }
    found
}

fn not_open(device: &BlockDevice, error: &std::io::Error) -> Objection {
    let busy = error.raw_os_error() == Some(libc::EBUSY);
    let denied = error.kind() == std::io::ErrorKind::PermissionDenied;
    let (why, fix) = match () {
        () if busy => (
            "a mount (perhaps in another namespace), an array, a volume, swap or a program has it",
            "see lsblk, findmnt --task 1 and lsof; let go of it there first",
        ),
        () if denied => ("this user may not open it", "run it with sudo"),
        () => ("it cannot be held while it is written to", "see dmesg for its state"),
    };
    Objection {
        guard: if denied { Guard::Permission } else { Guard::Held },
        what: format!("{} cannot be opened exclusively: {error}", device.title()),
        why: why.to_owned(),
        fix: fix.to_owned(),
    }
}

fn marks(device: &BlockDevice, file: &File) -> std::io::Result<Vec<Objection>> {
    let objection = |Signature { name, kind, offset }: Signature| {
        let why = match kind {
            SignatureKind::Raid | SignatureKind::Volume | SignatureKind::Cache => {
                "the array or pool that it belongs to would lose this member"
            }
            _ => "it would be overwritten",
        };
        Objection {
            guard: Guard::Signature,
            what: format!(
                "{} bears the mark of {name} ({kind}) at byte {}",
                device.title(),
                offset.0
            ),
            why: why.to_owned(),
            fix: format!(
                "choose another device; if it may go, remove the mark yourself: wipefs --all /dev/{}",
                device.name
            ),
        }
    };
    Ok(signatures(file, device.size)?.into_iter().map(objection).collect())
}
