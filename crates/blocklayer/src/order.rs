//! The orders in which schedulers keep requests: by arrival, and by sector.

use crate::requests::{NONE, Rq};
use std::collections::BTreeSet;

/// The links of any number of [`Fifo`]s; a request is in one of them at a time.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<(Rq, Rq)>);

/// A list in order of arrival, from which any member can be taken in O(1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fifo {
    head: Rq,
    tail: Rq,
    len: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Fifo { head: NONE, tail: NONE, len: 0 }
    }
}

impl Fifo {
    pub fn push(&mut self, links: &mut Links, rq: Rq) {
        if links.0.len() <= rq as usize {
            links.0.resize(rq as usize + 1, (NONE, NONE));
        }
        links.0[rq as usize] = (self.tail, NONE);
        match self.tail {
            NONE => self.head = rq,
            tail => links.0[tail as usize].1 = rq,
        }
        self.tail = rq;
        self.len += 1;
    }

    pub fn remove(&mut self, links: &mut Links, rq: Rq) {
        let (before, after) = links.0[rq as usize];
        match before {
            NONE => self.head = after,
            _ => links.0[before as usize].1 = after,
        }
        match after {
            NONE => self.tail = before,
            _ => links.0[after as usize].0 = before,
        }
        self.len -= 1;
    }

    /// Removes `gone`, and moves `into` to its position.
    pub fn replace(&mut self, links: &mut Links, into: Rq, gone: Rq) {
        self.remove(links, into);
        let (before, after) = links.0[gone as usize];
        links.0[into as usize] = (before, after);
        match before {
            NONE => self.head = into,
            _ => links.0[before as usize].1 = into,
        }
        match after {
            NONE => self.tail = into,
            _ => links.0[after as usize].0 = into,
        }
    }

    #[inline]
    pub fn head(&self) -> Option<Rq> {
        (self.head != NONE).then_some(self.head)
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn before(&self, links: &Links, rq: Rq) -> Option<Rq> {
        Some(links.0[rq as usize].0).filter(|rq| *rq != NONE)
    }

    pub fn after(&self, links: &Links, rq: Rq) -> Option<Rq> {
        Some(links.0[rq as usize].1).filter(|rq| *rq != NONE)
    }
}

/// RequestTable by their first sector. Sector and request share a key of 64 bits, 40 and 24 of them: searching a
/// large queue is bound by memory, so its tree is kept small.
#[derive(Debug, Default)]
pub(crate) struct Sorted(BTreeSet<u64>);

const NAME_BITS: u32 = 24;
const LAST_NAME: Rq = (1 << NAME_BITS) - 1;
/// Sectors beyond 512 TiB count as this one.
const LAST_SECTOR: u64 = (1 << (64 - NAME_BITS)) - 1;

fn key(start: u64, rq: Rq) -> u64 {
    start.min(LAST_SECTOR) << NAME_BITS | u64::from(rq)
}

fn name(key: &u64) -> Rq {
    (*key as u32) & LAST_NAME
}

impl Sorted {
    pub fn insert(&mut self, start: u64, rq: Rq) {
        self.0.insert(key(start, rq));
    }
    pub fn remove(&mut self, start: u64, rq: Rq) {
        self.0.remove(&key(start, rq));
    }
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The first that starts at `sector` or behind it.
    pub fn from(&self, sector: u64) -> Option<Rq> {
        self.0.range(key(sector, 0)..).next().map(name)
    }
    /// The last that starts before `sector`.
    pub fn below(&self, sector: u64) -> Option<Rq> {
        self.0.range(..key(sector, 0)).next_back().map(name)
    }
    /// The one that starts exactly there.
    pub fn at(&self, sector: u64) -> Option<Rq> {
        self.0.range(key(sector, 0)..=key(sector, LAST_NAME)).next().map(name)
    }
    /// The next after this one.
    pub fn successor(&self, start: u64, rq: Rq) -> Option<Rq> {
        self.0.range(key(start, rq) + 1..).next().map(name)
    }
    /// The one before this one.
    pub fn predecessor(&self, start: u64, rq: Rq) -> Option<Rq> {
        self.0.range(..key(start, rq)).next_back().map(name)
    }
    pub fn first(&self) -> Option<Rq> {
        self.0.first().map(name)
    }
    pub fn drain(&mut self, out: &mut Vec<Rq>) {
        out.extend(std::mem::take(&mut self.0).iter().map(name));
    }
}
