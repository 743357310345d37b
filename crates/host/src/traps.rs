//! What makes a measurement of this target say something else than it seems to.
//!
//! Each trap is one variant of [`Trap`] with the facts that show it, its words in `words.rs`, one rule
//! in `trap_rules` that finds it, and one paragraph in docs/reference/traps.md.

pub(crate) mod words;

use crate::{BlockDevice, Bus, FileRoom, Owner, Place, Temperature};
use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf};
use units::Bytes;

/// A trap that applies here and now, with what shows it. Those that spoil most come first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(TrapKind),
    vis(pub),
    derive(strum::VariantArray),
    doc = "The traps there are, without what shows them."
)]
#[serde(tag = "trap", rename_all = "kebab-case")]
pub enum Trap {
    /// A run that was killed has left settings behind: they are not this host's own.
    UnfinishedRun {
        /// Journals of ended runs.
        journals: usize,
        /// The first of them.
        first: PathBuf,
    },
    /// The target is memory: no device sees any request.
    Memory {
        /// Why there is no device.
        reason: String,
    },
    /// The target is an overlay (a container's / is one): its device cannot be seen from here.
    Overlay {
        /// Why there is no device.
        reason: String,
    },
    /// The target is on another machine: its disks and schedulers are there.
    Network {
        /// Why there is no device.
        reason: String,
    },
    /// A program serves these files: it adds its own time.
    FileServer {
        /// Where it is mounted.
        mount: PathBuf,
        /// As which filesystem.
        kind: String,
    },
    /// The target is mounted read-only: only reads can be measured.
    ReadOnly {
        /// Where it is mounted.
        mount: PathBuf,
    },
    /// O_DIRECT may silently go through the page cache here.
    DirectIsBuffered {
        /// Why.
        caveats: Vec<String>,
    },
    /// O_DIRECT is not possible here.
    NoDirect {
        /// The target.
        target: PathBuf,
    },
    /// What answers is a cache and not the medium.
    CacheAnswers {
        /// What the probe saw.
        probe: String,
    },
    /// Parts of the file were never written: they measure the allocator.
    SparseFile {
        /// The file.
        file: FileRoom,
    },
    /// The loop device goes through the page cache: everything is cached twice.
    BufferedLoop {
        /// The loop device.
        device: DeviceTitle,
    },
    /// Discards make holes in the file behind the loop device.
    LoopDiscard {
        /// Where the filesystem on it is mounted.
        mount: PathBuf,
        /// The loop device.
        device: DeviceTitle,
    },
    /// A loop device's queue settings outlive its being detached.
    LoopSettingsStay {
        /// The loop device.
        device: DeviceTitle,
    },
    /// The device claims to rotate and does not.
    RotationalFlag {
        /// The device.
        device: DeviceTitle,
        /// Its write-back throttling latency.
        wbt_lat_usec: Option<i64>,
        /// What speaks against it.
        contrary: NotRotating,
    },
    /// Choosing bfq also turns write-back throttling off: two changes in one.
    WriteBackThrottling {
        /// The device.
        device: DeviceTitle,
        /// Its latency; 0 is off, under bfq.
        wbt_lat_usec: i64,
    },
    /// Flushes are turned off: fast, and data is lost with the power.
    NoBarrier {
        /// Where it is mounted.
        mount: PathBuf,
    },
    /// The kernel sends no flushes to a device whose cache loses what was not flushed.
    WriteThroughByHand {
        /// The device.
        device: DeviceTitle,
    },
    /// The kernel does not count the device's requests.
    NotCounted {
        /// The device.
        device: DeviceTitle,
    },
    /// Blocks smaller than the device's sector cannot be direct.
    SmallBlock {
        /// The device.
        device: DeviceTitle,
        /// Its logical block.
        sector: Bytes,
    },
    /// Buffered writes smaller than a block read it first.
    ReadBeforeWrite {
        /// Where the filesystem is mounted.
        mount: PathBuf,
        /// Its block size.
        block: Bytes,
    },
    /// Under none the queue is bounded by the hardware's tags.
    QueueCeiling {
        /// The device.
        device: DeviceTitle,
        /// Its tags.
        tags: u32,
        /// Requests that cells with a scheduler can have.
        with_scheduler: u32,
    },
    /// The target stands on other devices, of which several may have schedulers.
    StackedDevices {
        /// Devices with a scheduler, from the top.
        scheduled: Vec<DeviceTitle>,
        /// Those whose settings would be varied.
        varied: Vec<DeviceTitle>,
    },
    /// The device takes writes in order only: few schedulers keep that.
    Zoned {
        /// The device.
        device: DeviceTitle,
        /// The kernel's word: host-managed, host-aware.
        model: String,
    },
    /// Others use this device: they feel every setting, and disturb.
    SharedDevice {
        /// The device.
        device: DeviceTitle,
        /// Other mounts on it, at most four; none where it serves the system itself.
        mounts: Vec<PathBuf>,
    },
    /// Something else sets these settings too and may put its own back.
    SettingOwner {
        /// The first that is active.
        owner: Owner,
        /// Others that are active.
        more: usize,
    },
    /// Who sets read_ahead_kb does so before something that raises it again.
    ReadAheadLost {
        /// The device.
        device: DeviceTitle,
        /// Where it is set.
        set: Place,
        /// Where what raises it is written.
        after: Place,
        /// What that is.
        attribute: String,
    },
    /// elevator= on the boot line has done nothing since 5.0.
    BootElevator {
        /// The option on the boot line.
        option: String,
    },
    /// Flash slows with use and with heat: what runs second looks worse.
    FlashState {
        /// What the probe saw.
        probe: String,
    },
    /// A drive is at the temperature from which it warns: it may slow itself down.
    HotDrive {
        /// The kernel's name of the drive.
        device: String,
        /// What its sensor says.
        temperature: Temperature,
    },
    /// Data that fits in memory measures memory in buffered trials.
    SmallData {
        /// The size of the file that is the target.
        file: Option<Bytes>,
        /// Memory that could be page cache.
        memory: Bytes,
    },
    /// A control group holds us back: its limit would be measured.
    GroupLimit {
        /// Processors' worth of time.
        cpus: Option<f64>,
        /// Memory.
        memory: Option<Bytes>,
        /// Lines of io.max.
        io: Vec<String>,
    },
    /// Other load cannot be seen: no pressure information.
    NoPressure,
    /// Something else is busy with I/O now.
    BusyHost {
        /// What shows it.
        load: OtherLoad,
    },
    /// Processors change their frequency: latencies move with it.
    Frequency {
        /// The scaling governor.
        governor: String,
    },
    /// Other virtual machines take this one's processor time.
    Steal {
        /// Of the processors' time since boot.
        percent: f64,
    },
}

/// What speaks against a device that claims to rotate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NotRotating {
    /// What the probe saw.
    Probe(String),
    /// Devices on this bus claim it on any medium.
    Bus(Bus),
}

/// Load of others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum OtherLoad {
    /// Pressure stall information.
    Pressure {
        /// Of the last ten seconds, in which tasks waited for I/O.
        percent: f64,
    },
    /// The load average, where there is no pressure information or it is low.
    Average {
        /// Over one minute.
        load: f64,
        /// Processors.
        cpus: u32,
    },
}

/// A device as a sentence names it: `sda (254:0)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceTitle {
    /// The kernel's name.
    pub name: String,
    /// With its number.
    pub title: String,
    /// The folders in sysfs where what is said of it was read.
    #[serde(default)]
    pub read_from: Vec<PathBuf>,
}

impl From<&BlockDevice> for DeviceTitle {
    fn from(device: &BlockDevice) -> Self {
        let queue = device.queue.as_ref().map(|queue| queue.read_from.clone());
        DeviceTitle {
            name: device.name.clone(),
            title: device.title(),
            read_from: [device.read_from.clone()].into_iter().chain(queue).collect(),
        }
    }
}

impl fmt::Display for DeviceTitle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.title)
    }
}

impl TrapKind {
    /// All, in the order in which to list them.
    pub const ALL: &'static [TrapKind] = <TrapKind as strum::VariantArray>::VARIANTS;
}

/// Every trap there is: its id and its title.
pub fn all_traps() -> impl Iterator<Item = (&'static str, &'static str)> {
    TrapKind::ALL.iter().map(|kind| (kind.id(), kind.title()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trap_has_its_paragraph_and_each_paragraph_its_trap() {
        let page = include_str!("../../../docs/reference/traps.md");
        let paragraphs: Vec<&str> =
            page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let ids: Vec<&str> = all_traps().map(|(id, _)| id).collect();
        assert_eq!(paragraphs, ids, "docs/reference/traps.md has them in the order of Trap");
        for section in page.split("## ").skip(1) {
            assert!(section.contains("**Seen:**") && section.contains("**Fix:**"), "{section}");
        }
    }
}
