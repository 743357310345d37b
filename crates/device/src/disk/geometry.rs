//! Where a logical block lies: zones, tracks, skews, spares, slips and replaced sectors.
//!
//! A logical block of a zone becomes a *physical index* (its place among the zone's sectors in the
//! order they are laid out), and that a track, a sector on it, and an angle.

mod error;
mod index;
mod zone;

pub use index::{ChildSpec, IndexSpec, PatternSpec, RemapSpec, RunSpec};

use crate::spec_error::SpecError;
use index::Index;
use zone::Zone;

/// Where spare sectors are kept; `count` is per unit named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparing {
    /// Nowhere.
    None,
    /// Whole tracks at the zone's end; slips and defects are track numbers.
    ZoneTracks,
    /// At the end of each track.
    Track,
    /// At the end of each cylinder.
    Cylinder,
    /// At the front of each cylinder.
    CylinderFront,
    /// At the end of each range of this many cylinders.
    Range(u32),
    /// At the zone's end.
    Zone,
    /// At the disk's end: a slip moves everything behind it, in the zones that follow too.
    Disk,
    /// At the end of each cylinder for replaced sectors; slips move what is behind as with `Disk`.
    CylinderAndDisk,
    /// At the front of each cylinder for replaced sectors; slips as with `Disk`.
    CylinderFrontAndDisk,
    /// At the zone's end for replaced sectors; slips as with `Disk`.
    ZoneAndDisk,
}

impl Sparing {
    /// Slips do not use up the spares: all that is behind them moves on.
    fn slips_move_all(self) -> bool {
        use Sparing::{CylinderAndDisk, CylinderFrontAndDisk, Disk, None, ZoneAndDisk};
        matches!(self, None | Disk | CylinderAndDisk | CylinderFrontAndDisk | ZoneAndDisk)
    }

    fn at_front(self) -> bool {
        matches!(self, Sparing::CylinderFront | Sparing::CylinderFrontAndDisk)
    }
}

/// The order in which heads are used in successive cylinders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOrder {
    /// Always from the first head to the last.
    Conventional,
    /// Down in every other cylinder, so that a cylinder switch keeps the head; each zone begins
    /// with the first head.
    SerpentineByZone,
    /// The same, by the cylinder's number on the whole disk.
    Serpentine,
}

/// A zone: cylinders whose tracks hold equally many sectors.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSpec {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder, inclusive.
    pub last_cylinder: u32,
    /// Sectors on a track.
    pub sectors_per_track: u32,
    /// The angle of the first block, in sectors.
    pub offset: f64,
    /// Logical blocks at the zone's front that hold no data.
    pub empty_front: u64,
    /// Skew from track to track of a cylinder, in sectors.
    pub track_skew: u32,
    /// Skew from the last track of a cylinder to the next cylinder, in sectors.
    pub cylinder_skew: u32,
    /// Spares, counted as [`Sparing`] says.
    pub spares: u64,
    /// Physical indices (or tracks) that are skipped.
    pub slips: Vec<u64>,
    /// Physical indices (or tracks) that are replaced by others.
    pub defects: Vec<(u64, u64)>,
}

/// A whole disk's layout, as its source describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct GeometrySpec {
    /// Surfaces with data.
    pub heads: u32,
    /// Cylinders on the disk, gaps between zones included.
    pub cylinders: u32,
    /// One turn, in ns.
    pub turn_ns: u64,
    /// Order of heads.
    pub head_order: HeadOrder,
    /// Where spares are.
    pub sparing: Sparing,
    /// Zones, outermost first, in ascending cylinders.
    pub zones: Vec<ZoneSpec>,
    /// In place of zones, which are then none: `head_order` and `sparing` say nothing.
    pub index: Option<Box<IndexSpec>>,
}

impl GeometrySpec {
    /// The simplest disk: one zone without spares.
    pub fn simple(
        cylinders: u32,
        heads: u32,
        sectors_per_track: u32,
        turn_ns: u64,
        (track_skew, cylinder_skew): (u32, u32),
    ) -> Self {
        let zone = ZoneSpec {
            first_cylinder: 0,
            last_cylinder: cylinders.saturating_sub(1),
            sectors_per_track,
            offset: 0.0,
            empty_front: 0,
            track_skew,
            cylinder_skew,
            spares: 0,
            slips: Vec::new(),
            defects: Vec::new(),
        };
        GeometrySpec {
            heads,
            cylinders,
            turn_ns,
            head_order: HeadOrder::Conventional,
            sparing: Sparing::None,
            zones: vec![zone],
            index: None,
        }
    }
}

/// Where a block lies on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder on the disk.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Sector on the track, in the order of the layout.
    pub sector: u32,
    /// When the sector's start passes under the head: this many ns after the turn's origin.
    pub angle_ns: u32,
}

/// A run of logical blocks that lie one after another on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub place: Place,
    /// Logical blocks in it.
    pub blocks: u64,
    /// Sectors that pass under the head from its first block to its last, slipped ones included.
    pub sectors: u64,
    /// Sectors on the whole track.
    pub sectors_per_track: u64,
}

/// The map of a disk, ready for use.
#[derive(Clone, Debug)]
pub struct Geometry {
    heads: u64,
    cylinders: u32,
    turn_ns: u64,
    head_order: HeadOrder,
    tracks_slip: bool,
    zones: Vec<Zone>,
    index: Option<Index>,
    capacity: u64,
}

impl Geometry {
    /// Checks `spec` and makes the map.
    pub fn new(spec: &GeometrySpec) -> Result<Self, SpecError> {
        check_disk(spec)?;
        let index = spec.index.as_ref().map(|index| Index::new(spec, index)).transpose()?;
        let mut zones = Vec::with_capacity(spec.zones.len());
        let mut first_lbn = 0;
        let mut next_cylinder = 0;
        for (number, zone) in spec.zones.iter().enumerate() {
            let part = format!("zone {number}");
            if zone.first_cylinder < next_cylinder {
                let what = format!(
                    "begins at cylinder {}, inside the zone before it",
                    zone.first_cylinder
                );
                return Err(SpecError::new(&part, what));
            }
            let made = Zone::new(spec, zone, first_lbn)
                .map_err(|error| SpecError::new(&part, error.to_string()))?;
            next_cylinder = zone.last_cylinder + 1;
            first_lbn += made.blocks;
            zones.push(made);
        }
        Ok(Geometry {
            heads: u64::from(spec.heads),
            cylinders: spec.cylinders,
            turn_ns: spec.turn_ns,
            head_order: spec.head_order,
            tracks_slip: spec.sparing == Sparing::ZoneTracks,
            zones,
            capacity: index.as_ref().map_or(first_lbn, |index| index.capacity),
            index,
        })
    }

    /// Logical blocks on the disk.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }
    /// Cylinders on the disk.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }
    /// One turn, in ns.
    pub fn turn_ns(&self) -> u64 {
        self.turn_ns
    }

    fn zone_of(&self, lbn: u64) -> usize {
        match self.zones.len() {
            1 => 0,
            _ => self.zones.partition_point(|zone| zone.first_lbn <= lbn) - 1,
        }
    }

    /// Where `lbn` lies; it must be below the capacity.
    #[inline]
    pub fn locate(&self, lbn: u64) -> Place {
        if let Some(index) = &self.index {
            return index.locate(lbn);
        }
        let zone = &self.zones[self.zone_of(lbn)];
        let index = zone.physical(lbn - zone.first_lbn, self.tracks_slip);
        self.place(zone, zone.replaced(index, self.tracks_slip))
    }

    fn place(&self, zone: &Zone, index: u64) -> Place {
        let track = index / zone.sectors_per_track;
        let sector = index - track * zone.sectors_per_track;
        let cylinder = track / self.heads;
        let nth = track - cylinder * self.heads;
        let on_disk = zone.first_cylinder + cylinder;
        let down = match self.head_order {
            HeadOrder::Conventional => false,
            HeadOrder::SerpentineByZone => cylinder % 2 == 1,
            HeadOrder::Serpentine => on_disk % 2 == 1,
        };
        let head = if down { self.heads - 1 - nth } else { nth };
        // Start angle of a track: offset + (n + (H − 1)·c)·track skew + c·cylinder skew.
        let skewed = zone.offset
            + (nth + (self.heads - 1) * cylinder) * zone.track_skew
            + cylinder * zone.cylinder_skew
            + sector;
        let angle = skewed % zone.sectors_per_track * self.turn_ns / zone.sectors_per_track;
        Place {
            cylinder: on_disk as u32,
            head: head as u32,
            sector: sector as u32,
            angle_ns: angle as u32,
        }
    }

    /// The longest run from `lbn` on its track, of at most `max` blocks (`max` ≥ 1).
    pub fn extent(&self, lbn: u64, max: u64) -> Extent {
        if let Some(index) = &self.index {
            return index.extent(lbn, max);
        }
        let zone = &self.zones[self.zone_of(lbn)];
        let block = lbn - zone.first_lbn;
        let laid = zone.physical(block, self.tracks_slip);
        let index = zone.replaced(laid, self.tracks_slip);
        let place = self.place(zone, index);
        let left_on_track = zone.sectors_per_track - index % zone.sectors_per_track;
        let most = max.min(left_on_track).min(zone.blocks - block);
        let blocks = match zone.is_plain() {
            true => most,
            false => self.contiguous(zone, block, laid, index, most),
        };
        let last = zone.physical(block + blocks - 1, self.tracks_slip);
        let sectors = if index == laid { last - laid + 1 } else { blocks };
        Extent { place, blocks, sectors, sectors_per_track: zone.sectors_per_track }
    }

    /// How many of `most` blocks from `block` stay on the track: spares, slips and replaced sectors
    /// may end the run early.
    fn contiguous(&self, zone: &Zone, block: u64, laid: u64, index: u64, most: u64) -> u64 {
        if index != laid && !self.tracks_slip {
            return 1; // a replaced sector stands alone
        }
        let track_end = (laid / zone.sectors_per_track + 1) * zone.sectors_per_track;
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = (low + high).div_ceil(2);
            match zone.physical(block + middle - 1, self.tracks_slip) < track_end {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        if self.tracks_slip {
            return low;
        }
        let last = zone.physical(block + low - 1, false);
        let next = zone.defects.partition_point(|(bad, _)| *bad <= laid);
        match zone.defects.get(next) {
            Some((bad, _)) if *bad <= last => {
                (1..low).find(|n| zone.physical(block + n, false) >= *bad).unwrap_or(low)
            }
            _ => low,
        }
    }

    /// The time from the first block's start to the last block's end, in ns.
    #[inline]
    pub fn pass_ns(&self, extent: &Extent) -> u64 {
        extent.sectors * self.turn_ns / extent.sectors_per_track
    }
}

fn check_disk(spec: &GeometrySpec) -> Result<(), SpecError> {
    let wrong = |what: String| Err(SpecError::new("geometry", what));
    if spec.heads == 0 || spec.heads > 1024 {
        return wrong(format!("{} heads: expected 1 to 1024", spec.heads));
    }
    if spec.cylinders == 0 || spec.cylinders > 10_000_000 {
        return wrong(format!("{} cylinders: expected 1 to 10,000,000", spec.cylinders));
    }
    if !(100_000..=1_000_000_000).contains(&spec.turn_ns) {
        return wrong(format!("a turn of {} ns: expected 0.1 ms to 1 s", spec.turn_ns));
    }
    match spec.zones.last() {
        None if spec.index.is_some() => Ok(()),
        Some(_) if spec.index.is_some() => wrong("both zones and an index".to_owned()),
        None => wrong("no zones".to_owned()),
        Some(zone) if zone.last_cylinder >= spec.cylinders => wrong(format!(
            "the last zone ends at cylinder {}, and the disk has {}",
            zone.last_cylinder, spec.cylinders
        )),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn small(sparing: Sparing, spares: u64, slips: &[u64], defects: &[(u64, u64)]) -> Geometry {
        let mut spec = GeometrySpec::simple(6, 3, 10, 6_000_000, (2, 3));
        spec.sparing = sparing;
        spec.zones[0].spares = spares;
        spec.zones[0].slips = slips.to_vec();
        spec.zones[0].defects = defects.to_vec();
        Geometry::new(&spec).unwrap()
    }

    fn assert_bijective(geometry: &Geometry) {
        let places: BTreeSet<_> = (0..geometry.capacity())
            .map(|lbn| geometry.locate(lbn))
            .map(|p| (p.cylinder, p.head, p.sector))
            .collect();
        assert_eq!(places.len() as u64, geometry.capacity());
    }

    #[test]
    fn every_sparing_scheme_maps_each_block_to_its_own_sector() {
        for (sparing, spares, slips) in [
            (Sparing::None, 0, vec![]),
            (Sparing::ZoneTracks, 3, vec![2, 7]),
            (Sparing::Track, 2, vec![3, 14, 15]),
            (Sparing::Cylinder, 4, vec![0, 35, 36]),
            (Sparing::Disk, 4, vec![35, 36]),
            (Sparing::Range(4), 5, vec![1, 2, 130]),
            (Sparing::Zone, 9, vec![17, 18, 99]),
            (Sparing::CylinderFront, 4, vec![0, 2, 35, 36, 61]),
            (Sparing::CylinderAndDisk, 4, vec![0, 28, 35, 36]),
            (Sparing::CylinderFrontAndDisk, 4, vec![1, 5, 35, 36]),
            (Sparing::ZoneAndDisk, 9, vec![17, 18, 99]),
        ] {
            let geometry = small(sparing, spares, &slips, &[]);
            assert_bijective(&geometry);
            // Extents cover the disk without a gap, each on one track.
            let mut lbn = 0;
            while lbn < geometry.capacity() {
                let extent = geometry.extent(lbn, 1000);
                let last = geometry.locate(lbn + extent.blocks - 1);
                assert_eq!((last.cylinder, last.head), (extent.place.cylinder, extent.place.head));
                assert_eq!(
                    u64::from(last.sector - extent.place.sector) + 1,
                    extent.sectors,
                    "{sparing:?} {lbn}"
                );
                lbn += extent.blocks;
            }
            assert_eq!(lbn, geometry.capacity());
        }
    }

    #[test]
    fn every_scheme_with_spares_takes_a_replacement_there() {
        for (sparing, spares) in [
            (Sparing::ZoneTracks, 3),
            (Sparing::Track, 2),
            (Sparing::Cylinder, 4),
            (Sparing::CylinderFront, 4),
            (Sparing::CylinderAndDisk, 4),
            (Sparing::CylinderFrontAndDisk, 4),
            (Sparing::Range(4), 5),
            (Sparing::Zone, 9),
            (Sparing::ZoneAndDisk, 9),
            (Sparing::Disk, 9),
        ] {
            let with = |to: u64| {
                let mut spec = GeometrySpec::simple(6, 3, 10, 6_000_000, (2, 3));
                spec.sparing = sparing;
                spec.zones[0].spares = spares;
                spec.zones[0].defects = vec![(7, to)];
                Geometry::new(&spec).ok()
            };
            let units = if sparing == Sparing::ZoneTracks { 18 } else { 180 };
            let taken: Vec<_> = (0..units).filter(|to| *to != 7).filter_map(with).collect();
            assert!(taken.len() as u64 >= spares, "{sparing:?}");
            for geometry in taken {
                assert_bijective(&geometry);
            }
        }
    }

    #[test]
    fn a_replaced_sector_stands_alone_and_its_track_goes_on() {
        let geometry = small(Sparing::Zone, 9, &[], &[(4, 175)]);
        assert_bijective(&geometry);
        assert_eq!(geometry.extent(0, 100).blocks, 4);
        assert_eq!(geometry.extent(4, 100).blocks, 1);
        assert_eq!(geometry.locate(4).cylinder, 5);
        assert_eq!(geometry.extent(5, 100).blocks, 5);
    }

    #[test]
    fn skew_moves_the_start_of_the_next_track() {
        let geometry = small(Sparing::None, 0, &[], &[]);
        assert_eq!(geometry.locate(10).angle_ns, 2 * 600_000);
        // Cylinder 1: two track skews and one cylinder skew.
        assert_eq!(geometry.locate(30).angle_ns, (2 * 2 + 3) * 600_000);
    }

    #[test]
    fn serpentine_keeps_the_head_over_a_cylinder_switch() {
        let mut spec = GeometrySpec::simple(4, 3, 10, 6_000_000, (2, 3));
        spec.head_order = HeadOrder::SerpentineByZone;
        let geometry = Geometry::new(&spec).unwrap();
        assert_eq!(geometry.locate(29).head, 2);
        assert_eq!(geometry.locate(30).head, 2);
        assert_bijective(&geometry);
    }

    #[test]
    fn refuses_impossible_layouts() {
        let simple = || GeometrySpec::simple(4, 3, 10, 6_000_000, (0, 0));
        let mut overlap = simple();
        overlap.zones.push(overlap.zones[0].clone());
        let mut beyond = simple();
        beyond.zones[0].last_cylinder = 4;
        let mut slips = simple();
        slips.sparing = Sparing::Track;
        slips.zones[0].spares = 1;
        slips.zones[0].slips = vec![1, 2];
        let mut taken = simple();
        taken.sparing = Sparing::Zone;
        taken.zones[0].spares = 9;
        taken.zones[0].defects = vec![(4, 5)];
        for spec in [overlap, beyond, slips, taken, GeometrySpec { heads: 0, ..simple() }] {
            assert!(Geometry::new(&spec).is_err(), "{spec:?}");
        }
    }
}
