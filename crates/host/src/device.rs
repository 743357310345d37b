//! One block device: what it is, where it hangs, what it is made of.

use crate::{
    DeviceNumber, Host, Queue, Result,
    tree::{linked_devices, names, number, number_of, text, words},
};
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    path::{Path, PathBuf},
};
use units::{Bytes, Sectors};

/// A block device as the kernel describes it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDevice {
    /// Its number, the only name that cannot mean another device while this one is there.
    pub number: DeviceNumber,
    /// The kernel's name: `sda1`, `dm-0`.
    pub name: String,
    /// Its folder in sysfs, where what is said of it was read; empty in older records.
    #[serde(default)]
    pub read_from: PathBuf,
    /// What sort of device.
    pub kind: DeviceKind,
    /// How it is attached.
    pub bus: Bus,
    /// The maker's name of the model.
    pub model: Option<String>,
    /// The serial number of the drive, or of the whole disk for a partition.
    pub serial: Option<String>,
    /// The world-wide name, or NVMe's EUI or UUID.
    pub wwid: Option<String>,
    /// Its size.
    pub size: Bytes,
    /// Whether the kernel refuses writes to it.
    pub read_only: bool,
    /// Whether the medium can be taken out.
    pub removable: bool,
    /// Counts up with every attachment of any disk since boot (Linux 5.15).
    pub sequence: Option<u64>,
    /// The request queue: of the whole disk for a partition.
    pub queue: Option<Queue>,
    /// What it stands on: a partition's disk, an array's members.
    pub below: Vec<DeviceNumber>,
    /// What stands on it: arrays, volumes, encryption.
    pub holders: Vec<DeviceNumber>,
    /// Its partitions.
    pub partitions: Vec<DeviceNumber>,
}

/// What sort of block device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A drive, real or virtual.
    Disk,
    /// A part of a disk.
    Partition {
        /// The whole disk.
        disk: DeviceNumber,
        /// Which partition.
        index: u32,
        /// Where it begins on the disk.
        start: Sectors,
    },
    /// A device-mapper target: LVM, LUKS, multipath.
    Mapper {
        /// Its name under `/dev/mapper`.
        name: String,
        /// `LVM`, `CRYPT`, `mpath`: the first part of its uuid; empty for others.
        flavour: String,
    },
    /// A software RAID.
    Md {
        /// `raid1`, `raid10`.
        level: String,
    },
    /// A file that serves as a device.
    Loop(LoopState),
    /// Memory that serves as a device (zram, brd).
    Memory,
    /// Another machine's device (nbd, rbd, drbd).
    Network,
}

/// What a loop device stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopState {
    /// The file; `None` when nothing is attached.
    pub backing_file: Option<PathBuf>,
    /// Whether the file was deleted after it was attached.
    pub deleted: bool,
    /// Whether it goes around the page cache of the backing file's filesystem.
    pub direct_io: bool,
    /// Where in the file the device begins.
    pub offset: Bytes,
    /// Where it ends, zero for the file's end.
    pub size_limit: Bytes,
}

/// How a device is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bus {
    /// A virtual disk of KVM and others.
    Virtio,
    /// NVMe on PCI or over a fabric.
    Nvme,
    /// A SATA drive.
    Sata,
    /// A SAS drive, or a RAID controller's volume.
    Scsi,
    /// A USB stick or enclosure.
    Usb,
    /// SD and eMMC.
    Mmc,
    /// Xen's virtual disk.
    Xen,
    /// Persistent memory.
    Pmem,
    /// No hardware: loop, dm, md, zram.
    Virtual,
    /// None of those above.
    Other,
}

impl fmt::Display for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Bus::Virtio => "virtio",
            Bus::Nvme => "NVMe",
            Bus::Sata => "SATA",
            Bus::Scsi => "SCSI",
            Bus::Usb => "USB",
            Bus::Mmc => "MMC",
            Bus::Xen => "Xen",
            Bus::Pmem => "persistent memory",
            Bus::Virtual => "virtual",
            Bus::Other => "other",
        })
    }
}

impl BlockDevice {
    /// What the kernel says of a device.
    pub fn read(host: &Host, number: DeviceNumber) -> Result<BlockDevice> {
        let folder = host.device_folder(number)?;
        let disk = host.disk_folder(number)?;
        let name = file_name(&folder);
        let kind = kind(&folder, &disk, &name);
        let size = Sectors(tree_number(&folder.join("size"))).bytes();
        let below = match &kind {
            DeviceKind::Partition { disk, .. } => vec![*disk],
            _ => below(host, &folder, &name),
        };
        let bus = bus(&disk);
        Ok(BlockDevice {
            number,
            read_from: host.inside(&folder),
            kind,
            bus,
            model: model(&disk),
            serial: serial(host, &disk, number, bus),
            wwid: ["wwid", "device/wwid", "uuid", "device/cid"]
                .iter()
                .find_map(|file| words(disk.join(file))),
            size,
            read_only: number_or_zero(&folder.join("ro")) != 0,
            removable: number_or_zero(&disk.join("removable")) != 0,
            sequence: crate::tree::number(disk.join("diskseq")),
            queue: Queue::read(host, &disk),
            below,
            holders: linked_devices(folder.join("holders")),
            partitions: partitions(&folder),
            name,
        })
    }

    /// `vda (254:0)`.
    pub fn title(&self) -> String {
        self.number.title(&self.name)
    }

    /// The loop state of a loop device.
    pub fn loop_state(&self) -> Option<&LoopState> {
        match &self.kind {
            DeviceKind::Loop(state) => Some(state),
            _ => None,
        }
    }

    /// Whether schedulers can be chosen on it.
    pub fn has_scheduler(&self) -> bool {
        self.queue.as_ref().is_some_and(|queue| queue.scheduler.is_some())
    }
}

fn tree_number(path: &Path) -> u64 {
    number(path).unwrap_or_default()
}

fn number_or_zero(path: &Path) -> u64 {
    tree_number(path)
}

fn file_name(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn kind(folder: &Path, disk: &Path, name: &str) -> DeviceKind {
    if let Some(index) = number(folder.join("partition"))
        && let Some(disk) = number_of(disk)
    {
        return DeviceKind::Partition {
            disk,
            index,
            start: Sectors(tree_number(&folder.join("start"))),
        };
    }
    if folder.join("dm").is_dir() {
        let uuid = text(folder.join("dm/uuid")).unwrap_or_default();
        let flavour = uuid.split_once('-').map(|(first, _)| first.to_owned()).unwrap_or_default();
        return DeviceKind::Mapper {
            name: text(folder.join("dm/name")).unwrap_or_default(),
            flavour,
        };
    }
    if folder.join("md").is_dir() {
        return DeviceKind::Md { level: text(folder.join("md/level")).unwrap_or_default() };
    }
    let numbered = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if numbered("loop") {
        return DeviceKind::Loop(loop_state(folder));
    }
    match name {
        _ if numbered("zram") || numbered("ram") => DeviceKind::Memory,
        _ if numbered("nbd") || numbered("rbd") || numbered("drbd") => DeviceKind::Network,
        _ => DeviceKind::Disk,
    }
}

fn loop_state(folder: &Path) -> LoopState {
    let folder = folder.join("loop");
    let file = words(folder.join("backing_file"));
    let deleted = file.as_deref().is_some_and(|file| file.ends_with(" (deleted)"));
    LoopState {
        backing_file: file.map(|file| file.trim_end_matches(" (deleted)").into()),
        deleted,
        direct_io: number_or_zero(&folder.join("dio")) != 0,
        offset: Bytes(tree_number(&folder.join("offset"))),
        size_limit: Bytes(tree_number(&folder.join("sizelimit"))),
    }
}

/// What a device stands on. An NVMe device with several controllers has no scheduler itself and does
/// not list its paths as slaves: they are the hidden devices `nvme0c0n1`, `nvme0c1n1`.
fn below(host: &Host, folder: &Path, name: &str) -> Vec<DeviceNumber> {
    let slaves = linked_devices(folder.join("slaves"));
    if !slaves.is_empty() || folder.join("mq").is_dir() {
        return slaves;
    }
    let head = name.strip_prefix("nvme").and_then(|it| it.split_once('n'));
    let Some((Ok(of_subsystem), Ok(of_namespace))) =
        head.map(|(subsystem, namespace)| (subsystem.parse::<u32>(), namespace.parse::<u32>()))
    else {
        return slaves;
    };
    let is_path = |number: &DeviceNumber| {
        matches!(number, DeviceNumber::NvmePath { subsystem, namespace, .. }
            if (*subsystem, *namespace) == (of_subsystem, of_namespace))
    };
    let hidden = host.names("/sys/block");
    hidden.iter().filter_map(|name| DeviceNumber::of_nvme_path(name)).filter(is_path).collect()
}

fn partitions(folder: &Path) -> Vec<DeviceNumber> {
    names(folder)
        .iter()
        .filter(|name| folder.join(name).join("partition").exists())
        .filter_map(|name| number_of(&folder.join(name)))
        .collect()
}

/// From the device's place in sysfs: its path names every bus on the way. `usb` and `ata` come
/// before the SCSI host that they appear as.
fn bus(disk: &Path) -> Bus {
    let path = disk.to_string_lossy();
    let below = |part: &str| {
        path.split('/').any(|step| {
            step.strip_prefix(part).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit())
            })
        })
    };
    match () {
        () if path.contains("/devices/virtual/") && !below("nvme-subsys") => Bus::Virtual,
        () if below("nvme") || below("nvme-subsys") => Bus::Nvme,
        () if below("usb") => Bus::Usb,
        () if below("ata") => Bus::Sata,
        () if below("host") => Bus::Scsi,
        () if below("virtio") => Bus::Virtio,
        () if below("mmc") => Bus::Mmc,
        () if below("vbd-") || path.contains("/vbd-") => Bus::Xen,
        () if below("pmem") || path.contains("/pmem") => Bus::Pmem,
        () => Bus::Other,
    }
}

fn model(disk: &Path) -> Option<String> {
    let model = words(disk.join("device/model")).or_else(|| words(disk.join("device/name")));
    // SCSI splits "Samsung SSD 870" into a vendor of eight letters and a model of sixteen; ATA
    // drives all have the vendor "ATA". virtio's vendor is a PCI number.
    let vendor = words(disk.join("device/vendor"))
        .filter(|vendor| vendor != "ATA" && !vendor.starts_with("0x"));
    match (vendor, model) {
        (Some(vendor), Some(model)) => Some(format!("{vendor} {model}")),
        (None, model) => model,
        (Some(_), None) => None,
    }
}

/// The serial number: from sysfs where the driver puts it there, for SCSI from its page 80h of vital
/// product data, and else from what udev found when the device appeared.
fn serial(host: &Host, disk: &Path, number: DeviceNumber, bus: Bus) -> Option<String> {
    let sysfs = ["serial", "device/serial"].iter().find_map(|file| words(disk.join(file)));
    let page = || {
        let page = std::fs::read(disk.join("device/vpd_pg80")).ok()?;
        // SPC: four bytes of header, then the number in ASCII.
        let serial = String::from_utf8_lossy(page.get(4..)?).trim_matches(['\0', ' ']).to_owned();
        (!serial.is_empty()).then_some(serial)
    };
    let udev = || {
        let whole = number_of(disk).unwrap_or(number);
        let found = host.text(format!("/run/udev/data/b{whole}"))?;
        let property =
            |key: &str| found.lines().find_map(|line| line.strip_prefix(key)).map(str::to_owned);
        property("E:ID_SERIAL_SHORT=").or_else(|| property("E:ID_SERIAL="))
    };
    match bus {
        Bus::Virtual => sysfs,
        _ => sysfs.or_else(page).or_else(udev),
    }
}
