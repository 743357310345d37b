//! A rate that a fit predicts.

use serde::Serialize;
use units::Bytes;

/// What is read in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// Anywhere in a share of the storage.
    Random {
        /// Percent of the capacity.
        percent: u64,
    },
    /// One stream, beginning at a share of the storage.
    Sequential {
        /// Percent of the capacity.
        percent: u64,
    },
    /// Several streams in turn.
    Streams {
        /// How many.
        streams: u64,
    },
}

/// A cell, measured and predicted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// What is read.
    pub kind: CellKind,
    /// Bytes a read.
    pub block: Bytes,
    /// Reads outstanding.
    pub depth: u32,
    /// Reads a second on the storage.
    pub measured: f64,
    /// Reads a second on the model.
    pub predicted: f64,
}

impl Prediction {
    /// Predicted over measured, less one.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}
