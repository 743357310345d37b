//! What durability costs on a storage, as one value: measured times, and what they and the kernel's words
//! say of the device's cache, of atomic writes and of O_DIRECT without fsync.
//!
//! What lives here: the value and its judgements. What does not: the measuring (`load`), the words (`report`).

mod no_fsync;
mod power_loss;

pub use no_fsync::{NoFsync, NoFsyncReason, NoFsyncVerdict};
pub use power_loss::{CacheEvidence, PowerLoss, PowerLossVerdict};

use crate::{
    AtomicAnswer, AtomicWrites, BlockDevice, Bus, Chain, DeviceKind, DeviceNumber, Inspection,
    Probe, ScratchPlace,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::{Bytes, Nanos};

/// What `spindle inspect TARGET --sync` shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyncCard {
    /// The folder that was measured in.
    pub target: PathBuf,
    /// The kernel's release.
    pub kernel: String,
    /// The type of its filesystem.
    pub filesystem: String,
    /// Where that is mounted.
    pub mount_point: PathBuf,
    /// Every device below it, from the top down, partitions aside.
    pub devices: Vec<SyncDevice>,
    /// The device whose flushes were counted; none where there is none.
    pub counted: Option<DeviceNumber>,
    /// What a second of random reads showed.
    pub probe: Option<Probe>,
    /// What was measured, in the order of the card.
    pub cells: Vec<SyncCell>,
    /// What a commit costs.
    pub commit: CommitCost,
    /// How a direct write with O_DSYNC was made durable.
    pub durable_by: DurableBy,
    /// Whether the device's cache looks protected against power loss.
    pub power_loss: PowerLoss,
    /// Atomic writes.
    pub atomic: AtomicWrites,
    /// Whether pages of the servers can be written atomically.
    pub pages: Vec<PageAnswer>,
    /// Whether O_DIRECT without fsync is safe here.
    pub no_fsync: NoFsync,
    /// How long all of it took.
    pub took: Nanos,
    /// Where the scratch files were, when the target is in a data folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<ScratchPlace>,
}

/// A device as far as durability goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncDevice {
    /// Its number.
    pub number: DeviceNumber,
    /// The kernel's name.
    pub name: String,
    /// How it is attached.
    pub bus: Bus,
    /// The maker's name of the model.
    pub model: Option<String>,
    /// `queue/write_cache`: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// `queue/fua`.
    pub fua: Option<bool>,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// A loop device that goes through the page cache of the filesystem below it.
    pub buffered_loop: bool,
    /// Another machine's device (nbd, rbd, drbd).
    pub remote: bool,
    /// Whether nothing of this host stands below it.
    pub is_lowest: bool,
}

/// How a write is made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncMethod {
    /// Not at all: into the page cache.
    Buffered,
    /// write, then fsync.
    Fsync,
    /// write, then fdatasync.
    Fdatasync,
    /// The file is open with O_DSYNC.
    Odsync,
    /// O_DIRECT alone: past the page cache, durable if the device's cache is.
    Direct,
    /// O_DIRECT and O_DSYNC: FUA where the device has it, else a flush follows.
    DirectOdsync,
}

impl SyncMethod {
    /// All of them, in the order of the card.
    pub const ALL: [SyncMethod; 6] = [
        SyncMethod::Buffered,
        SyncMethod::Fsync,
        SyncMethod::Fdatasync,
        SyncMethod::Odsync,
        SyncMethod::Direct,
        SyncMethod::DirectOdsync,
    ];

    /// Whether it goes past the page cache.
    pub fn is_direct(self) -> bool {
        matches!(self, SyncMethod::Direct | SyncMethod::DirectOdsync)
    }
}

/// Where writes go in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncPlace {
    /// One after the other in a file that was written before, from its beginning again at its end, as a
    /// redo log.
    InPlace,
    /// At the end of a file that grows, as a binary log: the filesystem has to make the new length durable
    /// too.
    Appended,
}

/// One row and column of the card.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SyncCell {
    /// How.
    pub method: SyncMethod,
    /// Where.
    pub place: SyncPlace,
    /// Bytes of a write.
    pub size: Bytes,
    /// Writers at once, each with a file of its own.
    pub writers: u32,
    /// What came of it.
    pub outcome: SyncOutcome,
}

/// What came of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncOutcome {
    /// It was measured.
    Measured(SyncFigures),
    /// O_DIRECT does not take this size here.
    TooSmallForDirect(Bytes),
    /// The filesystem refuses O_DIRECT.
    NoDirect,
    /// The kernel refused the write, with this error number.
    Refused(i32),
}

/// The figures of a cell. A time is a write and what makes it durable together, as a transaction waits
/// for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncFigures {
    /// How many writes.
    pub writes: u64,
    /// Of all writers together.
    pub per_second: f64,
    /// Half of them took less; none where there are too few to tell.
    pub p50: Option<Nanos>,
    /// One in a hundred took longer; none where there are too few to tell.
    pub p99: Option<Nanos>,
    /// Flushes that the device counted meanwhile; none where it counts none.
    pub flushes: Option<u64>,
    /// Write requests that the device counted meanwhile.
    pub device_writes: Option<u64>,
}

/// Times fewer than these say nothing of a percentile.
const MEDIAN_MIN: usize = 5;
/// The 99th percentile is the longest of a hundred.
const P99_MIN: usize = 100;

impl SyncFigures {
    /// Of single times, of writers whose rates add up to `per_second`.
    pub fn of(mut times: Vec<Nanos>, per_second: f64) -> SyncFigures {
        times.sort_unstable();
        // The nearest rank: as many of a hundred lie at or below it.
        let at = |percent: usize, least: usize| {
            let rank = (times.len() * percent).div_ceil(100).max(1);
            (times.len() >= least).then(|| times[rank - 1])
        };
        SyncFigures {
            writes: times.len() as u64,
            per_second,
            p50: at(50, MEDIAN_MIN),
            p99: at(99, P99_MIN),
            flushes: None,
            device_writes: None,
        }
    }
}

/// Commits a second: of writes of 4 KiB with fdatasync. None where they could not be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommitCost {
    /// In place, one writer: the most that one client of a server can commit that flushes its log at each.
    pub in_place_1: Option<f64>,
    /// In place, four writers.
    pub in_place_4: Option<f64>,
    /// Appended, one writer.
    pub appended_1: Option<f64>,
    /// Appended, four writers.
    pub appended_4: Option<f64>,
    /// One client whose commits append to one log and write another in place, one after the other.
    pub both_logs_1: Option<f64>,
}

/// The size of a write that stands for a commit.
const COMMIT: Bytes = Bytes::from_kib(4);

impl CommitCost {
    /// From the cells of a card.
    pub fn of(cells: &[SyncCell]) -> CommitCost {
        let rate = |place, writers| {
            figures(cells, SyncMethod::Fdatasync, place, COMMIT, writers).map(|it| it.per_second)
        };
        let (in_place_1, appended_1) = (rate(SyncPlace::InPlace, 1), rate(SyncPlace::Appended, 1));
        CommitCost {
            in_place_1,
            in_place_4: rate(SyncPlace::InPlace, 4),
            appended_1,
            appended_4: rate(SyncPlace::Appended, 4),
            both_logs_1: in_place_1.zip(appended_1).map(|(one, two)| 1.0 / (1.0 / one + 1.0 / two)),
        }
    }
}

/// How a direct write with O_DSYNC was made durable, by what the device counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DurableBy {
    /// The write itself said so (FUA): the device has it, and counted no flushes.
    Fua,
    /// A flush of the device's cache.
    Flush,
    /// Neither is sent: the device says that it has no volatile cache.
    Neither,
    /// It could not be counted.
    Unknown,
}

impl DurableBy {
    /// From the card's cell of one writer in place.
    fn of(cells: &[SyncCell], devices: &[SyncDevice], counted: Option<DeviceNumber>) -> DurableBy {
        let found = figures(cells, SyncMethod::DirectOdsync, SyncPlace::InPlace, COMMIT, 1);
        let device = devices.iter().find(|device| Some(device.number) == counted);
        let (Some(figures), Some(device)) = (found, device) else { return DurableBy::Unknown };
        let (Some(flushes), true) = (figures.flushes, figures.writes > 0) else {
            return DurableBy::Unknown;
        };
        let share = flushes as f64 / figures.writes as f64;
        match device.write_cache.as_deref() {
            // Other programs may flush too: most writes without one is no flush a write.
            _ if share >= 0.5 => DurableBy::Flush,
            Some("write through") => DurableBy::Neither,
            Some(_) if device.fua == Some(true) => DurableBy::Fua,
            _ => DurableBy::Unknown,
        }
    }
}

/// Whether a server's page can be written atomically.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageAnswer {
    /// Whose.
    pub server: PageOwner,
    /// Its default size.
    pub size: Bytes,
    /// The answer.
    pub answer: AtomicAnswer,
}

/// Whose pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageOwner {
    /// MySQL's and MariaDB's engine.
    InnoDb,
    /// PostgreSQL.
    PostgreSql,
}

impl PageOwner {
    /// The default page size (innodb_page_size; BLCKSZ).
    pub fn page_size(self) -> Bytes {
        match self {
            PageOwner::InnoDb => Bytes::from_kib(16),
            PageOwner::PostgreSql => Bytes::from_kib(8),
        }
    }
}

/// What was measured for a card.
#[derive(Clone, Debug, PartialEq)]
pub struct SyncMeasured {
    /// The cells.
    pub cells: Vec<SyncCell>,
    /// The device whose flushes were counted.
    pub counted: Option<DeviceNumber>,
    /// How long it took.
    pub took: Nanos,
    /// Where the scratch files were.
    pub place: ScratchPlace,
}

impl SyncCard {
    /// The card of a folder that was inspected and measured.
    pub fn new(inspection: &Inspection, atomic: AtomicWrites, measured: SyncMeasured) -> SyncCard {
        let SyncMeasured { cells, counted, took, place } = measured;
        let chain = &inspection.chain;
        let devices = sync_devices(chain);
        let mount = chain.filesystem().map(|filesystem| &filesystem.mount);
        let power_loss = PowerLoss::of(inspection, &devices, &cells);
        let pages = [PageOwner::InnoDb, PageOwner::PostgreSql].map(|server| PageAnswer {
            server,
            size: server.page_size(),
            answer: atomic.answer(server.page_size()),
        });
        SyncCard {
            target: chain.target.clone(),
            kernel: inspection.machine.kernel.clone(),
            filesystem: mount.map(|mount| mount.kind.clone()).unwrap_or_default(),
            mount_point: mount.map(|mount| mount.point.clone()).unwrap_or_default(),
            counted,
            probe: inspection.probe.clone(),
            commit: CommitCost::of(&cells),
            durable_by: DurableBy::of(&cells, &devices, counted),
            no_fsync: NoFsync::of(chain, &devices, &power_loss),
            power_loss,
            atomic,
            pages: pages.into(),
            devices,
            cells,
            took,
            beside: Some(place).filter(|place| place.beside.is_some()),
        }
    }

    /// The figures of one cell, when it was measured.
    pub fn figures(
        &self,
        method: SyncMethod,
        place: SyncPlace,
        size: Bytes,
        writers: u32,
    ) -> Option<&SyncFigures> {
        figures(&self.cells, method, place, size, writers)
    }
}

fn figures(
    cells: &[SyncCell],
    method: SyncMethod,
    place: SyncPlace,
    size: Bytes,
    writers: u32,
) -> Option<&SyncFigures> {
    let is_it = |cell: &&SyncCell| {
        (cell.method, cell.place, cell.size, cell.writers) == (method, place, size, writers)
    };
    match &cells.iter().find(is_it)?.outcome {
        SyncOutcome::Measured(figures) => Some(figures),
        _ => None,
    }
}

fn sync_devices(chain: &Chain) -> Vec<SyncDevice> {
    let all: Vec<&BlockDevice> = chain
        .devices()
        .filter(|device| !matches!(device.kind, DeviceKind::Partition { .. }))
        .collect();
    // What a loop device's file lies on follows it in the chain.
    let last = all.last().map(|device| device.number);
    let is_lowest = |device: &BlockDevice| match device.loop_state() {
        Some(state) if state.backing_file.is_some() => Some(device.number) == last,
        _ => device.below.is_empty(),
    };
    all.into_iter()
        .map(|device| {
            let queue = device.queue.as_ref();
            SyncDevice {
                number: device.number,
                name: device.name.clone(),
                bus: device.bus,
                model: device.model.clone(),
                write_cache: queue.and_then(|queue| queue.write_cache.clone()),
                fua: queue.and_then(|queue| queue.fua),
                rotational: queue.and_then(|queue| queue.rotational),
                buffered_loop: device.loop_state().is_some_and(|state| !state.direct_io),
                remote: matches!(device.kind, DeviceKind::Network),
                is_lowest: is_lowest(device),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(place: SyncPlace, writers: u32, per_second: f64) -> SyncCell {
        let figures = SyncFigures { writes: 100, per_second, ..SyncFigures::default() };
        let (method, outcome) = (SyncMethod::Fdatasync, SyncOutcome::Measured(figures));
        SyncCell { method, place, size: COMMIT, writers, outcome }
    }

    #[test]
    fn few_times_have_no_percentiles() {
        let of = |count: u64| SyncFigures::of((1..=count).rev().map(Nanos).collect(), 1.0);
        assert_eq!((of(4).p50, of(4).p99), (None, None));
        assert_eq!((of(5).p50, of(99).p99), (Some(Nanos(3)), None));
        assert_eq!((of(100).p50, of(100).p99), (Some(Nanos(50)), Some(Nanos(99))));
    }

    #[test]
    fn two_logs_one_after_the_other_take_the_time_of_both() {
        let cells = [cell(SyncPlace::InPlace, 1, 300.0), cell(SyncPlace::Appended, 1, 150.0)];
        let cost = CommitCost::of(&cells);
        assert!((cost.both_logs_1.unwrap() - 100.0).abs() < 1e-9, "{cost:?}");
        assert_eq!(cost.appended_4, None);
    }

    #[test]
    fn flushes_and_the_queue_s_word_tell_how_a_write_became_durable() {
        let device = |write_cache: &str, fua| SyncDevice {
            number: "8:0".parse().unwrap(),
            name: "sda".to_owned(),
            bus: Bus::Sata,
            model: None,
            write_cache: Some(write_cache.to_owned()),
            fua: Some(fua),
            rotational: None,
            buffered_loop: false,
            remote: false,
            is_lowest: true,
        };
        for (write_cache, fua, flushes, expected) in [
            ("write back", true, Some(2), DurableBy::Fua),
            ("write back", false, Some(99), DurableBy::Flush),
            ("write through", false, Some(0), DurableBy::Neither),
            ("write back", false, Some(0), DurableBy::Unknown),
            ("write back", true, None, DurableBy::Unknown),
        ] {
            let figures = SyncFigures { writes: 100, flushes, ..SyncFigures::default() };
            let cell = SyncCell {
                method: SyncMethod::DirectOdsync,
                outcome: SyncOutcome::Measured(figures),
                ..cell(SyncPlace::InPlace, 1, 1.0)
            };
            let device = device(write_cache, fua);
            let number = device.number;
            assert_eq!(DurableBy::of(&[cell], &[device], Some(number)), expected, "{write_cache}");
        }
    }
}
