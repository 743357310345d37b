//! Device profiles from measurements: what is read, what follows from the times, and how well the profile
//! predicts reads that it was not made from.
//!
//! What lives here: the reads ([`Read`]), the [`Storage`] that answers them, the fit of a disk and of a
//! flash drive, intervals. What does not: files, devices and clocks (the caller's [`Storage`] has them), the
//! models themselves (`device`), text (`report`). Nothing is written to a storage.

mod basics;
mod cells;
mod disk;
mod disk_cache;
mod disk_queue;
mod estimate;
mod flash;
mod outcome;
mod prediction;
mod seeks;
mod storage;

pub use estimate::Estimate;
pub use outcome::{Doubt, Fit, FitError, Number, Quantity, Step};
pub use prediction::{CellKind, Prediction};
pub use storage::{Answers, Model, Read, Storage};

use device::profile::Kind;
use random::Stream;

/// The smallest storage that is fitted: below it, a disk's buffer answers most of what is read.
const SMALLEST: u64 = (1 << 30) / 512;

/// Sectors of the usual small read: 4 KiB.
const SMALL: u64 = 8;

/// Reads `storage` for some minutes, and describes it. The same `seed` reads the same places.
pub fn fit<S: Storage>(
    storage: &mut S,
    seed: u64,
    watch: &mut dyn FnMut(Step),
) -> Result<Fit, FitError<S::Error>> {
    let capacity = storage.capacity().0;
    if capacity < SMALLEST {
        return Err(FitError::TooSmall { capacity: storage.capacity().bytes() });
    }
    watch(Step::Kind);
    let mut stream = Stream::new(seed, "fit");
    let reads: Vec<Read> = (0..200).map(|_| anywhere(&mut stream, capacity, SMALL)).collect();
    let times = millis(&storage.read(&reads, 1)?);
    // Half a turn of the fastest disks is 2 ms, and they spread over a whole one.
    let spread = estimate::quantile(&times, 0.9) - estimate::quantile(&times, 0.1);
    let moves = estimate::quantile(&times, 0.5) > 1.5 && spread > 1.5;
    let (kind, numbers, mut doubts) = match moves {
        true => disk::fit(storage, &mut stream, watch)?,
        false => flash::fit(storage, &mut stream, watch)?,
    };
    watch(Step::Cells);
    let predictions = cells::predict(storage, &kind, seed)?;
    doubts.extend(cells::doubt(&predictions));
    Ok(Fit { kind, numbers, predictions, doubts })
}

/// A read of `count` sectors somewhere, aligned to them.
fn anywhere(stream: &mut Stream, capacity: u64, count: u64) -> Read {
    Read::at(stream.below(capacity / count) * count, count)
}

/// Times in ms.
fn millis(answers: &Answers) -> Vec<f64> {
    answers.times.iter().map(|time| time.as_millis_f64()).collect()
}

/// The description's device as a storage; a description that no device can be built from gives none.
fn model_of(kind: &Kind, seed: u64) -> Option<Model> {
    let device: Box<dyn device::Device> = match kind {
        Kind::Disk(spec) => Box::new(device::Disk::new(spec.clone()).ok()?.at_any_angle(seed)),
        Kind::Flash(spec) => Box::new(device::Flash::new(spec.clone(), seed).ok()?),
        Kind::Array { .. } => return None,
    };
    Some(Model::new(device))
}
