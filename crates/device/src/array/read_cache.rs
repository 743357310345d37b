//! A controller's read cache. Where it reads ahead, it reads the whole row of stripe units that holds a block, and
//! answers later reads of the row from memory.

use super::{Array, Op, Parent, Request};
use crate::spec_error::SpecError;
use std::collections::VecDeque;

/// A controller's read cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadCache {
    /// Sectors it holds.
    pub size: u64,
    /// When it reads ahead.
    pub ahead: AheadPolicy,
    /// How many streams it tells apart, each by where its last read ended. One is a volume as a whole.
    pub streams: usize,
}

/// When a controller reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadPolicy {
    /// After every read.
    Always,
    /// After a read that begins where one before it ended.
    Adaptive,
}

/// A row of stripe units in the cache, or on its way.
#[derive(Clone, Debug, Default)]
struct Row {
    number: u64,
    arrived: bool,
    /// Something of it was overwritten while it was on its way.
    stale: bool,
    /// Reads that wait for it.
    waiting: Vec<(Request, u64)>,
}

/// The cache's content.
#[derive(Clone, Debug)]
pub(super) struct CachedRows {
    spec: ReadCache,
    sectors: u64,
    /// How many rows fit.
    room: usize,
    /// The row that was used last comes last.
    rows: VecDeque<Row>,
    /// Where each stream's last read ended; the last one to read comes last.
    ends: VecDeque<u64>,
}

impl CachedRows {
    /// An empty cache of rows of so many sectors.
    pub(super) fn new(spec: ReadCache, sectors: u64) -> Result<Self, SpecError> {
        let room = usize::try_from(spec.size / sectors).unwrap_or(usize::MAX);
        if room == 0 || spec.streams == 0 {
            let what = "expected room for a row of stripe units, and at least 1 stream";
            return Err(SpecError::new("read cache", what));
        }
        Ok(CachedRows { spec, sectors, room, rows: VecDeque::new(), ends: VecDeque::new() })
    }

    fn touched(&self, start: u64, count: u64) -> std::ops::RangeInclusive<u64> {
        start / self.sectors..=(start + count - 1) / self.sectors
    }

    fn place(&self, number: u64) -> Option<usize> {
        self.rows.iter().position(|row| row.number == number)
    }

    /// Whether a read is followed by its row.
    fn reads_ahead(&mut self, start: u64, count: u64) -> bool {
        let before = self.ends.iter().position(|end| *end == start);
        match before {
            Some(stream) => {
                self.ends.remove(stream);
            }
            None if self.ends.len() == self.spec.streams => {
                self.ends.pop_front();
            }
            None => (),
        }
        self.ends.push_back(start + count);
        self.spec.ahead == AheadPolicy::Always || before.is_some()
    }

    /// Makes room for a row that is on its way; nothing where every row is on its way.
    fn expect(&mut self, number: u64, first: (Request, u64)) -> bool {
        if self.rows.len() >= self.room {
            let Some(oldest) = self.rows.iter().position(|row| row.arrived) else { return false };
            self.rows.remove(oldest);
        }
        self.rows.push_back(Row { number, waiting: vec![first], ..Row::default() });
        true
    }

    /// Drops what it holds of a range.
    pub(super) fn forget(&mut self, start: u64, count: u64) {
        let touched = self.touched(start, count);
        self.rows.retain_mut(|row| {
            let hit = touched.contains(&row.number);
            row.stale |= hit;
            !(hit && row.arrived)
        });
    }
}

impl Array {
    /// Answers a read from the read cache, or lets it wait for a row that is read; false where it goes to
    /// the drives as it is.
    pub(super) fn read_by_row(&mut self, request: Request, submitted: u64, now: u64) -> bool {
        let Some(rows) = &mut self.cached_rows else { return false };
        let (start, count) = (request.start.0, request.count.0);
        let ahead = rows.reads_ahead(start, count);
        let touched = rows.touched(start, count);
        let arrived = |number: u64| rows.place(number).is_some_and(|at| rows.rows[at].arrived);
        if touched.clone().all(arrived) {
            for number in touched {
                let used = rows.place(number).and_then(|at| rows.rows.remove(at));
                rows.rows.extend(used);
            }
            self.answer(request, submitted, now, count, true);
            return true;
        }
        // Reads of more than a row have nothing to gain from one.
        let number = *touched.start();
        if number != *touched.end() {
            return false;
        }
        if let Some(at) = rows.place(number) {
            let fresh = !rows.rows[at].stale;
            if fresh {
                rows.rows[at].waiting.push((request, submitted));
            }
            return fresh;
        }
        let (first, sectors) = (number * rows.sectors, rows.sectors);
        if !ahead || first + sectors > self.capacity || !rows.expect(number, (request, submitted)) {
            return false;
        }
        let cached_row = Some(number);
        let parent = self.new_parent(Parent { cached_row, began: now, ..Parent::default() });
        self.begin(parent, Request::read(0, first, sectors), now);
        true
    }

    /// A row has been read: those that waited for it are answered, unless it was overwritten meanwhile.
    pub(super) fn row_arrived(&mut self, number: u64, now: u64) {
        let Some(rows) = &mut self.cached_rows else { return };
        let Some(at) = rows.place(number) else { return };
        let Some(mut row) = rows.rows.remove(at) else { return };
        let waiting = std::mem::take(&mut row.waiting);
        let stale = row.stale;
        if !stale {
            rows.rows.push_back(Row { arrived: true, ..row });
        }
        for (request, submitted) in waiting {
            match stale {
                true => self.start(request, submitted, now),
                false => self.answer(request, submitted, now, request.count.0, false),
            }
        }
    }

    /// A write or discard makes what the read cache holds of its range old.
    pub(super) fn forget_rows(&mut self, request: &Request) {
        if let (Op::Write | Op::Discard, Some(rows)) = (request.op, &mut self.cached_rows) {
            rows.forget(request.start.0, request.count.0);
        }
    }
}
