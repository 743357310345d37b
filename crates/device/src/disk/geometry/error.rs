//! What can be wrong in a zone, and in a run of an index.

/// Why a zone cannot be mapped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ZoneError {
    #[error("{sectors} sectors per track: expected 1 to 1,000,000")]
    SectorsPerTrack { sectors: u64 },
    #[error("cylinders {first} to {last}: the last is before the first")]
    Cylinders { first: u32, last: u32 },
    #[error("a sparing range of 0 cylinders")]
    EmptySparingRange,
    #[error("{spares} spares in a unit of {unit}: nothing is left for data")]
    OnlySpares { spares: u64, unit: u64 },
    #[error("{empty} empty blocks at the front of {usable}")]
    EmptyFront { empty: u64, usable: u64 },
    #[error("slip {slip} is beyond the zone's {total}")]
    SlipBeyond { slip: u64, total: u64 },
    #[error("more slips than the {spares} spares, at slip {slip}")]
    TooManySlips { spares: u64, slip: u64 },
    #[error("a defect or a replacement is listed twice")]
    ListedTwice,
    #[error("defect ({bad}, {to}) is beyond the zone's {total}")]
    DefectBeyond { bad: u64, to: u64, total: u64 },
    #[error("defect ({bad}, {to}): {to} is not a spare but holds data")]
    NotASpare { bad: u64, to: u64 },
}

/// Why a run of an index is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunError {
    #[error("begins at {start}, and the run before ends at {end}")]
    Gap { start: u64, end: u64 },
    #[error("{places} places in children of {child_places}")]
    Places { places: u64, child_places: u64 },
    #[error("node {child} as its child: expected one before its own, {own}")]
    Child { child: u32, own: usize },
    #[error("track pattern {pattern}, and there are {patterns}")]
    Pattern { pattern: u32, patterns: usize },
    #[error("head {head}, and there are {heads}")]
    Head { head: u32, heads: u32 },
    #[error("{places} places in a child that holds {holds}")]
    ChildPlaces { places: u64, holds: u64 },
    #[error("{children} children")]
    Children { children: u64 },
}
