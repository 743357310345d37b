//! An index layout in a profile, as imports write it.

use super::error::SchemaError;
use super::is_default;
use crate::disk::{ChildSpec, IndexSpec, PatternSpec, RemapSpec, RunSpec};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IndexTable {
    /// First sector, last sector, sectors on the track.
    patterns: Vec<(u32, u32, u32)>,
    /// The root is the last.
    nodes: Vec<Vec<RunRow>>,
    /// First place, places.
    #[serde(default, skip_serializing_if = "is_default")]
    slips: Vec<(u64, u64)>,
    /// First place, places, cylinder, head, sector, sectors on the track.
    #[serde(default, skip_serializing_if = "is_default")]
    remaps: Vec<(u64, u64, u32, u32, u32, u32)>,
}

/// First place, cylinder, angle, places a child, cylinders a child (below 0 outward), angle from
/// child to child, places, pattern or node, head (−1: the child is a node). Angles are in turns.
type RunRow = (u64, u32, f64, u64, i64, f64, u64, u32, i32);

impl IndexTable {
    pub(super) fn spec(&self) -> Result<IndexSpec, SchemaError> {
        let pattern = |&(first, last, sectors_per_track): &(u32, u32, u32)| PatternSpec {
            first,
            last,
            sectors_per_track,
        };
        let node = |rows: &Vec<RunRow>| rows.iter().map(run).collect::<Result<Vec<_>, _>>();
        let remap = |&(place, count, cylinder, head, sector, sectors_per_track)| RemapSpec {
            place,
            count,
            cylinder,
            head,
            sector,
            sectors_per_track,
        };
        Ok(IndexSpec {
            patterns: self.patterns.iter().map(pattern).collect(),
            nodes: self.nodes.iter().map(node).collect::<Result<_, _>>()?,
            slips: self.slips.clone(),
            remaps: self.remaps.iter().map(remap).collect(),
        })
    }

    pub(super) fn from_spec(spec: &IndexSpec) -> Self {
        let node = |runs: &Vec<RunSpec>| runs.iter().map(row).collect();
        IndexTable {
            patterns: spec
                .patterns
                .iter()
                .map(|p| (p.first, p.last, p.sectors_per_track))
                .collect(),
            nodes: spec.nodes.iter().map(node).collect(),
            slips: spec.slips.clone(),
            remaps: spec
                .remaps
                .iter()
                .map(|r| (r.place, r.count, r.cylinder, r.head, r.sector, r.sectors_per_track))
                .collect(),
        }
    }
}

fn run(row: &RunRow) -> Result<RunSpec, SchemaError> {
    let (start, cylinder, angle, child_places, cylinders, advance, places, child, head) = *row;
    if !(angle.is_finite() && advance.is_finite()) {
        return Err(SchemaError::RunAngle { start });
    }
    let child_cylinders = u32::try_from(cylinders.unsigned_abs())
        .map_err(|_| SchemaError::RunCylinders { start, cylinders })?;
    Ok(RunSpec {
        start,
        cylinder,
        angle,
        child_places,
        child_cylinders,
        advance,
        places,
        inward: cylinders >= 0,
        child: match u32::try_from(head) {
            Ok(head) => ChildSpec::Track { pattern: child, head },
            Err(_) => ChildSpec::Node(child),
        },
    })
}

fn row(run: &RunSpec) -> RunRow {
    let cylinders = i64::from(run.child_cylinders) * if run.inward { 1 } else { -1 };
    let (child, head) = match run.child {
        ChildSpec::Node(child) => (child, -1),
        ChildSpec::Track { pattern, head } => (pattern, head as i32),
    };
    let RunSpec { start, cylinder, angle, child_places, advance, places, .. } = *run;
    (start, cylinder, angle, child_places, cylinders, advance, places, child, head)
}
