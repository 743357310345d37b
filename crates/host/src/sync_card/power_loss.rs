//! Whether a device's cache looks protected against power loss. Only pulling the plug proves it; what can be
//! seen is what the device says, and whether it answers faster than its medium can.

use super::{SyncCell, SyncDevice, SyncMethod, SyncPlace, figures};
use crate::{Bus, Inspection, Medium};
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// A verdict with what it stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerLoss {
    /// What it looks like.
    pub verdict: PowerLossVerdict,
    /// Why.
    pub evidence: Vec<CacheEvidence>,
}

/// What a cache looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerLossVerdict {
    /// What was written and made durable is on the medium, or in a cache that nothing says is volatile.
    LooksProtected,
    /// Writes are answered from a cache that has to be flushed to keep them.
    LooksUnprotected,
    /// Neither.
    CannotBeTold,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheEvidence {
    /// The device says that it has a volatile cache (`queue/write_cache` is `write back`).
    SaysVolatile {
        /// The kernel's name.
        device: String,
    },
    /// The device says that it has none (`write through`).
    SaysNotVolatile {
        /// The kernel's name.
        device: String,
    },
    /// The maker's name of the drive.
    Model {
        /// The kernel's name.
        device: String,
        /// The model.
        model: String,
    },
    /// The drive is another machine's or a hypervisor's: what stands behind it is not to be seen.
    Virtual {
        /// The kernel's name.
        device: String,
    },
    /// What answers random reads.
    Medium {
        /// Disk, flash or cache.
        medium: Medium,
        /// Half of the reads took less.
        median: Nanos,
    },
    /// A direct write alone, and one that is durable, at the median.
    Times {
        /// O_DIRECT.
        direct: Nanos,
        /// O_DIRECT and O_DSYNC.
        durable: Nanos,
        /// The least that the medium needs to take a write in.
        medium: Option<Nanos>,
    },
    /// Each write alone takes the time of the medium: no cache answers for it.
    WritesReachTheMedium,
    /// What makes a write durable takes the time of the medium: a cache had held it.
    DurabilityReachesTheMedium,
    /// Durable writes are answered faster than the medium can: from a protected cache, or by a device that
    /// ignores flushes.
    FasterThanTheMedium,
    /// Durable writes cost more than plain ones, and no more than either kind of cache may.
    BetweenBoth,
    /// A direct write could not be measured here.
    NoDirectWrites,
}

/// A quarter of the shortest turn of a disk: 4 ms at 15,000 rpm, the fastest that is sold. On average a disk
/// waits half a turn.
const DISK_MIN: Nanos = Nanos::from_millis(1);
/// The shortest program time of a flash page: 85 µs, of single-level cells (Intel X25-E, 2008).
const FLASH_MIN: Nanos = Nanos::from_micros(85);
/// From here on a flush of a flash drive surely programs pages: several times what one takes on any cells.
const FLASH_FLUSH: Nanos = Nanos::from_millis(1);
/// The writes that are looked at.
const SIZE: Bytes = Bytes::from_kib(4);

impl PowerLoss {
    /// From what is known of the devices and what was measured.
    pub(super) fn of(
        inspection: &Inspection,
        devices: &[SyncDevice],
        cells: &[SyncCell],
    ) -> PowerLoss {
        let lowest: Vec<&SyncDevice> = devices.iter().filter(|device| device.is_lowest).collect();
        let machine = inspection.machine.virtual_machine.is_some();
        let mut evidence: Vec<CacheEvidence> = lowest.iter().flat_map(|it| words(it)).collect();
        evidence.extend(
            lowest
                .iter()
                .filter(|it| is_virtual(it, machine))
                .map(|device| CacheEvidence::Virtual { device: device.name.clone() }),
        );
        let probe = inspection.probe.as_ref();
        evidence
            .extend(probe.map(|it| CacheEvidence::Medium { medium: it.medium, median: it.median }));
        let time = |method| figures(cells, method, SyncPlace::InPlace, SIZE, 1)?.p50;
        let times = time(SyncMethod::Direct).zip(time(SyncMethod::DirectOdsync));
        let verdict = match times {
            None => {
                evidence.push(CacheEvidence::NoDirectWrites);
                PowerLossVerdict::CannotBeTold
            }
            Some(times) => {
                let medium = probe.map(|probe| probe.medium);
                let (verdict, seen) = judge(medium, Cache::of(&lowest), times);
                let least = match medium {
                    Some(Medium::Disk) => Some(DISK_MIN),
                    Some(Medium::Flash) => Some(FLASH_MIN),
                    _ => None,
                };
                let (direct, durable) = times;
                evidence.push(CacheEvidence::Times { direct, durable, medium: least });
                evidence.extend(seen);
                // Figures of a virtual disk are those of its host's stack.
                let hidden = lowest.iter().any(|it| is_virtual(it, machine)) || lowest.is_empty();
                if hidden { PowerLossVerdict::CannotBeTold } else { verdict }
            }
        };
        PowerLoss { verdict, evidence }
    }
}

/// What the lowest devices say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    Volatile,
    NotVolatile,
    Unsaid,
}

impl Cache {
    fn of(lowest: &[&SyncDevice]) -> Cache {
        let says = |it: &SyncDevice, word: &str| it.write_cache.as_deref() == Some(word);
        match () {
            () if lowest.iter().any(|it| says(it, "write back")) => Cache::Volatile,
            () if !lowest.is_empty() && lowest.iter().all(|it| says(it, "write through")) => {
                Cache::NotVolatile
            }
            () => Cache::Unsaid,
        }
    }
}

/// The verdict on a device that is this machine's own.
fn judge(
    medium: Option<Medium>,
    cache: Cache,
    (direct, durable): (Nanos, Nanos),
) -> (PowerLossVerdict, Option<CacheEvidence>) {
    use CacheEvidence::{
        BetweenBoth, DurabilityReachesTheMedium, FasterThanTheMedium, WritesReachTheMedium,
    };
    use PowerLossVerdict::{CannotBeTold, LooksProtected, LooksUnprotected};
    let extra = durable.saturating_sub(direct);
    match medium {
        Some(Medium::Disk) if direct >= DISK_MIN && extra < DISK_MIN => {
            (LooksProtected, Some(WritesReachTheMedium))
        }
        Some(Medium::Disk) if durable < DISK_MIN => (LooksProtected, Some(FasterThanTheMedium)),
        Some(Medium::Disk) if direct < DISK_MIN && cache != Cache::NotVolatile => {
            (LooksUnprotected, Some(DurabilityReachesTheMedium))
        }
        Some(Medium::Flash) if cache == Cache::NotVolatile => (LooksProtected, None),
        Some(Medium::Flash) if extra < FLASH_MIN => (LooksProtected, Some(FasterThanTheMedium)),
        Some(Medium::Flash) if extra >= FLASH_FLUSH => {
            (LooksUnprotected, Some(DurabilityReachesTheMedium))
        }
        Some(Medium::Flash) => (CannotBeTold, Some(BetweenBoth)),
        _ => (CannotBeTold, None),
    }
}

fn words(device: &SyncDevice) -> Vec<CacheEvidence> {
    let name = device.name.clone();
    let cache = match device.write_cache.as_deref() {
        Some("write back") => Some(CacheEvidence::SaysVolatile { device: name.clone() }),
        Some("write through") => Some(CacheEvidence::SaysNotVolatile { device: name.clone() }),
        _ => None,
    };
    let model = device.model.clone().map(|model| CacheEvidence::Model { device: name, model });
    cache.into_iter().chain(model).collect()
}

/// Whether what stands behind a device is another's. In a virtual machine that holds for every drive, even one that
/// looks like hardware.
fn is_virtual(device: &SyncDevice, virtual_machine: bool) -> bool {
    match device.bus {
        _ if device.remote => true,
        Bus::Virtio | Bus::Xen => true,
        Bus::Virtual => false,
        _ => virtual_machine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PowerLossVerdict::*;

    /// Times in µs: a direct write, and a durable one.
    fn verdict(medium: Medium, cache: Cache, direct: u64, durable: u64) -> PowerLossVerdict {
        let times = (Nanos::from_micros(direct), Nanos::from_micros(durable));
        judge(Some(medium), cache, times).0
    }

    #[test]
    fn a_disk_is_judged_by_its_turn() {
        let disk = |cache, direct, durable| verdict(Medium::Disk, cache, direct, durable);
        // No write cache: each write waits for the platter, and the flush finds nothing.
        assert_eq!(disk(Cache::Volatile, 4000, 4100), LooksProtected);
        // A write cache: the write is answered from it, the flush waits for the platter.
        assert_eq!(disk(Cache::Volatile, 300, 4100), LooksUnprotected);
        // A battery, or a lie: durable faster than the platter turns.
        assert_eq!(disk(Cache::Volatile, 100, 150), LooksProtected);
        // Says that it has no cache, and takes time only when asked for durability: who knows.
        assert_eq!(disk(Cache::NotVolatile, 300, 4100), CannotBeTold);
        // Slow both ways, and slower with a flush: a full cache.
        assert_eq!(disk(Cache::Volatile, 3000, 8000), CannotBeTold);
    }

    #[test]
    fn flash_is_judged_by_what_durability_adds() {
        let flash = |cache, direct, durable| verdict(Medium::Flash, cache, direct, durable);
        assert_eq!(flash(Cache::Volatile, 20, 40), LooksProtected);
        assert_eq!(flash(Cache::Volatile, 20, 2500), LooksUnprotected);
        assert_eq!(flash(Cache::Volatile, 20, 500), CannotBeTold);
        assert_eq!(flash(Cache::NotVolatile, 20, 20), LooksProtected);
    }

    #[test]
    fn without_a_known_medium_nothing_is_said() {
        for medium in [Medium::Cache, Medium::Unclear] {
            assert_eq!(verdict(medium, Cache::Volatile, 20, 30), CannotBeTold);
        }
    }
}
