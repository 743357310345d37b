//! One zone: spares, slips and replaced sectors.

use super::error::ZoneError;
use super::{GeometrySpec, Sparing, ZoneSpec};

/// A zone's map, ready for use.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) first_lbn: u64,
    pub(super) blocks: u64,
    pub(super) first_cylinder: u64,
    pub(super) sectors_per_track: u64,
    pub(super) offset: u64,
    pub(super) empty_front: u64,
    pub(super) track_skew: u64,
    pub(super) cylinder_skew: u64,
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
    pub(super) defects: Vec<(u64, u64)>,
}

impl Zone {
    pub(super) fn new(
        disk: &GeometrySpec,
        spec: &ZoneSpec,
        first_lbn: u64,
    ) -> Result<Self, ZoneError> {
        let sectors_per_track = u64::from(spec.sectors_per_track);
        if !(1..=1_000_000).contains(&sectors_per_track) {
            return Err(ZoneError::SectorsPerTrack { sectors: sectors_per_track });
        }
        if spec.last_cylinder < spec.first_cylinder {
            return Err(ZoneError::Cylinders {
                first: spec.first_cylinder,
                last: spec.last_cylinder,
            });
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
            Sparing::Range(0) => return Err(ZoneError::EmptySparingRange),
            Sparing::Range(range) => (sectors_per_track * heads * u64::from(range), all),
        };
        let spares = if disk.sparing == Sparing::None { 0 } else { spec.spares };
        if spares >= unit {
            return Err(ZoneError::OnlySpares { spares, unit });
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
            .ok_or(ZoneError::EmptyFront { empty: spec.empty_front, usable })?;
        zone.check_defects(total, disk.sparing)?;
        Ok(zone)
    }

    /// Sorts the slips and notes from which logical index each shifts.
    fn take_slips(&mut self, spec: &ZoneSpec, total: u64) -> Result<(), ZoneError> {
        let mut slips = spec.slips.clone();
        slips.sort_unstable();
        slips.dedup();
        if let Some(slip) = slips.last().copied().filter(|slip| *slip >= total) {
            return Err(ZoneError::SlipBeyond { slip, total });
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
    fn take_absorbed_slips(&mut self, slips: &[u64]) -> Result<(), ZoneError> {
        let spares = self.unit - self.unit_used;
        for unit_slips in slips.chunk_by(|a, b| a / self.unit == b / self.unit) {
            if unit_slips.len() as u64 > spares {
                let slip = unit_slips[spares as usize];
                return Err(ZoneError::TooManySlips { spares, slip });
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
    fn check_defects(&mut self, total: u64, sparing: Sparing) -> Result<(), ZoneError> {
        // A published drive lists a defect as its own replacement: nothing is replaced.
        self.defects.retain(|(bad, to)| bad != to);
        self.defects.sort_unstable();
        let mut replacements: Vec<u64> = self.defects.iter().map(|(_, to)| *to).collect();
        replacements.sort_unstable();
        let repeated = self.defects.windows(2).any(|pair| pair[0].0 == pair[1].0)
            || replacements.windows(2).any(|pair| pair[0] == pair[1]);
        if repeated {
            return Err(ZoneError::ListedTwice);
        }
        let beyond = self.defects.iter().find(|(bad, to)| (*bad).max(*to) >= total);
        if let Some((bad, to)) = beyond.copied() {
            return Err(ZoneError::DefectBeyond { bad, to, total });
        }
        let tracks = sparing == Sparing::ZoneTracks;
        match self.defects.iter().copied().find(|(_, to)| self.holds_data(*to, tracks)) {
            Some((bad, to)) => Err(ZoneError::NotASpare { bad, to }),
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
    pub(super) fn is_plain(&self) -> bool {
        self.slips.is_empty()
            && self.defects.is_empty()
            && (self.unit_used == self.unit || self.unit_used >= self.blocks + self.empty_front)
    }

    /// The physical index of the zone's logical `block`, before replacement.
    #[inline]
    pub(super) fn physical(&self, block: u64, tracks: bool) -> u64 {
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
    pub(super) fn replaced(&self, index: u64, tracks: bool) -> u64 {
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
