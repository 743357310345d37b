//! Writes that a crash cannot tear: the sizes that the kernel writes whole or not at all, for a file or a
//! device, and how that is known.
//!
//! A page that is torn in the middle cannot be recovered from the log alone, which is why servers write
//! pages twice or log them whole. The kernel takes a write with RWF_ATOMIC (pwritev2(2), Linux 6.11; files of
//! ext4 and XFS 6.13) whose length is a power of two between two limits, at an offset that is a multiple
//! of the length, and with O_DIRECT. statx(2) with STATX_WRITE_ATOMIC tells the limits of a file or device, and
//! `queue/atomic_write_unit_*_bytes` those of the device. Without RWF_ATOMIC the kernel promises nothing.

use crate::{
    BlockDevice, Chain, DeviceKind, Host, Result, TargetKind, direct_io::nameless_file,
    error::io_error, tree::number,
};
use serde::{Deserialize, Serialize};
use std::{
    ffi::CString,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::Path,
};
use units::Bytes;

/// What is known of atomic writes to one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicWrites {
    /// Of the file or device itself, from statx; for a folder of a file without a name in it.
    pub target: AtomicUnits,
    /// Of the devices below it, from the top down, partitions aside.
    pub devices: Vec<AtomicDevice>,
}

/// What statx answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtomicUnits {
    /// Writes of these sizes.
    Sizes(AtomicSizes),
    /// The filesystem knows of atomic writes and takes none here.
    None,
    /// It does not answer: the kernel is older than 6.11, or this filesystem or device has no atomic writes.
    Unsaid,
}

/// The sizes that can be written atomically: powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicSizes {
    /// The least.
    pub min: Bytes,
    /// The most.
    pub max: Bytes,
    /// Up to here the device does it; above, the filesystem does it by writing elsewhere first (XFS,
    /// Linux 6.16). Zero where the device has no atomic writes.
    pub max_by_device: Bytes,
}

/// What one device's queue says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtomicDevice {
    /// The kernel's name.
    pub name: String,
    /// `queue/atomic_write_unit_min_bytes`; `None` where the kernel has no such file (before 6.11).
    pub unit_min: Option<Bytes>,
    /// `queue/atomic_write_unit_max_bytes`; zero when the device has no atomic writes.
    pub unit_max: Option<Bytes>,
}

/// Whether a write of one size is atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtomicAnswer {
    /// It is, when it is made with RWF_ATOMIC, and the device itself does it.
    ByDevice,
    /// It is, when it is made with RWF_ATOMIC, and the filesystem does it by writing elsewhere first.
    ByFilesystem,
    /// It is not, for this reason.
    No(NotAtomic),
    /// The kernel does not say, for this reason.
    Unsaid(AtomicUnsaid),
}

/// Why a write of one size is not atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotAtomic {
    /// The device has no atomic writes.
    Device,
    /// The device has them, and the file or the filesystem takes none.
    Filesystem,
    /// Less than the least.
    Below(Bytes),
    /// More than the most.
    Above(Bytes),
    /// Not a power of two.
    Uneven,
}

/// Why the kernel does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtomicUnsaid {
    /// It is older than 6.11.
    Kernel,
    /// The filesystem does not answer, although the kernel knows the question.
    Filesystem,
}

impl AtomicWrites {
    /// Asks for the file, folder or block device at `target`; nothing is changed.
    pub fn of(host: &Host, target: &Path) -> Result<AtomicWrites> {
        AtomicWrites::of_chain(host, &Chain::of(host, target)?)
    }

    /// Asks for the target of a chain that is known.
    pub fn of_chain(host: &Host, chain: &Chain) -> Result<AtomicWrites> {
        let whole = |device: &&BlockDevice| !matches!(device.kind, DeviceKind::Partition { .. });
        let devices: Vec<AtomicDevice> =
            chain.devices().filter(whole).map(|it| AtomicDevice::of(host, it)).collect();
        let upper = devices.first().and_then(|device| device.unit_max);
        let target = match nameless_file(&chain.target) {
            Some(file) => {
                statx_units(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())), upper)?
            }
            // A folder's own answer is of the folder, not of the files in it.
            None if chain.kind == TargetKind::Directory => AtomicUnits::Unsaid,
            None => statx_units(&chain.target, upper)?,
        };
        Ok(AtomicWrites { target, devices })
    }

    /// Whether a write of `size` bytes is whole or not at all after a crash.
    pub fn answer(&self, size: Bytes) -> AtomicAnswer {
        let asked = self.devices.iter().any(|device| device.unit_max.is_some());
        let devices_have = self.devices.iter().all(|it| it.unit_max.is_some_and(|it| it.0 > 0));
        match self.target {
            AtomicUnits::Sizes(sizes) => sizes.answer(size),
            AtomicUnits::None if asked && !devices_have => AtomicAnswer::No(NotAtomic::Device),
            AtomicUnits::None => AtomicAnswer::No(NotAtomic::Filesystem),
            AtomicUnits::Unsaid if asked && !devices_have => AtomicAnswer::No(NotAtomic::Device),
            AtomicUnits::Unsaid if asked => AtomicAnswer::Unsaid(AtomicUnsaid::Filesystem),
            // Without a device (tmpfs, NFS) there is no file in sysfs that would tell the kernel's age.
            AtomicUnits::Unsaid if self.devices.is_empty() => {
                AtomicAnswer::Unsaid(AtomicUnsaid::Filesystem)
            }
            AtomicUnits::Unsaid => AtomicAnswer::Unsaid(AtomicUnsaid::Kernel),
        }
    }
}

impl AtomicSizes {
    fn answer(self, size: Bytes) -> AtomicAnswer {
        match size {
            size if !size.0.is_power_of_two() => AtomicAnswer::No(NotAtomic::Uneven),
            size if size < self.min => AtomicAnswer::No(NotAtomic::Below(self.min)),
            size if size > self.max => AtomicAnswer::No(NotAtomic::Above(self.max)),
            size if size > self.max_by_device => AtomicAnswer::ByFilesystem,
            _ => AtomicAnswer::ByDevice,
        }
    }
}

impl AtomicDevice {
    fn of(host: &Host, device: &BlockDevice) -> AtomicDevice {
        let folder = host.disk_folder(device.number).map(|disk| disk.join("queue"));
        let bytes = |name: &str| number(folder.as_ref().ok()?.join(name)).map(Bytes);
        AtomicDevice {
            name: device.name.clone(),
            unit_min: bytes("atomic_write_unit_min_bytes"),
            unit_max: bytes("atomic_write_unit_max_bytes"),
        }
    }
}

/// What the kernel fills for statx(2): 256 bytes as 32-bit words. Not libc's type, which lacks the last of
/// these fields for musl.
#[repr(C, align(8))]
struct StatxWords([u32; 64]);

impl StatxWords {
    // Offsets of linux/stat.h, in words.
    const MASK: usize = 0;
    const UNIT_MIN: usize = 0xa8 / 4;
    const UNIT_MAX: usize = 0xac / 4;
    /// Linux 6.16; zero before.
    const UNIT_MAX_OPT: usize = 0xb8 / 4;
}

/// `statx(path, STATX_WRITE_ATOMIC)`: rustix does not pass this mask on.
///
/// `device` is the `unit_max` of the device that the file's filesystem is on.
fn statx_units(path: &Path, device: Option<Bytes>) -> Result<AtomicUnits> {
    /// linux/stat.h; libc has it for glibc alone.
    const STATX_WRITE_ATOMIC: u32 = 0x0001_0000;
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io_error("name", path)(std::io::ErrorKind::InvalidInput.into()))?;
    let mut words = StatxWords([0; 64]);
    // SAFETY: the name ends in NUL, and the buffer is ours, as long and as aligned as what the call fills.
    let failed = unsafe {
        let buffer = (&raw mut words).cast();
        libc::statx(libc::AT_FDCWD, name.as_ptr(), 0, STATX_WRITE_ATOMIC, buffer)
    } != 0;
    if failed {
        return Err(io_error("ask for atomic writes of", path)(std::io::Error::last_os_error()));
    }
    let word = |at: usize| words.0[at];
    if word(StatxWords::MASK) & STATX_WRITE_ATOMIC == 0 {
        return Ok(AtomicUnits::Unsaid);
    }
    let bytes = |at: usize| Bytes(word(at).into());
    let (min, max) = (bytes(StatxWords::UNIT_MIN), bytes(StatxWords::UNIT_MAX));
    let optimal = bytes(StatxWords::UNIT_MAX_OPT);
    Ok(match max {
        Bytes::ZERO => AtomicUnits::None,
        _ => AtomicUnits::Sizes(AtomicSizes {
            min,
            max,
            max_by_device: max_by_device(max, optimal, device),
        }),
    })
}

/// Up to where the device does it. `optimal` is what statx gives as the limit above which it is slower: zero
/// before Linux 6.16, where the device did all, and zero too where the filesystem does all. Then the device's
/// own word decides.
fn max_by_device(max: Bytes, optimal: Bytes, device: Option<Bytes>) -> Bytes {
    match (optimal, device) {
        (Bytes::ZERO, Some(device)) => max.min(device),
        (Bytes::ZERO, None) => max,
        (optimal, _) => optimal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(unit_max: Option<u64>) -> AtomicDevice {
        let unit_max = unit_max.map(Bytes::from_kib);
        AtomicDevice { name: "sda".to_owned(), unit_min: unit_max, unit_max }
    }

    fn answer(target: AtomicUnits, device: AtomicDevice, kib: u64) -> AtomicAnswer {
        AtomicWrites { target, devices: vec![device] }.answer(Bytes::from_kib(kib))
    }

    #[test]
    fn sizes_between_the_limits_are_atomic() {
        let sizes = AtomicUnits::Sizes(AtomicSizes {
            min: Bytes::from_kib(4),
            max: Bytes::from_kib(64),
            max_by_device: Bytes::from_kib(16),
        });
        for (kib, expected) in [
            (4, AtomicAnswer::ByDevice),
            (16, AtomicAnswer::ByDevice),
            (32, AtomicAnswer::ByFilesystem),
            (128, AtomicAnswer::No(NotAtomic::Above(Bytes::from_kib(64)))),
            (2, AtomicAnswer::No(NotAtomic::Below(Bytes::from_kib(4)))),
            (12, AtomicAnswer::No(NotAtomic::Uneven)),
        ] {
            assert_eq!(answer(sizes, device(Some(16)), kib), expected, "{kib} KiB");
        }
    }

    #[test]
    fn who_does_it_is_told_from_what_statx_and_the_device_say() {
        let kib = Bytes::from_kib;
        for (optimal, device, expected) in [
            // Linux 6.13: the device does all that it offers.
            (Bytes::ZERO, Some(kib(64)), kib(64)),
            // XFS of 6.16: beyond the device's limit.
            (kib(16), Some(kib(16)), kib(16)),
            // XFS on a device without atomic writes.
            (Bytes::ZERO, Some(Bytes::ZERO), Bytes::ZERO),
            (Bytes::ZERO, None, kib(64)),
        ] {
            assert_eq!(max_by_device(kib(64), optimal, device), expected, "{optimal} {device:?}");
        }
    }

    #[test]
    fn a_silent_kernel_is_told_from_a_silent_filesystem_and_from_a_no() {
        use AtomicUnits::{None as Not, Unsaid};
        for (target, unit_max, expected) in [
            (Not, Some(0), AtomicAnswer::No(NotAtomic::Device)),
            (Not, Some(16), AtomicAnswer::No(NotAtomic::Filesystem)),
            (Unsaid, Some(0), AtomicAnswer::No(NotAtomic::Device)),
            (Unsaid, Some(16), AtomicAnswer::Unsaid(AtomicUnsaid::Filesystem)),
            (Unsaid, None, AtomicAnswer::Unsaid(AtomicUnsaid::Kernel)),
        ] {
            assert_eq!(answer(target, device(unit_max), 16), expected, "{target:?} {unit_max:?}");
        }
    }
}
