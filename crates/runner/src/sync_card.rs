//! Measures a [`SyncCard`]: every way of making a write durable, in scratch files of our own.

use crate::{WorldError, worlds::new_file};
use host::{
    AtomicWrites, Changes, DeviceNumber, DirectIoSupport, Host, Inspection, Sampler, ScratchPlace,
    SyncCard, SyncCell, SyncFigures, SyncMeasured, SyncMethod, SyncOutcome, SyncPlace, TargetKind,
    check_room,
};
use load::{CommitSpec, Commits, LayOut, LoadError, Place, Target, commits, lay_out, settle};
use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Instant,
};
use units::{Bytes, Nanos};
use workload::{AfterWrite, OpenSync, SyncMode};

/// How long all cells together are measured, when nobody says.
pub const DEFAULT_SYNC_TIME: Nanos = Nanos::from_secs(90);
/// The least: with less, most cells would have single writes.
pub const MIN_SYNC_TIME: Nanos = Nanos::from_secs(3);
/// The most: a card is no endurance test.
pub const MAX_SYNC_TIME: Nanos = Nanos::from_secs(600);

/// Sizes that are overwritten: a sector (a redo log's block), a page, InnoDB's page.
const IN_PLACE_SIZES: [Bytes; 3] = [Bytes(512), Bytes::from_kib(4), Bytes::from_kib(16)];
/// Sizes that are appended.
const APPENDED_SIZES: [Bytes; 2] = [Bytes::from_kib(4), Bytes::from_kib(16)];
/// Writers at once.
const WRITERS: [u32; 2] = [1, 4];
/// The length of a writer's file.
const FILE: Bytes = Bytes::from_mib(16);
/// Each cell is measured twice, the second time in reverse order, so that what the storage becomes meanwhile
/// favours none.
const PASSES: u64 = 2;
/// Writes of one writer in a pass, at most: more would tell no more of its percentiles.
const WRITES_MAX: u64 = 4096;

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SyncStep<'a> {
    /// The files are being written.
    LayingOut,
    /// One of `steps` measurements begins.
    Measuring {
        /// Of which cell.
        cell: &'a SyncCell,
        /// How many are done.
        done: usize,
        /// Of how many.
        steps: usize,
    },
}

/// The target cannot have a card.
#[derive(Debug, thiserror::Error)]
pub enum SyncRefusal {
    /// It would be overwritten.
    #[error(
        "{} is a block device, and what a commit costs depends on its filesystem: mount one and give the \
         folder, or measure the bare device with spindle compare {} --sync direct,direct+odsync \
         --patterns randwrite --confirm",
        .0.display(), .0.display()
    )]
    BlockDevice(PathBuf),
    /// The time is too short or too long.
    #[error("a sync card takes {MIN_SYNC_TIME} to {MAX_SYNC_TIME} of measuring, and {0} was asked")]
    Time(Nanos),
}

/// Measures the card of the folder that was inspected, or of a file's folder. `command` is what the user
/// typed, for the journal; `watch` is told of each step. What is made is taken away again, also when `stop`
/// becomes true, which is an error.
pub fn sync_card(
    host: &Host,
    inspection: &Inspection,
    (time, command): (Nanos, &str),
    stop: &AtomicBool,
    watch: &mut dyn FnMut(SyncStep),
) -> Result<SyncCard, WorldError> {
    let place = ScratchPlace::of(host, &folder_of(inspection)?).map_err(WorldError::usage)?;
    let folder = place.folder.clone();
    if !(MIN_SYNC_TIME..=MAX_SYNC_TIME).contains(&time) {
        return Err(WorldError::usage(SyncRefusal::Time(time)));
    }
    // As many files that grow as are written in place.
    check_room(&folder, FILE * u64::from(WRITERS[1]) * 2).map_err(WorldError::usage)?;
    let atomic = AtomicWrites::of_chain(host, &inspection.chain).map_err(WorldError::fatal)?;
    let begun = Instant::now();
    let mut changes = Changes::begin(host, command).map_err(WorldError::fatal)?;
    let claimed = changes.claim(&inspection.chain.claimed()).map_err(WorldError::fatal);
    let cells =
        claimed.and_then(|()| measure(&mut changes, inspection, &folder, time, stop, watch));
    let report = changes.finish().map_err(WorldError::fatal)?;
    if !report.is_complete() {
        return Err(WorldError::left_behind(&report));
    }
    let (cells, counted) = cells?;
    let took = Nanos::from(begun.elapsed());
    Ok(SyncCard::new(inspection, atomic, SyncMeasured { cells, counted, took, place }))
}

/// Where scratch files go.
fn folder_of(inspection: &Inspection) -> Result<PathBuf, WorldError> {
    let target = &inspection.chain.target;
    match inspection.chain.kind {
        TargetKind::Directory => Ok(target.clone()),
        TargetKind::File => Ok(target.parent().unwrap_or(Path::new("/")).to_owned()),
        TargetKind::BlockDevice => Err(WorldError::usage(SyncRefusal::BlockDevice(target.clone()))),
    }
}

/// The files that are written: in place, and growing.
struct Files {
    in_place: Vec<Target>,
    appended: Vec<Target>,
}

fn measure(
    changes: &mut Changes,
    inspection: &Inspection,
    folder: &Path,
    time: Nanos,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(SyncStep),
) -> Result<(Vec<SyncCell>, Option<DeviceNumber>), WorldError> {
    watch(SyncStep::LayingOut);
    let files = Files::make(changes, folder, stop)?;
    let direct = inspection.chain.direct_io.as_ref().map(|it| it.support);
    let mut cells = cells(direct.unwrap_or(DirectIoSupport::Unknown));
    let counted = counted(inspection);
    let mut sampler =
        Sampler::new(changes.host(), counted.as_slice()).map_err(WorldError::fatal)?;
    let open = cells.iter().filter(|cell| matches!(cell.outcome, SyncOutcome::Measured(_)));
    let steps = open.count() as u64 * PASSES;
    let mut sums = vec![Sum::default(); cells.len()];
    let mut done = 0;
    for pass in 0..PASSES {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        if pass % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let cell = &mut cells[at];
            let SyncOutcome::Measured(_) = cell.outcome else { continue };
            watch(SyncStep::Measuring { cell, done, steps: steps as usize });
            done += 1;
            let spec = files.spec(cell, Nanos(time.0 / steps.max(1)), pass);
            let before = sampler.sample().device;
            let ended = commits(&spec, stop);
            let after = sampler.sample().device;
            settle(&spec).map_err(WorldError::fatal)?;
            match ended {
                Ok(commits) => sums[at].add(commits, before, after),
                Err(LoadError::Stopped) => return Err(WorldError::Interrupted),
                Err(error) => cell.outcome = refused(error)?,
            }
        }
    }
    for (cell, sum) in cells.iter_mut().zip(sums) {
        if let SyncOutcome::Measured(figures) = &mut cell.outcome {
            *figures = sum.figures();
        }
    }
    Ok((cells, counted))
}

/// The topmost device with hardware queues: the kernel counts flushes there, and not of partitions, mapped devices
/// and arrays.
fn counted(inspection: &Inspection) -> Option<DeviceNumber> {
    let has_queues = |device: &&host::BlockDevice| {
        let queues = device.queue.as_ref().is_some_and(|queue| queue.hardware_queues > 0);
        queues && !matches!(device.kind, host::DeviceKind::Partition { .. })
    };
    inspection.chain.devices().find(has_queues).map(|device| device.number)
}

/// A write that the filesystem does not take in this way is an answer; a device that fails is not.
fn refused(error: LoadError) -> Result<SyncOutcome, WorldError> {
    /// EINVAL and EOPNOTSUPP of Linux.
    const REFUSALS: [i32; 2] = [22, 95];
    let errno = match &error {
        LoadError::Operation { errno, .. } => Some(*errno),
        LoadError::Target { source, .. } => source.raw_os_error(),
        _ => None,
    };
    match errno.filter(|errno| REFUSALS.contains(errno)) {
        Some(errno) => Ok(SyncOutcome::Refused(errno)),
        None => Err(WorldError::fatal(error)),
    }
}

/// The cells in the order of the card; those that O_DIRECT forbids are answered already.
fn cells(direct: DirectIoSupport) -> Vec<SyncCell> {
    let mut cells = Vec::new();
    for writers in WRITERS {
        for method in SyncMethod::ALL {
            let in_place = IN_PLACE_SIZES.map(|size| (SyncPlace::InPlace, size));
            let appended = APPENDED_SIZES.map(|size| (SyncPlace::Appended, size));
            for (place, size) in in_place.into_iter().chain(appended) {
                let outcome = match direct {
                    _ if !method.is_direct() => SyncOutcome::Measured(SyncFigures::default()),
                    DirectIoSupport::No => SyncOutcome::NoDirect,
                    DirectIoSupport::Aligned { offset, .. } if !size.0.is_multiple_of(offset.0) => {
                        SyncOutcome::TooSmallForDirect(offset)
                    }
                    _ => SyncOutcome::Measured(SyncFigures::default()),
                };
                cells.push(SyncCell { method, place, size, writers, outcome });
            }
        }
    }
    cells
}

impl Files {
    fn make(changes: &mut Changes, folder: &Path, stop: &AtomicBool) -> Result<Files, WorldError> {
        let scratch = changes.scratch_folder(folder).map_err(WorldError::fatal)?.held;
        let named = |name: &str, size| -> Result<Vec<Target>, WorldError> {
            (0..WRITERS[1])
                .map(|number| new_file(&scratch, &format!("{name}-{number}"), size))
                .collect()
        };
        let files =
            Files { in_place: named("log", FILE)?, appended: named("growing", Bytes::ZERO)? };
        for target in &files.in_place {
            let what = LayOut { target, seed: 1, reuse: false };
            match lay_out(&what, &mut |_| {}, stop) {
                Ok(_) => {}
                Err(LoadError::Stopped) => return Err(WorldError::Interrupted),
                Err(error) => return Err(WorldError::fatal(error)),
            }
        }
        Ok(files)
    }

    fn spec(&self, cell: &SyncCell, time: Nanos, pass: u64) -> CommitSpec<'_> {
        let (files, place) = match cell.place {
            SyncPlace::InPlace => (&self.in_place, Place::InPlace(FILE)),
            SyncPlace::Appended => (&self.appended, Place::Appended(FILE)),
        };
        CommitSpec {
            files: &files[..cell.writers as usize],
            place,
            block: cell.size,
            sync: sync_mode(cell.method),
            time,
            writes_max: WRITES_MAX,
            seed: pass,
        }
    }
}

fn sync_mode(method: SyncMethod) -> SyncMode {
    let base = if method.is_direct() { SyncMode::DIRECT } else { SyncMode::BUFFERED };
    match method {
        SyncMethod::Buffered | SyncMethod::Direct => base,
        SyncMethod::Fsync => SyncMode { after: AfterWrite::Fsync, ..base },
        SyncMethod::Fdatasync => SyncMode { after: AfterWrite::Fdatasync, ..base },
        SyncMethod::Odsync | SyncMethod::DirectOdsync => {
            SyncMode { open: OpenSync::ODsync, ..base }
        }
    }
}

/// The passes of one cell.
#[derive(Clone, Default)]
struct Sum {
    times: Vec<Nanos>,
    rates: Vec<f64>,
    counted: Option<(u64, u64)>,
}

impl Sum {
    fn add(
        &mut self,
        commits: Commits,
        before: Option<host::DeviceCounters>,
        after: Option<host::DeviceCounters>,
    ) {
        self.times.extend(commits.times);
        self.rates.push(commits.per_second);
        if let Some((before, after)) = before.zip(after) {
            let (flushes, writes) = self.counted.unwrap_or_default();
            self.counted = Some((
                flushes + after.flushes.saturating_sub(before.flushes),
                writes + after.writes.completed.saturating_sub(before.writes.completed),
            ));
        }
    }

    fn figures(self) -> SyncFigures {
        let rate = self.rates.iter().sum::<f64>() / self.rates.len().max(1) as f64;
        SyncFigures {
            flushes: self.counted.map(|(flushes, _)| flushes),
            device_writes: self.counted.map(|(_, writes)| writes),
            ..SyncFigures::of(self.times, rate)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_o_direct_forbids_is_not_tried() {
        let aligned = DirectIoSupport::Aligned { memory: Bytes(512), offset: Bytes::from_kib(4) };
        let cells = cells(aligned);
        assert_eq!(cells.len(), 60);
        let forbidden =
            |cell: &&SyncCell| matches!(cell.outcome, SyncOutcome::TooSmallForDirect(_));
        let small: Vec<&SyncCell> = cells.iter().filter(forbidden).collect();
        assert_eq!(small.len(), 4, "direct and direct with O_DSYNC, by one and four writers");
        assert!(small.iter().all(|cell| cell.size == Bytes(512) && cell.method.is_direct()));
    }

    #[test]
    fn a_refused_write_is_an_answer_and_a_failing_device_is_none() {
        let error = |errno| LoadError::Operation {
            path: "/srv/log".into(),
            stage: load::Stage::Write,
            offset: Bytes::ZERO,
            errno,
        };
        assert_eq!(refused(error(22)).unwrap(), SyncOutcome::Refused(22));
        assert!(matches!(refused(error(5)), Err(WorldError::Fatal(_))));
    }
}
