//! A controller's battery-backed write cache: what is in it is safe, so a write in it is complete.

use super::layout::{Layout, Level};
use crate::dirty::{Dirty, DirtyMap};
use crate::spec_error::SpecError;
use std::collections::VecDeque;

/// The order in which dirty data goes to the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destage {
    /// Upwards over the addresses, then from the lowest again; neighbours in one run.
    Elevator,
    /// The oldest first, with its neighbours.
    Oldest,
}

/// A battery-backed write cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteBack {
    /// Sectors it holds.
    pub size: u64,
    /// Below this share of it, data goes to the drives only while they have nothing else to do.
    pub high_water: f64,
    /// Order.
    pub destage: Destage,
    /// Runs on their way to the drives at once.
    pub window: u32,
}

/// The cache's content.
#[derive(Clone, Debug)]
pub struct WriteCache {
    spec: WriteBack,
    dirty: DirtyMap,
    /// Runs on their way: (start, count).
    flying: Vec<(u64, u64)>,
    flying_sectors: u64,
    cursor: u64,
    /// Where data came in, oldest first; what has left since is skipped when it is reached.
    ages: VecDeque<u64>,
    sequence: u64,
    run: Vec<Dirty>,
}

impl WriteCache {
    /// An empty cache.
    pub fn new(spec: WriteBack) -> Result<Self, SpecError> {
        if spec.size == 0 || spec.window == 0 || !(0.0..=1.0).contains(&spec.high_water) {
            let what = "expected a size and a window of at least 1, a high-water mark of 0 to 1";
            return Err(SpecError::new("write cache", what));
        }
        Ok(WriteCache {
            spec,
            dirty: DirtyMap::default(),
            flying: Vec::new(),
            flying_sectors: 0,
            cursor: 0,
            ages: VecDeque::new(),
            sequence: 0,
            run: Vec::new(),
        })
    }

    /// Sectors in it that are not on the drives.
    pub fn sectors(&self) -> u64 {
        self.dirty.sectors() + self.flying_sectors
    }

    /// A write of so many sectors can go in, if only when it is empty.
    pub fn fits_ever(&self, count: u64) -> bool {
        count <= self.spec.size
    }

    /// All of a read is in it.
    pub fn holds(&self, start: u64, count: u64) -> bool {
        self.dirty.covers(start, count)
            || self.flying.iter().any(|(s, c)| *s <= start && start + count <= s + c)
    }

    /// Takes a write, if there is room. What it overwrites needs no room of its own.
    pub fn take(&mut self, start: u64, count: u64) -> bool {
        let rewrites = self.dirty.covers(start, count);
        if !rewrites && self.sectors() + count > self.spec.size {
            return false;
        }
        self.sequence += 1;
        let (oldest, writer) = (self.sequence, self.sequence);
        self.dirty.insert(Dirty { start, count, oldest, writer });
        if self.spec.destage == Destage::Oldest && !rewrites {
            self.ages.push_back(start);
        }
        true
    }

    /// Drops what it holds of a range.
    pub fn forget(&mut self, start: u64, count: u64) {
        self.dirty.remove(start, count);
    }

    /// Some of a range is on its way to the drives.
    pub fn is_flying(&self, start: u64, count: u64) -> bool {
        self.flying.iter().any(|(s, c)| *s < start + count && start < s + c)
    }

    /// Some of a range is in it, or on its way to the drives.
    pub fn touches(&self, start: u64, count: u64) -> bool {
        self.dirty.touches(start, count) || self.is_flying(start, count)
    }

    /// A run has reached the drives.
    pub fn landed(&mut self, run: (u64, u64)) {
        if let Some(at) = self.flying.iter().position(|flying| *flying == run) {
            self.flying.swap_remove(at);
            self.flying_sectors -= run.1;
        }
    }

    /// The next run to send, if one should go now. `busy`: the drives have something to do.
    /// `pressed`: writes wait for room.
    pub fn next_run(&mut self, layout: &Layout, busy: bool, pressed: bool) -> Option<(u64, u64)> {
        let full = self.sectors() as f64 > self.spec.size as f64 * self.spec.high_water;
        // With the cache below its mark the drives are the host's first.
        let window = match full || pressed {
            true => self.spec.window as usize,
            false => (self.spec.window as usize / 4).max(1),
        };
        if self.dirty.is_empty() || self.flying.len() >= window {
            return None;
        }
        if !full && !pressed && busy {
            return None;
        }
        let start = self.pick()?;
        // A run ends with its row of stripe units, so that whole rows can be written as such.
        let row = match layout.level {
            Level::Mirror => layout.unit.max(2048),
            _ => layout.unit * layout.columns(),
        };
        let room = row - start % row;
        // Data that is on its way in an older version must not be overtaken.
        let flying = self.flying.iter().map(|(s, _)| *s).filter(|s| *s > start).min();
        let room = flying.map_or(room, |flying| room.min(flying - start));
        self.run.clear();
        self.dirty.take_run(start, room, &mut self.run);
        let mut count: u64 = self.run.iter().map(|dirty| dirty.count).sum();
        if count > room {
            // The first extent alone may be longer: the rest of it stays.
            let first = self.run[0];
            let rest = Dirty { start: start + room, count: count - room, ..first };
            self.dirty.insert(rest);
            count = room;
        }
        self.cursor = start + count;
        self.flying.push((start, count));
        self.flying_sectors += count;
        Some((start, count))
    }

    /// Where the next run begins. Data that is on its way in an older version waits for it.
    fn pick(&mut self) -> Option<u64> {
        if self.spec.destage == Destage::Oldest {
            for _ in 0..self.ages.len() {
                let Some(start) = self.ages.pop_front() else { break };
                if !self.dirty.touches(start, 1) {
                    continue; // it left with a neighbour's run
                }
                if !self.is_flying(start, 1) {
                    let first = self.dirty.before(start + 1).next().map(|dirty| dirty.start);
                    return first.filter(|first| !self.is_flying(*first, 1));
                }
                self.ages.push_back(start);
            }
        }
        let free = |dirty: &&Dirty| !self.is_flying(dirty.start, 1);
        let ahead = self.dirty.from(self.cursor).find(free);
        ahead.or_else(|| self.dirty.from(0).find(free)).map(|dirty| dirty.start)
    }
}
