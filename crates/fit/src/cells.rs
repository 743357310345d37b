//! Reads that a fit was not made from: what they give, and what its model says.

use crate::prediction::{CellKind, Prediction};
use crate::{Doubt, FitError, Read, SMALL, Storage, model_of};
use device::profile::Kind;
use random::Stream;
use units::Bytes;

/// The cells: none of them is among the reads that fits are made from.
const CELLS: [(CellKind, u64, u32); 10] = [
    (CellKind::Random { percent: 10 }, SMALL, 1),
    (CellKind::Random { percent: 10 }, SMALL, 12),
    (CellKind::Random { percent: 50 }, SMALL, 3),
    (CellKind::Random { percent: 100 }, SMALL, 24),
    (CellKind::Random { percent: 100 }, 4 * SMALL, 6),
    (CellKind::Random { percent: 100 }, 16 * SMALL, 1),
    (CellKind::Random { percent: 30 }, 64 * SMALL, 3),
    (CellKind::Sequential { percent: 3 }, 16 * SMALL, 1),
    (CellKind::Sequential { percent: 90 }, 128 * SMALL, 3),
    (CellKind::Streams { streams: 4 }, 32 * SMALL, 4),
];

/// Reads of a cell at the most, and MiB: two seconds of a slow disk.
const READS: u64 = 400;
const MEBIBYTES: u64 = 64;

/// An error that makes a prediction useless for choosing between settings.
const WRONG: f64 = 0.25;

/// Reads all cells on both.
pub fn predict<S: Storage>(
    storage: &mut S,
    kind: &Kind,
    seed: u64,
) -> Result<Vec<Prediction>, FitError<S::Error>> {
    let Some(mut model) = model_of(kind, seed) else {
        return Err(FitError::NoDevice { what: "its numbers contradict each other".to_owned() });
    };
    let mut stream = Stream::new(seed, "cells");
    let mut predictions = Vec::new();
    for (kind, count, depth) in CELLS {
        let capacity = storage.capacity().0.min(model.capacity().0);
        let reads = reads_of(kind, count, capacity, &mut stream);
        let measured = storage.read(&reads, depth)?.per_second();
        let Ok(predicted) = model.read(&reads, depth).map(|answers| answers.per_second());
        let block = Bytes(count * 512);
        predictions.push(Prediction { kind, block, depth, measured, predicted });
    }
    Ok(predictions)
}

fn reads_of(kind: CellKind, count: u64, capacity: u64, stream: &mut Stream) -> Vec<Read> {
    let number = READS.min((MEBIBYTES << 20) / 512 / count);
    let blocks = capacity / count;
    match kind {
        CellKind::Random { percent } => {
            let within = (blocks * percent / 100).max(1);
            let from = stream.below(blocks - within + 1);
            (0..number).map(|_| Read::at((from + stream.below(within)) * count, count)).collect()
        }
        CellKind::Sequential { percent } => {
            let from = (blocks * percent / 100).min(blocks.saturating_sub(number));
            (0..number).map(|n| Read::at((from + n) * count, count)).collect()
        }
        CellKind::Streams { streams } => {
            let each = blocks / streams;
            (0..number)
                .map(|n| Read::at((n % streams * each + each / 3 + n / streams) * count, count))
                .collect()
        }
    }
}

/// Whether the predictions leave room for doubt.
pub fn doubt(predictions: &[Prediction]) -> Option<Doubt> {
    let wrong = predictions.iter().filter(|cell| cell.error().abs() > WRONG).count();
    (wrong > 0).then_some(Doubt::Predictions { wrong, of: predictions.len() })
}
