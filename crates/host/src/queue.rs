//! A device's request queue as sysfs shows it (Documentation/ABI/stable/sysfs-block).

use crate::{
    Host,
    tree::{names, number, text},
};
use scheduler::{Generation, SchedulerKind};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use units::Bytes;

/// The most requests that a scheduler may keep (`nr_requests`), of every kernel since 5.0.
pub const NR_REQUESTS_MAX_WITH_SCHEDULER: u32 = 2048;

/// The least that `nr_requests` can be; the kernel raises lower values without a word.
pub const NR_REQUESTS_MIN: u32 = 4;

/// What one queue is set to and what it can do. `None`: this kernel or driver does not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Its folder in sysfs: of the whole disk for a partition.
    #[serde(default)]
    pub read_from: PathBuf,
    /// The scheduler and its alternatives; `None` for devices that pass requests on (dm, md, zram).
    pub scheduler: Option<SchedulerChoice>,
    /// The current scheduler's own settings, by the kernel's names.
    pub tunables: BTreeMap<String, String>,
    /// Requests that may be queued.
    pub nr_requests: Option<u32>,
    /// How many of them may be asynchronous; kernels since 7.0 say.
    #[serde(default)]
    pub async_depth: Option<u32>,
    /// How far `nr_requests` can be raised now.
    pub nr_requests_ceiling: Option<Ceiling>,
    /// Hardware queues.
    pub hardware_queues: u32,
    /// Requests of ours that one hardware queue takes at once: its tags without those that the driver keeps for itself.
    pub hardware_tags: Option<u32>,
    /// How many of them the device itself is given at once, where that is fewer (SCSI's `device/queue_depth`).
    #[serde(default)]
    pub device_queue_depth: Option<u32>,
    /// Target of write-back throttling in microseconds, 0 when off.
    pub wbt_lat_usec: Option<i64>,
    /// Read-ahead of buffered reads, in KiB.
    pub read_ahead_kb: Option<u32>,
    /// What the driver claims; virtual disks on flash often claim to rotate.
    pub rotational: Option<bool>,
    /// `write back` (a volatile cache that flushes empty) or `write through`.
    pub write_cache: Option<String>,
    /// What the device itself says of its cache, in the same words, where a driver tells.
    #[serde(default)]
    pub own_cache: Option<String>,
    /// Whether the kernel counts its requests.
    #[serde(default)]
    pub iostats: Option<bool>,
    /// Whether a single write can be forced to the medium.
    pub fua: Option<bool>,
    /// The smallest request.
    pub logical_block: Option<Bytes>,
    /// The smallest write without a read before it.
    pub physical_block: Option<Bytes>,
    /// The largest request, in KiB.
    pub max_sectors_kb: Option<u32>,
    /// How far `max_sectors_kb` can be raised.
    pub max_hw_sectors_kb: Option<u32>,
    /// 0 all merging, 1 only simple, 2 none.
    pub nomerges: Option<u32>,
    /// Where completions run: 0 anywhere, 1 same group of CPUs, 2 same CPU.
    pub rq_affinity: Option<u32>,
    /// The largest discard; zero when the device discards nothing.
    pub discard_max: Option<Bytes>,
    /// `none`, or the model of a zoned device, on which schedulers are restricted.
    pub zoned: Option<String>,
}

/// The schedulers of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SchedulerChoice {
    /// The one in use.
    pub current: String,
    /// All that can be chosen without loading a module, in the kernel's order.
    pub available: Vec<String>,
}

/// A limit and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The largest value that the kernel takes.
    pub value: u32,
    /// Why.
    pub why: String,
}

impl SchedulerChoice {
    /// From `none [mq-deadline] kyber`; on kernels that show only the current one, from its name.
    pub fn parse(line: &str) -> Option<Self> {
        let bare = |word: &str| word.trim_matches(['[', ']']).to_owned();
        let available: Vec<String> = line.split_whitespace().map(bare).collect();
        let current = line.split_whitespace().find(|word| word.starts_with('[')).map(bare);
        Some(SchedulerChoice {
            current: current.or_else(|| available.first().cloned())?,
            available,
        })
    }
}

/// virtio: `cache_type`; SCSI: that of its disk, which may stand behind "temporary"; a loop device flushes by fsync of
/// its file where it may write.
fn own_cache(disk_folder: &Path) -> Option<String> {
    if disk_folder.join("loop/backing_file").exists() {
        return (number::<u8>(disk_folder.join("ro")) == Some(0)).then(|| "write back".to_owned());
    }
    let scsi = disk_folder.join("device/scsi_disk");
    let of_scsi = || names(&scsi).first().and_then(|disk| text(scsi.join(disk).join("cache_type")));
    let said = text(disk_folder.join("cache_type")).or_else(of_scsi)?;
    // SCSI's other words: "write back, no read (daft)".
    Some(if said.starts_with("write back") { "write back".to_owned() } else { said })
}

impl Queue {
    /// Reads `queue/` of a whole disk's folder in sysfs.
    pub(crate) fn read(host: &Host, disk_folder: &Path) -> Option<Queue> {
        let folder = disk_folder.join("queue");
        if !folder.is_dir() {
            return None;
        }
        let hardware = disk_folder.join("mq");
        let hardware_queues = names(&hardware).len() as u32;
        let reserved: u32 = number(hardware.join("0/nr_reserved_tags")).unwrap_or(0);
        let hardware_tags =
            number(hardware.join("0/nr_tags")).map(|tags: u32| tags.saturating_sub(reserved));
        // A device that passes its requests on has no such file or one that says `none` alone. Before
        // Linux 5.0 a device may have a single queue, and no folder `mq`: its list is longer.
        let scheduler = text(folder.join("scheduler"))
            .and_then(|line| SchedulerChoice::parse(&line))
            .filter(|choice| hardware_queues > 0 || choice.available.len() > 1);
        let flag = |name: &str| number::<u8>(folder.join(name)).map(|value| value != 0);
        let bytes = |name: &str| number(folder.join(name)).map(Bytes);
        Some(Queue {
            read_from: host.inside(&folder),
            nr_requests_ceiling: scheduler
                .as_ref()
                .and_then(|choice| ceiling(&choice.current, hardware_tags)),
            scheduler,
            tunables: tunables(&folder),
            nr_requests: number(folder.join("nr_requests")),
            async_depth: number(folder.join("async_depth")),
            hardware_queues,
            hardware_tags,
            device_queue_depth: number(disk_folder.join("device/queue_depth")),
            wbt_lat_usec: number(folder.join("wbt_lat_usec")),
            read_ahead_kb: number(folder.join("read_ahead_kb")),
            rotational: flag("rotational"),
            write_cache: text(folder.join("write_cache")),
            own_cache: own_cache(disk_folder),
            iostats: flag("iostats"),
            fua: flag("fua"),
            logical_block: bytes("logical_block_size"),
            physical_block: bytes("physical_block_size"),
            max_sectors_kb: number(folder.join("max_sectors_kb")),
            max_hw_sectors_kb: number(folder.join("max_hw_sectors_kb")),
            nomerges: number(folder.join("nomerges")),
            rq_affinity: number(folder.join("rq_affinity")),
            discard_max: bytes("discard_max_bytes"),
            zoned: text(folder.join("zoned")),
        })
    }
}

/// The current scheduler's settings.
pub(crate) fn tunables(queue_folder: &Path) -> BTreeMap<String, String> {
    let folder = queue_folder.join("iosched");
    names(&folder)
        .into_iter()
        .filter_map(|name| text(folder.join(&name)).map(|value| (name, value)))
        .collect()
}

/// How far `nr_requests` goes under `scheduler`. The single-queue block layer sets no limit.
pub(crate) fn ceiling(scheduler: &str, hardware_tags: Option<u32>) -> Option<Ceiling> {
    let single_queue = |kind: SchedulerKind| kind.spec().generation == Generation::SingleQueue;
    if scheduler.parse().is_ok_and(single_queue) {
        return None;
    }
    if scheduler == SchedulerKind::None.name() {
        let value = hardware_tags?;
        let why = format!(
            "without a scheduler every request needs one of the device's {value} hardware tags"
        );
        return Some(Ceiling { value, why });
    }
    let value = NR_REQUESTS_MAX_WITH_SCHEDULER;
    let why = format!("the kernel gives a scheduler at most {value} tags of its own");
    Some(Ceiling { value, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracketed_scheduler_is_current() {
        let choice = SchedulerChoice::parse("none [mq-deadline] kyber bfq ").unwrap();
        assert_eq!(choice.current, "mq-deadline");
        assert_eq!(choice.available, ["none", "mq-deadline", "kyber", "bfq"]);
        assert_eq!(SchedulerChoice::parse("none").unwrap().current, "none");
        assert_eq!(SchedulerChoice::parse(""), None);
        assert_eq!(SchedulerChoice::parse("noop deadline [cfq]").unwrap().current, "cfq");
    }

    #[test]
    fn the_single_queue_block_layer_sets_no_limit_to_nr_requests() {
        assert_eq!(ceiling("cfq", None), None);
        assert_eq!(ceiling("mq-deadline", Some(32)).unwrap().value, 2048);
        assert_eq!(ceiling("none", Some(32)).unwrap().value, 32);
    }
}
