//! Data acknowledged that is not yet on the medium: extents in address order, newest data on top.
//! Used by a drive's write cache and by an array controller's.

use std::collections::BTreeMap;

/// A run of dirty sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// First sector.
    pub start: u64,
    /// Sectors.
    pub count: u64,
    /// The oldest acknowledged write whose data (or whose replacement) is in here. A flush that
    /// came later waits for it.
    pub oldest: u64,
    /// The write whose data this is.
    pub writer: u64,
}

impl Dirty {
    /// The sector after the last.
    pub fn end(&self) -> u64 {
        self.start + self.count
    }
}

/// Dirty extents, never overlapping.
#[derive(Clone, Debug, Default)]
pub struct DirtyMap {
    extents: BTreeMap<u64, Dirty>,
    sectors: u64,
}

impl DirtyMap {
    /// Sectors in it.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }
    /// Nothing is dirty.
    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }
    /// Extents.
    pub fn len(&self) -> usize {
        self.extents.len()
    }

    /// Adds newly written data, in place of what it covers.
    pub fn insert(&mut self, mut new: Dirty) {
        if let Some(oldest) = self.remove(new.start, new.count) {
            new.oldest = new.oldest.min(oldest);
        }
        self.sectors += new.count;
        self.extents.insert(new.start, new);
    }

    /// Takes `start..start + count` out. Returns the oldest write that had data there.
    pub fn remove(&mut self, start: u64, count: u64) -> Option<u64> {
        let end = start + count;
        let mut oldest = None;
        // At most one extent begins before the range and reaches into it.
        let first = self.extents.range(..start).next_back().map(|(_, d)| *d);
        if let Some(dirty) = first.filter(|dirty| dirty.end() > start) {
            oldest = Some(dirty.oldest);
            self.extents.insert(dirty.start, Dirty { count: start - dirty.start, ..dirty });
            self.sectors -= dirty.end().min(end) - start;
            if dirty.end() > end {
                self.extents.insert(end, Dirty { start: end, count: dirty.end() - end, ..dirty });
            }
        }
        while let Some((_, dirty)) = self.extents.range(start..end).next().map(|(k, d)| (*k, *d)) {
            oldest = Some(oldest.map_or(dirty.oldest, |o: u64| o.min(dirty.oldest)));
            self.extents.remove(&dirty.start);
            self.sectors -= dirty.end().min(end) - dirty.start;
            if dirty.end() > end {
                self.extents.insert(end, Dirty { start: end, count: dirty.end() - end, ..dirty });
            }
        }
        oldest
    }

    /// All of `start..start + count` is in it.
    pub fn covers(&self, start: u64, count: u64) -> bool {
        let end = start + count;
        let mut at = start;
        let before = self.extents.range(..=start).next_back().map(|(_, d)| *d);
        if let Some(dirty) = before.filter(|dirty| dirty.end() > at) {
            at = dirty.end();
        }
        for (_, dirty) in self.extents.range((start + 1).min(end)..end) {
            if at >= end || dirty.start > at {
                break;
            }
            at = dirty.end();
        }
        at >= end
    }

    /// Some of `start..start + count` is in it.
    pub fn touches(&self, start: u64, count: u64) -> bool {
        let end = start + count;
        self.extents.range(..end).next_back().is_some_and(|(_, dirty)| dirty.end() > start)
    }

    /// A write older than `barrier` has data in it.
    pub fn older_than(&self, barrier: u64) -> bool {
        self.extents.values().any(|dirty| dirty.oldest < barrier)
    }

    /// Extents from `start` on, in address order.
    pub fn from(&self, start: u64) -> impl Iterator<Item = &Dirty> {
        self.extents.range(start..).map(|(_, dirty)| dirty)
    }
    /// Extents before `start`, in descending order.
    pub fn before(&self, start: u64) -> impl Iterator<Item = &Dirty> {
        self.extents.range(..start).rev().map(|(_, dirty)| dirty)
    }

    /// Takes out the extent at `start` and those that follow it without a gap, up to `most` sectors
    /// (but always the first), into `run`.
    pub fn take_run(&mut self, start: u64, most: u64, run: &mut Vec<Dirty>) {
        let mut at = start;
        while let Some(dirty) = self.extents.get(&at).copied() {
            if at != start && at + dirty.count - start > most {
                break;
            }
            self.extents.remove(&at);
            self.sectors -= dirty.count;
            run.push(dirty);
            at = dirty.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain array of sectors.
        #[test]
        fn agrees_with_an_array(ops in prop::collection::vec((0u64..60, 1u64..12, 0u8..3), 1..60)) {
            let mut map = DirtyMap::default();
            let mut sectors = vec![None; 80];
            for (id, (start, count, kind)) in ops.iter().enumerate() {
                let range = *start as usize..(start + count) as usize;
                let expected = sectors[range.clone()].iter().all(Option::is_some);
                prop_assert_eq!(map.covers(*start, *count), expected);
                let expected = sectors[range.clone()].iter().any(Option::is_some);
                prop_assert_eq!(map.touches(*start, *count), expected);
                match kind {
                    0 => {
                        map.remove(*start, *count);
                        sectors[range].fill(None);
                    }
                    _ => {
                        let id = id as u64;
                        map.insert(Dirty { start: *start, count: *count, oldest: id, writer: id });
                        sectors[range].fill(Some(id));
                    }
                }
                prop_assert_eq!(map.sectors(), sectors.iter().flatten().count() as u64);
                for dirty in map.from(0) {
                    let range = dirty.start as usize..dirty.end() as usize;
                    prop_assert!(sectors[range].iter().all(|s| *s == Some(dirty.writer)));
                }
            }
        }
    }
}
