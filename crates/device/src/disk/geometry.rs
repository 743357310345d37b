//! Where a logical block lies: zones, tracks, skews, spares, slips and replaced sectors.
//!
//! A logical block of a zone becomes a *physical index* (its place among the zone's sectors in the
//! order they are laid out), and that a track, a sector on it, and an angle.

use crate::spec_error::SpecError;

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
        }
    }
}

/// Where a block lies on the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Zone number.
    pub zone: u32,
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

#[derive(Clone, Debug)]
struct Zone {
    first_lbn: u64,
    blocks: u64,
    first_cylinder: u64,
    sectors_per_track: u64,
    offset: u64,
    empty_front: u64,
    track_skew: u64,
    cylinder_skew: u64,
    /// The unit that spares belong to: its physical size and how much of it is used (in sectors;
    /// in tracks where whole tracks are slipped).
    unit: u64,
    unit_used: u64,
    /// Spares at the unit's front, not at its end.
    front: u64,
    /// See [`Sparing::slips_move_all`].
    slips_move_all: bool,
    /// Slips in order: physical index, and the logical index from which it shifts.
    slips: Vec<(u64, u64)>,
    defects: Vec<(u64, u64)>,
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
    capacity: u64,
}

impl Geometry {
    /// Checks `spec` and makes the map.
    pub fn new(spec: &GeometrySpec) -> Result<Self, SpecError> {
        check_disk(spec)?;
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
            let made = Zone::new(spec, zone, first_lbn).map_err(|e| SpecError::new(&part, e))?;
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
            capacity: first_lbn,
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
    /// First block and number of blocks of each zone.
    pub fn zones(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.zones.iter().map(|zone| (zone.first_lbn, zone.blocks))
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
        let number = self.zone_of(lbn);
        let zone = &self.zones[number];
        let index = zone.physical(lbn - zone.first_lbn, self.tracks_slip);
        self.place(number, zone, zone.replaced(index, self.tracks_slip))
    }

    fn place(&self, number: usize, zone: &Zone, index: u64) -> Place {
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
            zone: number as u32,
            cylinder: on_disk as u32,
            head: head as u32,
            sector: sector as u32,
            angle_ns: angle as u32,
        }
    }

    /// The longest run from `lbn` on its track, of at most `max` blocks (`max` ≥ 1).
    pub fn extent(&self, lbn: u64, max: u64) -> Extent {
        let number = self.zone_of(lbn);
        let zone = &self.zones[number];
        let block = lbn - zone.first_lbn;
        let laid = zone.physical(block, self.tracks_slip);
        let index = zone.replaced(laid, self.tracks_slip);
        let place = self.place(number, zone, index);
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

    /// Sectors on a track where `lbn` lies.
    pub fn sectors_per_track(&self, lbn: u64) -> u64 {
        self.zones[self.zone_of(lbn)].sectors_per_track
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
        None => wrong("no zones".to_owned()),
        Some(zone) if zone.last_cylinder >= spec.cylinders => wrong(format!(
            "the last zone ends at cylinder {}, and the disk has {}",
            zone.last_cylinder, spec.cylinders
        )),
        Some(_) => Ok(()),
    }
}

impl Zone {
    fn new(disk: &GeometrySpec, spec: &ZoneSpec, first_lbn: u64) -> Result<Self, String> {
        let sectors_per_track = u64::from(spec.sectors_per_track);
        if !(1..=1_000_000).contains(&sectors_per_track) {
            return Err(format!("{sectors_per_track} sectors a track: expected 1 to 1,000,000"));
        }
        if spec.last_cylinder < spec.first_cylinder {
            return Err(format!(
                "cylinders {} to {}: the last is before the first",
                spec.first_cylinder, spec.last_cylinder
            ));
        }
        let heads = u64::from(disk.heads);
        let cylinders = u64::from(spec.last_cylinder - spec.first_cylinder) + 1;
        let tracks = cylinders * heads;
        let all = tracks * sectors_per_track;
        let (unit, total) = match disk.sparing {
            Sparing::None | Sparing::Zone | Sparing::Disk | Sparing::ZoneAndDisk => (all, all),
            Sparing::ZoneTracks => (tracks, tracks),
            Sparing::Track => (sectors_per_track, all),
            Sparing::Cylinder
            | Sparing::CylinderFront
            | Sparing::CylinderAndDisk
            | Sparing::CylinderFrontAndDisk => (sectors_per_track * heads, all),
            Sparing::Range(0) => return Err("a sparing range of 0 cylinders".to_owned()),
            Sparing::Range(range) => (sectors_per_track * heads * u64::from(range), all),
        };
        let spares = if disk.sparing == Sparing::None { 0 } else { spec.spares };
        if spares >= unit {
            return Err(format!("{spares} spares in a unit of {unit}: nothing is left for data"));
        }
        let unit_used = unit - spares;
        // A last range that is cut short by the zone's end keeps its spares too.
        let usable = total / unit * unit_used + (total % unit).saturating_sub(spares);
        let turn = sectors_per_track as f64;
        let mut zone = Zone {
            first_lbn,
            blocks: 0,
            first_cylinder: u64::from(spec.first_cylinder),
            sectors_per_track,
            offset: spec.offset.rem_euclid(turn) as u64,
            empty_front: spec.empty_front,
            track_skew: u64::from(spec.track_skew),
            cylinder_skew: u64::from(spec.cylinder_skew),
            unit,
            unit_used,
            front: if disk.sparing.at_front() { spares } else { 0 },
            slips_move_all: disk.sparing.slips_move_all(),
            slips: Vec::new(),
            defects: spec.defects.clone(),
        };
        zone.take_slips(spec, total)?;
        let usable = match disk.sparing {
            Sparing::ZoneTracks => usable * sectors_per_track,
            _ if zone.slips_move_all => usable.saturating_sub(zone.slips.len() as u64),
            _ => usable,
        };
        zone.blocks = usable
            .checked_sub(spec.empty_front)
            .filter(|blocks| *blocks > 0)
            .ok_or_else(|| format!("{} empty blocks at the front of {usable}", spec.empty_front))?;
        zone.check_defects(total, disk.sparing)?;
        Ok(zone)
    }

    /// Sorts the slips and notes from which logical index each shifts.
    fn take_slips(&mut self, spec: &ZoneSpec, total: u64) -> Result<(), String> {
        let mut slips = spec.slips.clone();
        slips.sort_unstable();
        slips.dedup();
        if let Some(slip) = slips.last().filter(|slip| **slip >= total) {
            return Err(format!("slip {slip} lies beyond the zone's {total}"));
        }
        match self.slips_move_all {
            true => self.take_moving_slips(&slips),
            false => self.take_absorbed_slips(&slips)?,
        }
        Ok(())
    }

    fn take_moving_slips(&mut self, slips: &[u64]) {
        for physical in slips {
            let (unit, inside) = (physical / self.unit, physical % self.unit);
            // A slip among the spares moves nothing.
            let Some(used) = inside.checked_sub(self.front).filter(|at| *at < self.unit_used)
            else {
                continue;
            };
            let before = self.slips.len() as u64;
            self.slips.push((*physical, unit * self.unit_used + used - before));
        }
    }

    /// Slips that the spares of their own unit make up for.
    fn take_absorbed_slips(&mut self, slips: &[u64]) -> Result<(), String> {
        let spares = self.unit - self.unit_used;
        for unit_slips in slips.chunk_by(|a, b| a / self.unit == b / self.unit) {
            if unit_slips.len() as u64 > spares {
                let slip = unit_slips[spares as usize];
                return Err(format!("more slips than the {spares} spares, at slip {slip}"));
            }
            // Front spares that remain when slips have used some.
            let left = self.front.saturating_sub(unit_slips.len() as u64);
            let mut before = 0;
            for physical in unit_slips {
                let (unit, inside) = (physical / self.unit, physical % self.unit);
                let logical = (inside - before).saturating_sub(left);
                // A slip among the spares at the unit's end moves nothing.
                if logical >= self.unit_used {
                    continue;
                }
                self.slips.push((*physical, unit * self.unit_used + logical));
                before += 1;
            }
        }
        Ok(())
    }

    /// A replacement must be a sector (or track) that holds nothing else.
    fn check_defects(&mut self, total: u64, sparing: Sparing) -> Result<(), String> {
        // A published drive lists a defect as its own replacement: nothing is replaced.
        self.defects.retain(|(bad, to)| bad != to);
        self.defects.sort_unstable();
        let mut replacements: Vec<u64> = self.defects.iter().map(|(_, to)| *to).collect();
        replacements.sort_unstable();
        let repeated = self.defects.windows(2).any(|pair| pair[0].0 == pair[1].0)
            || replacements.windows(2).any(|pair| pair[0] == pair[1]);
        if repeated {
            return Err("a defect or a replacement is listed twice".to_owned());
        }
        if let Some((bad, to)) = self.defects.iter().find(|(bad, to)| (*bad).max(*to) >= total) {
            return Err(format!("defect ({bad}, {to}) lies beyond the zone's {total}"));
        }
        let tracks = sparing == Sparing::ZoneTracks;
        match self.defects.iter().find(|(_, to)| self.holds_data(*to, tracks)) {
            Some((bad, to)) => {
                Err(format!("defect ({bad}, {to}): {to} is no spare, it holds data of its own"))
            }
            None => Ok(()),
        }
    }

    /// Whether a block is laid at this physical index (or on this track).
    fn holds_data(&self, at: u64, tracks: bool) -> bool {
        let size = if tracks { self.sectors_per_track } else { 1 };
        let (from, to) = (at * size, (at + 1) * size);
        // Physical indices ascend with the blocks.
        let (mut low, mut high) = (0, self.blocks);
        while low < high {
            let middle = low.midpoint(high);
            match self.physical(middle, tracks) < from {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low < self.blocks && self.physical(low, tracks) < to
    }

    #[inline]
    fn is_plain(&self) -> bool {
        self.slips.is_empty()
            && self.defects.is_empty()
            && (self.unit_used == self.unit || self.unit_used >= self.blocks + self.empty_front)
    }

    /// The physical index of the zone's logical `block`, before replacement.
    #[inline]
    fn physical(&self, block: u64, tracks: bool) -> u64 {
        let laid = block + self.empty_front;
        if tracks {
            let track = laid / self.sectors_per_track;
            let slipped = self.slips.partition_point(|(_, from)| *from <= track) as u64;
            return (track + slipped) * self.sectors_per_track + laid % self.sectors_per_track;
        }
        if self.unit_used == self.unit && self.slips.is_empty() {
            return laid;
        }
        if self.slips_move_all {
            let moved = laid + self.slips.partition_point(|(_, from)| *from <= laid) as u64;
            let unit = moved / self.unit_used;
            return unit * self.unit + self.front + (moved - unit * self.unit_used);
        }
        let unit = laid / self.unit_used;
        let (front, shift) = match self.slips.is_empty() {
            true => (self.front, 0),
            false => {
                let first = self.slips.partition_point(|(_, from)| *from < unit * self.unit_used);
                let upto = self.slips.partition_point(|(_, from)| *from <= laid);
                let all = match self.front {
                    0 => 0,
                    _ => {
                        self.slips.partition_point(|(_, from)| *from < (unit + 1) * self.unit_used)
                    }
                };
                let used = all.saturating_sub(first) as u64;
                (self.front - used.min(self.front), (upto - first) as u64)
            }
        };
        unit * self.unit + front + (laid - unit * self.unit_used) + shift
    }

    /// Where the sector laid at `index` really is.
    #[inline]
    fn replaced(&self, index: u64, tracks: bool) -> u64 {
        if self.defects.is_empty() {
            return index;
        }
        let size = if tracks { self.sectors_per_track } else { 1 };
        match self.defects.binary_search_by_key(&(index / size), |(bad, _)| *bad) {
            Ok(at) => self.defects[at].1 * size + index % size,
            Err(_) => index,
        }
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
