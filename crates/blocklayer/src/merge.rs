//! Finding the request that a bio continues.

use crate::requests::{RequestTable, Rq};
use device::Op;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Where requests end → which. Only looked up, never walked, so its order cannot show.
#[derive(Debug, Default)]
pub(crate) struct EndHash(HashMap<u64, Rq, BuildHasherDefault<Mix>>);

/// One multiplication (Fibonacci hashing): keys are sector numbers, not chosen by an enemy.
#[derive(Debug, Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

fn key(end: u64, op: Op) -> u64 {
    end * 2 + u64::from(op == Op::Write)
}

impl EndHash {
    /// Remembers it. Of several that end alike the latest is found.
    pub fn insert(&mut self, rq: Rq, requests: &RequestTable) {
        let r = &requests[rq];
        if matches!(r.op, Op::Read | Op::Write) {
            self.0.insert(key(r.end(), r.op), rq);
        }
    }

    /// Forgets it, which ends at `end`.
    pub fn remove(&mut self, rq: Rq, end: u64, op: Op) {
        if let std::collections::hash_map::Entry::Occupied(entry) = self.0.entry(key(end, op))
            && *entry.get() == rq
        {
            entry.remove();
        }
    }

    /// The request of this direction that ends at `sector`.
    pub fn find(&self, sector: u64, op: Op) -> Option<Rq> {
        self.0.get(&key(sector, op)).copied()
    }
}
