//! What the drive does without its arm: hits in the buffer, and writes that the cache takes.

use super::cache::Lookup;
use super::mechanics::from_ns;
use super::queue::Pending;
use super::{Dirty, Disk, Request, WriteCache};
use units::Nanos;

impl Disk {
    pub(super) fn read_hits(&mut self, request: &Request, now: Nanos) -> bool {
        // While a buffer with appended writes is dirty, every other command waits for it.
        if matches!(self.spec.write_cache, WriteCache::Appending { .. }) && !self.is_clean() {
            return false;
        }
        if self.dirty.covers(request.start.0, request.count.0) {
            return true;
        }
        if self.spec.cache.segments == 0 || self.dirty.touches(request.start.0, request.count.0) {
            return false;
        }
        self.run_read_ahead(now);
        matches!(self.cache.lookup(&self.mechanics, request.start.0, request.end()), Lookup::Hit)
    }

    pub(super) fn is_clean(&self) -> bool {
        self.dirty.is_empty() && self.flying.is_empty()
    }

    pub(super) fn run_read_ahead(&mut self, now: Nanos) {
        if let Some(arm) = self.cache.run(&self.mechanics, now) {
            self.arm = arm;
        }
    }

    pub(super) fn serve_hit(&mut self, pending: &Pending, now: Nanos) {
        let request = &pending.request;
        let began = now.max(self.electronics_free);
        let transfer = from_ns(self.spec.bus.read_sector_ns) * request.count.0;
        let o = &self.spec.overheads;
        let ready = began + self.overhead(o.read_hit) + from_ns(o.data_preparation_ns);
        let at = ready.max(self.bus_free) + transfer + from_ns(o.read_completion_ns);
        self.electronics_free = at;
        self.bus_free = at;
        let idle = (self.work.is_none() && self.queue.is_empty()).then_some(self.arm);
        let range = (request.start.0, request.end());
        self.cache.served(&self.mechanics, range, now, idle);
        self.last_was_write = false;
        self.complete(pending, began, at, true);
    }

    /// Some(true): the write cache takes it now. Some(false): it will, once there is room. None: it
    /// goes to the medium.
    pub(super) fn write_cache_takes(&self, request: &Request) -> Option<bool> {
        if request.fua {
            return None;
        }
        match self.spec.write_cache {
            WriteCache::Off => None,
            WriteCache::Appending { streams } => {
                if request.count.0 > self.spec.cache.segment_sectors {
                    return None;
                }
                let appends = |dirty: &Dirty| {
                    dirty.end() == request.start.0
                        && self.run_length(dirty) + request.count.0
                            <= self.spec.cache.segment_sectors
                };
                let fits = self.stalled.is_empty()
                    && (self.is_clean()
                        || (self.dirty.len() <= streams as usize
                            && self.dirty.before(request.start.0).take(1).any(appends)));
                Some(fits)
            }
            WriteCache::Full { size, .. } if request.count.0 > size => None,
            WriteCache::Full { size, runs, .. } => {
                let flying: u64 = self.flying.iter().map(|dirty| dirty.count).sum();
                let room = self.dirty.sectors() + flying + request.count.0 <= size
                    && self.dirty.len() + self.flying.len() < runs as usize;
                Some(room && self.stalled.is_empty())
            }
        }
    }

    /// How long the dirty stream is that ends with `last`.
    pub(super) fn run_length(&self, last: &Dirty) -> u64 {
        let mut length = last.count;
        for dirty in self.dirty.before(last.start) {
            if dirty.end() != last.end() - length {
                break;
            }
            length += dirty.count;
        }
        length
    }

    pub(super) fn accept_write(&mut self, pending: &Pending, now: Nanos) {
        let request = &pending.request;
        let began = now.max(self.electronics_free);
        let o = &self.spec.overheads;
        let ready = began + self.overhead(o.write_hit) + from_ns(o.data_preparation_ns);
        let transfer = from_ns(self.spec.bus.write_sector_ns) * request.count.0;
        let at = ready.max(self.bus_free) + transfer + from_ns(o.write_completion_ns);
        self.electronics_free = at;
        self.bus_free = at;
        self.last_was_write = true;
        self.run_read_ahead(now);
        self.cache.written(request.start.0, request.end());
        let (start, count) = (request.start.0, request.count.0);
        if self.work.is_none() && !self.has_work() {
            self.free_since = self.free_since.max(at);
        }
        self.dirty.insert(Dirty { start, count, oldest: pending.sequence, writer: request.id });
        self.complete(pending, began, at, true);
    }
}
