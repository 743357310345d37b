//! What can be wrong in a section of a profile, beyond TOML's own syntax.

use super::super::quantity::Time;

/// A field, or a combination of fields, from which no description can be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SchemaError {
    /// A time out of range.
    #[error("{field}: a time of {time}: expected 0 to 4 s")]
    Time {
        /// The field.
        field: &'static str,
        /// Its value.
        time: Time,
    },
    /// Fields are missing, or exclude each other.
    #[error("expected {expected}")]
    Fields {
        /// The combinations that are valid.
        expected: &'static str,
    },
    /// An overhead without a time.
    #[error("overhead: expected {case}, or command for all")]
    Overhead {
        /// The case that has none.
        case: &'static str,
    },
    /// A range of zones that does not fit the disk.
    #[error("zone_range: {zones} zones of {outer} to {inner} sectors on {cylinders} cylinders")]
    ZoneRange {
        /// How many zones.
        zones: u32,
        /// Sectors per track of the outermost.
        outer: u32,
        /// Sectors per track of the innermost.
        inner: u32,
        /// Cylinders of the disk.
        cylinders: u32,
    },
    /// A watermark that is no share.
    #[error("bus: a read_watermark of {value}: expected 0 to 1")]
    ReadWatermark {
        /// Its value.
        value: f64,
    },
    /// More drives than an array can have.
    #[error("drives: {drives}, expected at most 1024")]
    Drives {
        /// How many.
        drives: usize,
    },
    /// A run of the index with an angle that is no finite number.
    #[error("index: the run at {start} has an angle that is not a number")]
    RunAngle {
        /// Its first place.
        start: u64,
    },
    /// A run of the index whose children are too many cylinders apart.
    #[error("index: the run at {start} has {cylinders} cylinders for each child")]
    RunCylinders {
        /// Its first place.
        start: u64,
        /// The cylinders.
        cylinders: i64,
    },
}

impl SchemaError {
    pub(super) fn fields(expected: &'static str) -> SchemaError {
        SchemaError::Fields { expected }
    }
}

/// The time of a field in nanoseconds.
pub(super) fn nanoseconds(field: &'static str, time: Time) -> Result<u32, SchemaError> {
    u32::try_from(time.0).map_err(|_| SchemaError::Time { field, time })
}
