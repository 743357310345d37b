//! What the arm does: reads, writes and writing back, from the decision to the last sector.

use super::cache::Lookup;
use super::mechanics::{Arm, from_ns};
use super::queue::Pending;
use super::{Dirty, Disk, Request, Work, WriteCache};
use units::Nanos;

impl Disk {
    pub(super) fn read_media(&mut self, pending: Pending, at: Nanos) {
        let (start, end) = (pending.request.start.0, pending.request.end());
        let count = pending.request.count.0;
        let found = match self.dirty.touches(start, count) {
            true => Lookup::Miss,
            false => self.cache.lookup(&self.mechanics, start, end),
        };
        let o = &self.spec.overheads;
        let sector = from_ns(self.spec.bus.read_sector_ns);
        let after_data = from_ns(o.read_completion_ns);
        match found {
            Lookup::Hit => {
                // It came into the buffer since it was queued.
                self.serve_hit(&pending, at);
                self.free_since = at;
            }
            Lookup::Coming { at: read } => {
                let ready = at + self.overhead(o.read_hit) + from_ns(o.data_preparation_ns);
                let data = (ready + sector * count).max(read + sector).max(self.bus_free);
                self.bus_free = data;
                self.cache.served(&self.mechanics, (start, end), at, None);
                self.last_was_write = false;
                self.complete(&pending, at, data + after_data, true);
                // The arm reads on; the next decision comes when this one's data has passed.
                self.free_since = read.max(at);
            }
            Lookup::Partial { .. } | Lookup::Miss => {
                let from = match found {
                    Lookup::Partial { missing } => missing,
                    _ => start,
                };
                let began = at + self.overhead(o.read_miss);
                let (media_end, data) = self.read_sweep(began, from, &pending.request);
                let data = data.max(self.bus_free);
                self.bus_free = data;
                self.last_was_write = false;
                self.complete(&pending, at, data + after_data, false);
                self.work = Some((Work::Host(pending), media_end));
            }
        }
    }

    /// Reads `from..` the request's end. Returns when the medium is done and when the last sector
    /// has crossed the bus.
    pub(super) fn read_sweep(
        &mut self,
        began: Nanos,
        from: u64,
        request: &Request,
    ) -> (Nanos, Nanos) {
        let (start, end, count) = (request.start.0, request.end(), request.count.0);
        let sector = from_ns(self.spec.bus.read_sector_ns);
        let o = &self.spec.overheads;
        let reselect = match self.spec.bus.disconnects {
            true => from_ns(o.first_reselect_ns),
            false => Nanos::ZERO,
        };
        let preparation = from_ns(o.data_preparation_ns);
        // The bus is taken when this block has been read: the share counts in whole sectors.
        let share = (self.spec.bus.read_watermark * count as f64).floor() as u64;
        let mark = start + share.clamp(1, count) - 1;
        let mut bus_from = began;
        let mut data = Nanos::ZERO;
        let turn = Nanos(self.mechanics.geometry.turn_ns());
        let mut kept_from = start;
        let mut first = true;
        let (media_end, arm) =
            self.mechanics.sweep(self.arm, began, (from, end - from), false, |pass| {
                let per_track = pass.extent.sectors_per_track;
                let last = pass.lbn + pass.extent.blocks - 1;
                let first_read = pass.end.min(pass.start + turn / per_track);
                // After a sector is read, it and those after it still have to cross the bus.
                data = data.max(first_read + sector * (end - pass.lbn));
                data = data.max(pass.end + sector * (end - last));
                if (pass.lbn..=last).contains(&mark) {
                    let read = pass.start + turn * (mark + 1 - pass.lbn) / per_track;
                    bus_from = read.min(pass.end);
                }
                if first && from == start && self.mechanics.rotates() {
                    let passed = (pass.start - pass.arrived).0 * per_track / turn.0;
                    kept_from = start - passed.min(u64::from(pass.extent.place.sector)).min(start);
                }
                first = false;
            });
        self.arm = arm;
        if !self.spec.cache.free_blocks {
            kept_from = start;
        }
        if self.spec.cache.segments > 0 {
            self.cache.filled(&self.mechanics, (kept_from, start, end), arm, media_end);
        }
        (media_end, data.max(bus_from + reselect + preparation + sector * count))
    }

    pub(super) fn write_media(&mut self, pending: Pending, at: Nanos) {
        let (start, count) = (pending.request.start.0, pending.request.count.0);
        let o = &self.spec.overheads;
        let sector = from_ns(self.spec.bus.write_sector_ns);
        let reselect = from_ns(o.first_reselect_ns);
        let (seek_from, data_from, let_go) = match &o.extra_disconnect {
            None => {
                let began = at + self.overhead(o.write_miss);
                let data_from = began + from_ns(o.data_preparation_ns);
                let seek_from = match self.spec.bus.write_holds_arm {
                    true => data_from + sector * count,
                    false => began,
                };
                (seek_from, data_from, from_ns(o.write_disconnect_ns))
            }
            Some(extra) => {
                let began = at + from_ns(extra.command_ns);
                let data_from = began
                    + from_ns(extra.disconnect_ns)
                    + from_ns(extra.inter_disconnect_ns)
                    + reselect
                    + from_ns(o.data_preparation_ns);
                let seek_from = began + from_ns(extra.seek_delta_ns);
                (seek_from, data_from, from_ns(extra.second_disconnect_ns))
            }
        };
        let data_from = data_from.max(self.bus_free);
        self.bus_free = data_from + sector * count + let_go;
        self.cache.stop();
        self.cache.written(start, start + count);
        // Only a write that the arm goes straight on with does not wait for the medium.
        let waits = match self.write_ended == Some((start, at)) {
            true => Nanos::ZERO,
            false => from_ns(o.write_start_ns),
        };
        let (end, arm) = self.write_sweep(seek_from, (data_from, waits), start, count);
        self.arm = arm;
        self.last_was_write = true;
        self.write_ended = Some((start + count, end));
        // To say that it is done, the drive takes the bus once more.
        let again = match (self.spec.bus.disconnects, &o.extra_disconnect) {
            (false, _) => Nanos::ZERO,
            (true, None) => reselect,
            (true, Some(_)) => from_ns(o.other_reselect_ns),
        };
        let done = end.max(self.bus_free) + again + from_ns(o.write_completion_ns);
        self.complete(&pending, at, done, false);
        self.work = Some((Work::Host(pending), end));
    }

    /// Writes `count` blocks that begin to cross the bus at `data_from`, to the medium not before
    /// `waits` later. A head that is there before its data waits a turn.
    fn write_sweep(
        &self,
        seek_from: Nanos,
        (data_from, waits): (Nanos, Nanos),
        start: u64,
        count: u64,
    ) -> (Nanos, Arm) {
        let sector = from_ns(self.spec.bus.write_sector_ns);
        let turn = Nanos(self.mechanics.geometry.turn_ns());
        let extent = self.mechanics.geometry.extent(start, count);
        let on_medium = turn / extent.sectors_per_track;
        // Each block must have come before its sector passes: the first and the last decide.
        let first = data_from + sector;
        let last =
            (data_from + sector * extent.blocks).saturating_sub(on_medium * (extent.blocks - 1));
        let place = extent.place;
        let arrives =
            from_ns(self.mechanics.position_ns(self.arm, place.cylinder, place.head, true));
        let data = first.max(last).max(data_from + waits);
        let ready = data.saturating_sub(arrives).max(seek_from);
        self.mechanics.sweep(self.arm, ready, (start, count), true, |_| ())
    }

    /// Writes one run of dirty data back: the one with the shortest positioning among those near
    /// the arm in address order.
    pub(super) fn write_back(&mut self, at: Nanos) {
        const NEAR: usize = 16;
        const RUN: u64 = 2048;
        let here = self.nearest_block();
        let appending = matches!(self.spec.write_cache, WriteCache::Appending { .. });
        let cost = |dirty: &Dirty| {
            let place = self.mechanics.geometry.locate(dirty.start);
            let arrived = at
                + from_ns(self.mechanics.position_ns(self.arm, place.cylinder, place.head, true));
            arrived + self.mechanics.wait(arrived, place.angle_ns)
        };
        let begins_run = |dirty: &&Dirty| {
            self.dirty.before(dirty.start).next().is_none_or(|d| d.end() != dirty.start)
        };
        let ahead = self.dirty.from(here).filter(begins_run).take(NEAR);
        let behind = self.dirty.before(here).filter(begins_run).take(NEAR);
        let oldest = |dirty: &Dirty| if appending { dirty.oldest } else { 0 };
        let best = ahead
            .chain(behind)
            .min_by_key(|dirty| (oldest(dirty), cost(dirty), dirty.start))
            .or_else(|| self.dirty.from(0).next())
            .map(|dirty| dirty.start);
        let Some(start) = best else { return };
        self.dirty.take_run(start, RUN, &mut self.flying);
        let count = self.flying.iter().map(|dirty| dirty.count).sum();
        self.cache.stop();
        let (end, arm) = self.mechanics.sweep(self.arm, at, (start, count), true, |_| ());
        self.arm = arm;
        self.work = Some((Work::WriteBack, end));
    }

    /// A block near the arm, for looking up dirty data in address order.
    pub(super) fn nearest_block(&self) -> u64 {
        let geometry = &self.mechanics.geometry;
        let share = f64::from(self.arm.cylinder) / f64::from(geometry.cylinders());
        (share * geometry.capacity() as f64) as u64
    }
}
