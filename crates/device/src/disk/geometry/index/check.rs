//! What an index must be before blocks can be looked up in it.

use super::{ChildSpec, Index, IndexSpec, PatternSpec, RemapSpec, RunSpec};
use crate::disk::geometry::GeometrySpec;
use crate::disk::geometry::error::RunError;
use crate::spec_error::SpecError;

/// How much a node holds, and which cylinders it takes, counted from its own first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) places: u64,
    pub(super) tracks: u64,
    low: i64,
    high: i64,
}

impl Size {
    /// Cylinders up to the last that it takes.
    pub(super) fn cylinders(&self) -> u32 {
        u32::try_from(self.high + 1).unwrap_or(0)
    }
}

fn wrong<T>(part: &str, what: String) -> Result<T, SpecError> {
    Err(SpecError::new(part, what))
}

/// Each node's size, on a disk of so many heads and cylinders. A run refers to nodes before its own,
/// so none holds itself.
pub(super) fn sizes(
    (heads, cylinders): (u32, u32),
    spec: &IndexSpec,
) -> Result<Vec<Size>, SpecError> {
    for (number, pattern) in spec.patterns.iter().enumerate() {
        let PatternSpec { first, last, sectors_per_track } = *pattern;
        if first > last || last >= sectors_per_track || sectors_per_track > 1_000_000 {
            let what = format!(
                "sectors {first} to {last} of {sectors_per_track}: expected an ascending pair \
                 below the third, which is at most 1,000,000"
            );
            return wrong(&format!("track pattern {number}"), what);
        }
    }
    let mut sizes: Vec<Size> = Vec::with_capacity(spec.nodes.len());
    for (number, node) in spec.nodes.iter().enumerate() {
        let mut size = Size { low: i64::MAX, high: i64::MIN, ..Size::default() };
        for (nth, run) in node.iter().enumerate() {
            let part = format!("index node {number}, run {nth}");
            add_run(heads, spec, &sizes, run, &mut size)
                .map_err(|error| SpecError::new(&part, error.to_string()))?;
        }
        if node.is_empty() {
            return wrong(&format!("index node {number}"), "holds no runs".to_owned());
        }
        sizes.push(size);
    }
    let Some(root) = sizes.last() else { return wrong("index", "no nodes".to_owned()) };
    if root.low < 0 || root.high >= i64::from(cylinders) {
        let what = format!("cylinders {} to {}, and the disk has {cylinders}", root.low, root.high);
        return wrong("index", what);
    }
    if root.tracks > 2 * u64::from(cylinders) * u64::from(heads) {
        let what = format!("{} tracks, more than the disk has", root.tracks);
        return wrong("index", what);
    }
    Ok(sizes)
}

fn add_run(
    heads: u32,
    spec: &IndexSpec,
    sizes: &[Size],
    run: &RunSpec,
    size: &mut Size,
) -> Result<(), RunError> {
    if run.start != size.places {
        return Err(RunError::Gap { start: run.start, end: size.places });
    }
    if run.child_places == 0 || run.places == 0 || run.places >= 1 << 48 {
        let (places, child_places) = (run.places, run.child_places);
        return Err(RunError::Places { places, child_places });
    }
    let child = match run.child {
        ChildSpec::Node(child) => {
            *sizes.get(child as usize).ok_or(RunError::Child { child, own: sizes.len() })?
        }
        ChildSpec::Track { pattern, head } => {
            let patterns = spec.patterns.len();
            let found = spec.patterns.get(pattern as usize);
            let found = found.ok_or(RunError::Pattern { pattern, patterns })?;
            if head >= heads {
                return Err(RunError::Head { head, heads });
            }
            let places = u64::from(found.last - found.first) + 1;
            Size { places, tracks: 1, low: 0, high: 0 }
        }
    };
    if run.child_places > child.places {
        return Err(RunError::ChildPlaces { places: run.child_places, holds: child.places });
    }
    let children = run.places.div_ceil(run.child_places);
    let last = i64::try_from(u128::from(children - 1) * u128::from(run.child_cylinders))
        .map_err(|_| RunError::Children { children })?;
    let first = i64::from(run.cylinder);
    let last = if run.inward { first.saturating_add(last) } else { first.saturating_sub(last) };
    size.low = size.low.min(first.min(last).saturating_add(child.low));
    size.high = size.high.max(first.max(last).saturating_add(child.high));
    size.tracks = size.tracks.saturating_add(child.tracks.saturating_mul(children));
    size.places = size.places.saturating_add(run.places);
    Ok(())
}

/// The remaps in order, each on the disk and none over another.
pub(super) fn remaps(
    disk: &GeometrySpec,
    spec: &IndexSpec,
    places: u64,
) -> Result<Vec<RemapSpec>, SpecError> {
    let mut remaps = spec.remaps.clone();
    remaps.sort_unstable_by_key(|remap| remap.place);
    let mut end = 0;
    for remap in &remaps {
        let on_disk = remap.cylinder < disk.cylinders
            && remap.head < disk.heads
            && remap.count > 0
            && (1..=1_000_000).contains(&remap.sectors_per_track)
            && u64::from(remap.sector).saturating_add(remap.count)
                <= u64::from(remap.sectors_per_track);
        let upto = remap.place.saturating_add(remap.count);
        if !on_disk || remap.place < end || upto > places {
            let what = format!(
                "remap of {} at {} to cylinder {}, head {}, sector {} of {}: expected places of \
                 the index that are not remapped already, and sectors of a track of the disk",
                remap.count,
                remap.place,
                remap.cylinder,
                remap.head,
                remap.sector,
                remap.sectors_per_track
            );
            return wrong("index", what);
        }
        end = upto;
    }
    Ok(remaps)
}

/// Sectors that hold blocks: track, first, last.
type Held = (u32, u32, u32, u32);

/// Refuses an index that lays two blocks into one sector.
pub(super) fn no_sector_twice(index: &Index, root: Size) -> Result<(), SpecError> {
    let mut held: Vec<Held> = Vec::with_capacity(root.tracks as usize);
    let mut place = 0;
    while place < root.places {
        let spot = index.spot(place);
        let last = spot.sector + (spot.left - 1) as u32;
        held.push((spot.cylinder, spot.head, spot.sector, last));
        place += spot.left;
    }
    held.extend(index.remaps.iter().map(|remap| {
        (remap.cylinder, remap.head, remap.sector, remap.sector + (remap.count - 1) as u32)
    }));
    held.sort_unstable();
    let twice = held.windows(2).find(|pair| {
        let (before, after) = (pair[0], pair[1]);
        (before.0, before.1) == (after.0, after.1) && after.2 <= before.3
    });
    match twice {
        Some(pair) => {
            let (cylinder, head, sector, _) = pair[1];
            let what =
                format!("sector {sector} of cylinder {cylinder}, head {head} holds two blocks");
            wrong("index", what)
        }
        None => Ok(()),
    }
}
