//! A disk's buffer: how far it reads ahead, and how many places it keeps.

use crate::basics::Basics;
use crate::{Estimate, FitError, Number, Quantity, Read, SMALL, Storage, anywhere, millis};
use device::disk::{CacheSpec, ReadAhead};
use random::Stream;
use units::Nanos;

/// Longest read-ahead that is looked for, sectors: 8 MiB.
const LONGEST: u64 = (8 << 20) / 512;
/// Most places that are looked for.
const PLACES: usize = 96;
/// Times that each question is asked; the majority decides.
const TRIES: usize = 5;

/// What was found.
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Sectors from a read's beginning that are there afterwards: a true value from `.0` to `.1`.
    ahead: (u64, u64),
    /// Places kept: a true value from `.0` to `.1`.
    places: (usize, usize),
}

impl Buffer {
    /// As a description.
    pub fn spec(&self) -> CacheSpec {
        let read_ahead = match self.ahead.0 > SMALL {
            true => ReadAhead::Segment,
            false => ReadAhead::Off,
        };
        let segment_sectors = self.ahead.0.max(SMALL);
        CacheSpec {
            segments: self.places.0.max(1) as u32,
            segment_sectors,
            read_ahead,
            read_ahead_max: segment_sectors,
            over_requested: true,
            on_idle_hit: true,
            ..CacheSpec::NONE
        }
    }

    /// As numbers.
    pub fn numbers(&self) -> [Number; 2] {
        let kib = |sectors: u64| sectors as f64 / 2.0;
        let (low, high) = self.ahead;
        let ahead = Estimate { value: kib(low), low: kib(low), high: kib(high) };
        let (fewest, most) = (self.places.0 as f64, self.places.1 as f64);
        let places = Estimate { value: fewest, low: fewest, high: most };
        [Number::new(Quantity::Segment, ahead), Number::new(Quantity::Segments, places)]
    }
}

/// Asks how far, then how many.
pub fn measure<S: Storage>(
    storage: &mut S,
    stream: &mut Stream,
    basics: &Basics,
    rate_mb_s: f64,
) -> Result<Buffer, FitError<S::Error>> {
    let mut hit =
        |setup: &dyn Fn(&mut Stream, u64) -> Vec<Read>| -> Result<bool, FitError<S::Error>> {
            let mut hits = 0;
            for _ in 0..TRIES {
                let reads = setup(stream, storage.capacity().0);
                let times = millis(&storage.read(&reads, 1)?);
                hits += usize::from(times.last().is_some_and(|time| *time < basics.hit()));
            }
            Ok(hits * 2 > TRIES)
        };
    // Far enough that the drive has had the time to read there.
    let pause = |sectors: u64| {
        let reading = sectors as f64 * 512.0 / (rate_mb_s * 1e6);
        Nanos((reading * 1.3e9 + basics.turn * 4e6) as u64)
    };
    let mut there = |sectors: u64| {
        hit(&|stream, capacity| {
            let first = anywhere(stream, capacity - LONGEST - SMALL, SMALL);
            let then = Read { start: first.start + sectors, count: SMALL, pause: pause(sectors) };
            vec![first, then]
        })
    };
    let (mut yes, mut no) = (0, SMALL);
    while no <= LONGEST && there(no)? {
        (yes, no) = (no, no * 2);
    }
    // The last few blocks of a segment cost more questions than they are worth.
    while no - yes > SMALL.max(no / 64) {
        let middle = (yes + no) / 2 / SMALL * SMALL;
        match there(middle)? {
            true => yes = middle,
            false => no = middle,
        }
    }
    let mut kept = |places: usize| {
        hit(&|stream, capacity| {
            let mut reads: Vec<Read> =
                (0..places).map(|_| anywhere(stream, capacity, SMALL)).collect();
            reads.extend(reads.first().copied());
            reads
        })
    };
    let (mut few, mut many) = (0, 1);
    while many <= PLACES && kept(many)? {
        (few, many) = (many, many * 2);
    }
    while many - few > 1 && many <= PLACES {
        let middle = usize::midpoint(few, many);
        match kept(middle)? {
            true => few = middle,
            false => many = middle,
        }
    }
    // The block itself is there, then what is read ahead; the end lies before the first that is not.
    Ok(Buffer { ahead: (yes + SMALL, no), places: (few, (many - 1).max(few)) })
}
