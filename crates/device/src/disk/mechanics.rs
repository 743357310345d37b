//! The arm and the platter: when a head is over a sector, and how a run of blocks passes under it.

use super::geometry::{Extent, Geometry, Place};
use super::seek::SeekTable;
use super::spec::Access;
use units::Nanos;

/// Where the arm is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arm {
    /// Cylinder.
    pub cylinder: u32,
    /// The head in use.
    pub head: u32,
    /// It has just written: the write element is over the track's centre, not the read element.
    pub wrote: bool,
}

impl Arm {
    fn after(place: Place, wrote: bool) -> Self {
        Arm { cylinder: place.cylinder, head: place.head, wrote }
    }
}

/// A time of a description, which is in ns.
pub fn from_ns(ns: u32) -> Nanos {
    Nanos(u64::from(ns))
}

/// Geometry and arm together.
#[derive(Clone, Debug)]
pub struct Mechanics {
    /// Where blocks lie.
    pub geometry: Geometry,
    /// How long seeks take.
    pub seek: SeekTable,
    /// How long seeks to write take, where that differs.
    pub write_seek: Option<SeekTable>,
    /// Time to change heads without a seek, ns.
    pub head_switch_ns: u32,
    /// What positioning to write takes beyond positioning to read, ns. May be negative.
    pub write_settle_ns: i32,
    /// The shortest move before reading where the head has just written, ns: see
    /// [`super::DiskSpec::read_after_write_jog`].
    pub jog_ns: u32,
    /// Reading may begin anywhere in the wanted sectors as soon as the head has arrived.
    pub read_on_arrival: bool,
    /// What an access waits for.
    pub access: Access,
    /// How far from angle 0 the platter was at time 0, ns of a turn.
    pub turned_ns: u64,
}

/// Where in an access a pass comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It begins the access.
    First,
    /// It continues the access on the next track.
    Next,
    /// Read-ahead: the head reads on behind the requested blocks.
    ReadOn,
}

/// How late a head may come and still get the sector. Times are whole ns and rounded down, so a head
/// that runs straight on may seem to come a few ns after the sector's start. This is far below the
/// time of a sector (µs) and far above the rounding.
pub const ROUNDING: Nanos = Nanos(64);

/// One track's part of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// What passes.
    pub extent: Extent,
    /// Its first block.
    pub lbn: u64,
    /// Where the arm is then.
    pub arm: Arm,
    /// When the arm was on the track.
    pub arrived: Nanos,
    /// When the first block's start was under the head.
    pub start: Nanos,
    /// When all its blocks had passed.
    pub end: Nanos,
}

impl Mechanics {
    /// Time to bring the head from where `arm` is to `place`'s track, in ns: the seek, or the head
    /// switch if that is longer; settling if it is to write and anything moved.
    #[inline]
    pub fn position_ns(&self, arm: Arm, cylinder: u32, head: u32, write: bool) -> u32 {
        let table = match &self.write_seek {
            Some(table) if write => table,
            _ => &self.seek,
        };
        let seek = table.time_ns(arm.cylinder.abs_diff(cylinder));
        let switch = if arm.head == head { 0 } else { self.head_switch_ns };
        let move_ns = seek.max(switch);
        if arm.wrote && !write && arm.cylinder == cylinder {
            return move_ns.max(self.jog_ns);
        }
        match write && move_ns > 0 {
            true => move_ns.saturating_add_signed(self.write_settle_ns),
            false => move_ns,
        }
    }

    /// It matters where a sector is on its track.
    #[inline]
    pub fn rotates(&self) -> bool {
        self.access == Access::Positions
    }

    /// The angle under the heads at `time`, ns from angle 0.
    #[inline]
    pub fn phase_ns(&self, time: Nanos) -> u64 {
        (time.0 + self.turned_ns) % self.geometry.turn_ns()
    }

    /// From `time` until `angle_ns` is next under the head.
    #[inline]
    pub fn wait(&self, time: Nanos, angle_ns: u32) -> Nanos {
        if !self.rotates() {
            return Nanos::ZERO;
        }
        let turn = self.geometry.turn_ns();
        let phase = self.phase_ns(time);
        let angle = u64::from(angle_ns);
        let wait = if angle >= phase { angle - phase } else { angle + turn - phase };
        if wait + ROUNDING.0 > turn { Nanos::ZERO } else { Nanos(wait) }
    }

    /// The first track's part of a transfer of `count` blocks from `lbn`, by an arm free at `time`.
    pub fn pass(
        &self,
        arm: Arm,
        time: Nanos,
        (lbn, count): (u64, u64),
        write: bool,
        part: Part,
    ) -> Pass {
        let extent = self.geometry.extent(lbn, count);
        let place = extent.place;
        let arrived = time + from_ns(self.position_ns(arm, place.cylinder, place.head, write));
        let passing = Nanos(self.geometry.pass_ns(&extent));
        let turn = Nanos(self.geometry.turn_ns());
        let (start, end) = match (self.access, part) {
            (Access::Positions, _) => {
                let wait = self.wait(arrived, place.angle_ns);
                match self.read_on_arrival && !write && wait + passing > turn {
                    // The head arrives inside the wanted sectors: it reads the rest of them now, and
                    // the first ones when they come round.
                    true => (arrived, arrived + turn),
                    false => (arrived + wait, arrived + wait + passing),
                }
            }
            (Access::HalfTurn, Part::First) => (arrived + turn / 2, arrived + turn / 2 + passing),
            (Access::Constant(access_ns), Part::First) => {
                let end = time + from_ns(access_ns);
                (end.saturating_sub(passing).max(time), end)
            }
            // The constant covers the whole access.
            (Access::Constant(_), Part::Next) => (time, time),
            _ => (arrived, arrived + passing),
        };
        Pass { extent, lbn, arm: Arm::after(place, write), arrived, start, end }
    }

    /// Runs over `count` blocks from `lbn`, track by track, and shows each pass to `see`. Returns
    /// when the last block has passed, and where the arm then is.
    pub fn sweep(
        &self,
        mut arm: Arm,
        mut time: Nanos,
        (mut lbn, mut count): (u64, u64),
        write: bool,
        mut see: impl FnMut(&Pass),
    ) -> (Nanos, Arm) {
        let mut part = Part::First;
        while count > 0 {
            let pass = self.pass(arm, time, (lbn, count), write, part);
            see(&pass);
            part = Part::Next;
            (arm, time) = (pass.arm, pass.end);
            lbn += pass.extent.blocks;
            count -= pass.extent.blocks;
        }
        (time, arm)
    }

    /// When the head has read on over `count` blocks from `lbn`.
    pub fn read_on(
        &self,
        mut arm: Arm,
        mut time: Nanos,
        (mut lbn, mut count): (u64, u64),
    ) -> Nanos {
        while count > 0 {
            let pass = self.pass(arm, time, (lbn, count), false, Part::ReadOn);
            (arm, time) = (pass.arm, pass.end);
            lbn += pass.extent.blocks;
            count -= pass.extent.blocks;
        }
        time
    }
}
