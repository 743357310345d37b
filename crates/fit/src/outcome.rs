//! What a fit gives.

use crate::Estimate;
use crate::prediction::Prediction;
use device::profile::Kind;
use serde::Serialize;
use units::Bytes;

/// What is being measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Whether anything moves.
    Kind,
    /// Reads that the drive's buffer answers.
    Command,
    /// Reads at chosen distances.
    Seeks,
    /// Reads of a block before the last one.
    Turn,
    /// Sequential reads.
    Rates,
    /// Random reads at rising depths.
    Depths,
    /// What the drive's buffer keeps.
    Buffer,
    /// Random reads of rising sizes.
    Sizes,
    /// The models that could explain what was read.
    Models,
    /// Reads that the fit does not know.
    Cells,
}

/// Numbers that a fit finds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "quantity")]
pub enum Quantity {
    /// What a command costs that needs no medium, ms.
    Command,
    /// A turn of the platters, ms.
    Turn,
    /// A seek over one cylinder, ms.
    SeekSingle,
    /// The mean seek between places chosen at random, ms.
    SeekAverage,
    /// A seek over the whole disk, ms.
    SeekFull,
    /// Sequential reading, MB (10⁶) a second.
    Rate {
        /// Where, as a share of the capacity.
        position: f64,
    },
    /// Commands that the device orders or serves at once.
    Depth,
    /// What is read ahead after a read, KiB, the read included.
    Segment,
    /// Places that are kept.
    Segments,
    /// Reading a flash page into its register, µs.
    PageRead,
    /// What firmware adds to every request, µs.
    Firmware,
    /// What the controller does for one request at a time, µs.
    Controller,
    /// A channel's rate, MB a second.
    Channel,
    /// The link's rate, MB a second.
    Link,
    /// Flash dies that work at once.
    Dies,
}

/// A number of the fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Number {
    /// Which.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Its value.
    #[serde(flatten)]
    pub estimate: Estimate,
}

impl Number {
    pub(crate) fn new(quantity: Quantity, estimate: Estimate) -> Number {
        Number { quantity, estimate }
    }
}

/// What speaks against the fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "doubt")]
pub enum Doubt {
    /// No order of service explains how reads grow with depth: by so much at the worst.
    Depths {
        /// Measured over modelled, where they lie farthest apart.
        ratio: f64,
    },
    /// The drive's buffer answers nothing, so that a command's cost is a part of the seek's.
    NoBuffer,
    /// Blocks before the last one do not take a turn: the turn is from the spread of random reads.
    TurnFromSpread,
    /// Predictions of reads that the fit does not know are wrong by more than a quarter.
    Predictions {
        /// How many of them.
        wrong: usize,
        /// Of how many.
        of: usize,
    },
}

/// What the reads of one kind of drive give: the description, its numbers, and what speaks against it.
pub(crate) type Described = (Kind, Vec<Number>, Vec<Doubt>);

/// A storage, described from what was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The description.
    pub kind: Kind,
    /// Its numbers, each with its interval.
    pub numbers: Vec<Number>,
    /// Reads that the fit was not made from, as measured and as the description has them.
    pub predictions: Vec<Prediction>,
    /// What speaks against it.
    pub doubts: Vec<Doubt>,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FitError<E: std::error::Error + 'static> {
    /// Too small to tell a medium from a buffer.
    #[error(
        "it holds {capacity}, and a drive's own buffer would answer most reads: name a device or a file of 1 GiB \
         or more"
    )]
    TooSmall {
        /// What it holds.
        capacity: Bytes,
    },
    /// What was measured describes no device.
    #[error("what was read describes no device that can be modelled: {what}")]
    NoDevice {
        /// What is wrong.
        what: String,
    },
    /// A read failed.
    #[error(transparent)]
    Storage(#[from] E),
}
