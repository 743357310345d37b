//! A layout as an index: a tree whose leaves are tracks. So are drives described whose blocks fill
//! a band of cylinders on one surface before they go on to the next, each surface with as many
//! sectors a track as its head can write.
//!
//! A *place* counts the index's blocks from 0; slips leave some of them without a logical block.

mod check;

use super::{Extent, GeometrySpec, Place};
use crate::spec_error::SpecError;

/// A tree of runs of tracks.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexSpec {
    /// What tracks look like.
    pub patterns: Vec<PatternSpec>,
    /// Nodes of the tree, each a list of runs that follow one another; the last is the root.
    pub nodes: Vec<Vec<RunSpec>>,
    /// Places without a logical block: the first, and how many.
    pub slips: Vec<(u64, u64)>,
    /// Places whose sectors are elsewhere.
    pub remaps: Vec<RemapSpec>,
}

impl IndexSpec {
    /// Cylinders that it takes on a disk with so many heads; 0 if it is impossible.
    pub fn cylinders(&self, heads: u32) -> u32 {
        let sizes = check::sizes((heads, 10_000_000), self);
        sizes.ok().and_then(|sizes| sizes.last().map(check::Size::cylinders)).unwrap_or(0)
    }
}

/// Which sectors of a track hold blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternSpec {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
    /// Sectors on the whole track.
    pub sectors_per_track: u32,
}

/// The same child over and over: a track, or a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunSpec {
    /// The first child's first place, counted from the node's.
    pub start: u64,
    /// The first child's lowest cylinder, counted from the node's.
    pub cylinder: u32,
    /// The angle where the first child begins, from where the node does, in turns.
    pub angle: f64,
    /// Places in a child.
    pub child_places: u64,
    /// Cylinders that a child takes.
    pub child_cylinders: u32,
    /// The angle from one child's beginning to the next one's, in turns.
    pub advance: f64,
    /// Places in the run.
    pub places: u64,
    /// Towards the spindle, or away from it.
    pub inward: bool,
    /// What the child is.
    pub child: ChildSpec,
}

/// What a run is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildSpec {
    /// Nodes: this one.
    Node(u32),
    /// Tracks.
    Track {
        /// Their pattern's number.
        pattern: u32,
        /// Their surface.
        head: u32,
    },
}

/// Places whose sectors are elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapSpec {
    /// The first place.
    pub place: u64,
    /// How many.
    pub count: u64,
    /// Where they are: cylinder.
    pub cylinder: u32,
    /// Surface.
    pub head: u32,
    /// The first sector, counted from the disk's own zero angle.
    pub sector: u32,
    /// Sectors on that track.
    pub sectors_per_track: u32,
}

/// An index, ready for use. Angles are in 2⁻³² turns, and wrap.
#[derive(Clone, Debug)]
pub(super) struct Index {
    nodes: Vec<Vec<Run>>,
    pub(super) capacity: u64,
    slips: Vec<Slip>,
    remaps: Vec<RemapSpec>,
    turn_ns: u64,
}

/// `count` places from `place` on; the blocks behind them, `from` on, lie `shift` places further.
#[derive(Clone, Copy, Debug)]
struct Slip {
    place: u64,
    count: u64,
    from: u64,
    shift: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    places: u64,
    child_places: u64,
    cylinder: i64,
    step: i64,
    angle: u32,
    advance: u32,
    child: Child,
}

#[derive(Clone, Copy, Debug)]
enum Child {
    Node(usize),
    Track { head: u32, first: u32, sectors_per_track: u32 },
}

/// A place on its track.
#[derive(Clone, Copy, Debug)]
struct Spot {
    cylinder: u32,
    head: u32,
    sector: u32,
    /// Where the track's sector 0 begins.
    zero: u32,
    sectors_per_track: u32,
    /// Places from here on that lie on this track, one sector after another.
    left: u64,
}

fn turns(angle: f64) -> u32 {
    // Rounding may reach 2³², which is 0 again.
    (angle.rem_euclid(1.0) * 4_294_967_296.0).round() as u64 as u32
}

impl Index {
    pub(super) fn new(disk: &GeometrySpec, spec: &IndexSpec) -> Result<Self, SpecError> {
        let sizes = check::sizes((disk.heads, disk.cylinders), spec)?;
        let root = sizes.last().copied().unwrap_or_default();
        let mut index = Index {
            nodes: spec.nodes.iter().map(|node| runs(spec, node)).collect(),
            capacity: root.places,
            slips: Vec::new(),
            remaps: check::remaps(disk, spec, root.places)?,
            turn_ns: disk.turn_ns,
        };
        index.take_slips(&spec.slips)?;
        check::no_sector_twice(&index, root)?;
        Ok(index)
    }

    fn take_slips(&mut self, slips: &[(u64, u64)]) -> Result<(), SpecError> {
        let mut slips = slips.to_vec();
        slips.sort_unstable();
        let places = self.capacity;
        let (mut shift, mut end) = (0, 0);
        for (place, count) in slips {
            let wrong = place < end || count == 0 || place.saturating_add(count) > places;
            if wrong {
                let what = format!(
                    "slip of {count} at {place}: expected places that are not slipped already, of \
                     the index's {places}"
                );
                return Err(SpecError::new("index", what));
            }
            let from = place - shift;
            (shift, end) = (shift + count, place + count);
            self.slips.push(Slip { place, count, from, shift });
        }
        self.capacity = places - shift;
        match self.capacity {
            0 => Err(SpecError::new("index", "every place is slipped")),
            _ => Ok(()),
        }
    }

    /// The place of a logical block.
    fn place(&self, block: u64) -> u64 {
        match self.slips.partition_point(|slip| slip.from <= block) {
            0 => block,
            upto => block + self.slips[upto - 1].shift,
        }
    }

    fn spot(&self, place: u64) -> Spot {
        let mut node = self.nodes.len() - 1;
        let (mut inside, mut left) = (place, u64::MAX);
        let (mut cylinder, mut angle) = (0i64, 0u32);
        loop {
            let runs = &self.nodes[node];
            let run = runs[runs.partition_point(|run| run.start <= inside) - 1];
            inside -= run.start;
            left = left.min(run.places - inside);
            let nth = inside / run.child_places;
            inside -= nth * run.child_places;
            left = left.min(run.child_places - inside);
            cylinder += run.cylinder + nth as i64 * run.step;
            let advance = run.advance.wrapping_mul(nth as u32);
            angle = angle.wrapping_add(run.angle).wrapping_add(advance);
            match run.child {
                Child::Node(child) => node = child,
                Child::Track { head, first, sectors_per_track } => {
                    return Spot {
                        cylinder: cylinder as u32,
                        head,
                        sector: first + inside as u32,
                        zero: angle,
                        sectors_per_track,
                        left,
                    };
                }
            }
        }
    }

    /// The remapped run that holds `place`, or the first one behind it.
    fn remap(&self, place: u64) -> Option<&RemapSpec> {
        let next = self.remaps.partition_point(|remap| remap.place + remap.count <= place);
        self.remaps.get(next)
    }

    /// Where a place really is.
    fn found(&self, place: u64) -> Spot {
        match self.remap(place) {
            Some(remap) if remap.place <= place => Spot {
                cylinder: remap.cylinder,
                head: remap.head,
                sector: remap.sector + (place - remap.place) as u32,
                zero: 0,
                sectors_per_track: remap.sectors_per_track,
                left: remap.place + remap.count - place,
            },
            Some(remap) => {
                let spot = self.spot(place);
                Spot { left: spot.left.min(remap.place - place), ..spot }
            }
            None => self.spot(place),
        }
    }

    fn as_place(&self, spot: &Spot) -> Place {
        let per_track = u64::from(spot.sectors_per_track);
        let start = (u64::from(spot.zero) * self.turn_ns) >> 32;
        let angle = (start + u64::from(spot.sector) * self.turn_ns / per_track) % self.turn_ns;
        Place {
            cylinder: spot.cylinder,
            head: spot.head,
            sector: spot.sector,
            angle_ns: angle as u32,
        }
    }

    pub(super) fn locate(&self, block: u64) -> Place {
        self.as_place(&self.found(self.place(block)))
    }

    pub(super) fn extent(&self, block: u64, max: u64) -> Extent {
        let place = self.place(block);
        let spot = self.found(place);
        let end = place + spot.left;
        let next = self.slips.partition_point(|slip| slip.from <= block);
        let slipped: u64 = self.slips[next..]
            .iter()
            .take_while(|slip| slip.place < end)
            .map(|slip| slip.count.min(end - slip.place))
            .sum();
        let blocks = (spot.left - slipped).min(max);
        Extent {
            place: self.as_place(&spot),
            blocks,
            sectors: self.place(block + blocks - 1) - place + 1,
            sectors_per_track: u64::from(spot.sectors_per_track),
        }
    }
}

fn runs(spec: &IndexSpec, node: &[RunSpec]) -> Vec<Run> {
    node.iter()
        .map(|run| Run {
            start: run.start,
            places: run.places,
            child_places: run.child_places,
            cylinder: i64::from(run.cylinder),
            step: i64::from(run.child_cylinders) * if run.inward { 1 } else { -1 },
            angle: turns(run.angle),
            advance: turns(run.advance),
            child: match run.child {
                ChildSpec::Node(child) => Child::Node(child as usize),
                ChildSpec::Track { pattern, head } => {
                    let PatternSpec { first, sectors_per_track, .. } =
                        spec.patterns[pattern as usize];
                    Child::Track { head, first, sectors_per_track }
                }
            },
        })
        .collect()
}
