//! The device's counters second by second, under iostat's names, and what only a simulation sees.

use crate::machine::Gauges;
use blocklayer::{BioDone, Counters, LayerView};
use device::Op;
use record::CounterSample;
use std::collections::BTreeMap;
use units::Nanos;

/// Requests of one kind that were done.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    completed: u64,
    sectors: u64,
    /// Sum of the times from their making to their end.
    time: u64,
}

impl Requests {
    fn since(self, before: Requests) -> Requests {
        Requests {
            completed: self.completed - before.completed,
            sectors: self.sectors - before.sectors,
            time: self.time - before.time,
        }
    }
}

/// Sums since the beginning. Times in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    at: Nanos,
    reads: Requests,
    writes: Requests,
    flushes: Requests,
    waited: u64,
    served: u64,
    busy: u64,
    busy_units: u128,
    asleep: u64,
    operations: u64,
    layer: Counters,
}

/// The machine's counters of a second, where there is a page cache in the way. Pages written are
/// counted by who wrote them.
fn machine_rates(before: &Gauges, now: &Gauges, span_s: f64, values: &mut BTreeMap<String, f64>) {
    let (b, n) = (&before.counts, &now.counts);
    let rate = |before: u64, now: u64| per((now - before) as f64, span_s);
    let mib = |pages: u64| pages as f64 / 256.0;
    let (hits, misses) = (now.hits - before.hits, now.misses - before.misses);
    let named = [
        ("cache.hit_ratio", per(hits as f64, (hits + misses) as f64)),
        ("cache.used_mib", mib(now.cached)),
        ("cache.dirty_mib", mib(now.dirty)),
        ("cache.writeback_mib", mib(now.under_write)),
        ("writeback.flusher_pages/s", rate(b.written[0], n.written[0])),
        ("writeback.writer_pages/s", rate(b.written[1], n.written[1])),
        ("writeback.fsync_pages/s", rate(b.written[2], n.written[2])),
        ("writeback.journal_pages/s", rate(b.written[3], n.written[3])),
        ("writeback.held_off/s", rate(b.held_off, n.held_off)),
        ("writeback.throttled_ms/s", per((n.throttled - b.throttled).as_millis_f64(), span_s)),
        ("cache.read_before_write/s", rate(b.read_before_write, n.read_before_write)),
        ("journal.commits/s", rate(b.commits, n.commits)),
    ];
    values.extend(named.map(|(name, value)| (name.to_owned(), value)));
    for (at, (name, value, sum)) in now.database.iter().enumerate() {
        let before = before.database.get(at).map_or(0.0, |(_, value, _)| *value);
        let value = if *sum { per(value - before, span_s) } else { *value };
        values.insert((*name).to_owned(), value);
    }
}

/// Follows one block layer.
pub(crate) struct Sampling {
    now: Sums,
    before: Sums,
    gauges: Gauges,
    samples: Vec<CounterSample>,
}

impl Sampling {
    pub fn new() -> Self {
        Sampling {
            now: Sums::default(),
            before: Sums::default(),
            gauges: Gauges::default(),
            samples: Vec::new(),
        }
    }

    /// Accounts for the time until `at`, in which the layer looked like `view` and had bios or not.
    #[inline]
    pub fn pass(&mut self, at: Nanos, view: &LayerView, occupied: bool) {
        let span = at.saturating_sub(self.now.at).0;
        if occupied {
            self.now.busy += span;
        }
        self.now.busy_units += u128::from(span) * u128::from(view.device.busy);
        self.now.at = at;
    }

    /// A bio is done. The first of each request stands for the request.
    #[inline]
    pub fn bio(&mut self, bio: &BioDone) {
        if bio.merged {
            return;
        }
        let kind = match bio.op {
            Op::Read => &mut self.now.reads,
            Op::Write => &mut self.now.writes,
            Op::Flush => &mut self.now.flushes,
            Op::Discard => return,
        };
        kind.completed += 1;
        kind.time += bio.at.saturating_sub(bio.queued).0;
        if bio.op != Op::Flush {
            kind.sectors += bio.request_count.0;
            self.now.waited += bio.dispatched.saturating_sub(bio.queued).0;
            self.now.served += bio.at.saturating_sub(bio.dispatched).0;
        }
    }

    /// A client slept so long for a free request.
    pub fn slept(&mut self, span: Nanos) {
        self.now.asleep += span.0;
    }

    /// An operation is done.
    #[inline]
    pub fn operation(&mut self) {
        self.now.operations += 1;
    }

    /// Closes a second; `axis` is its end in seconds from the end of warm-up.
    pub fn sample(&mut self, axis: f64, layer: &Counters, gauges: Gauges) {
        self.now.layer = *layer;
        let mut values = rates(&self.before, &self.now);
        if gauges.calls {
            let span_s = (self.now.at - self.before.at).as_secs_f64();
            machine_rates(&self.gauges, &gauges, span_s, &mut values);
        }
        self.gauges = gauges;
        self.samples.push(CounterSample { at: axis, values });
        self.before = self.now;
    }

    pub fn samples(self) -> Vec<CounterSample> {
        self.samples
    }
}

/// A quotient, and zero of nothing.
fn per(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

/// What happened between two readings. iostat's formulas: MB of 2²⁰ bytes, avgrq-sz in sectors,
/// times in ms; await counts from the making of the request, as the kernel's does.
fn rates(before: &Sums, now: &Sums) -> BTreeMap<String, f64> {
    let span_ns = (now.at - before.at).0 as f64;
    let span_s = span_ns / 1e9;
    let (l, m) = (&before.layer, &now.layer);
    let r = now.reads.since(before.reads);
    let w = now.writes.since(before.writes);
    let f = now.flushes.since(before.flushes);
    let all = (r.completed + w.completed) as f64;
    let ms = |ns: u64, count: f64| per(ns as f64 / 1e6, count);
    let busy = (now.busy - before.busy) as f64;
    let rate = |before: u64, now: u64| per((now - before) as f64, span_s);
    let mean = |before: u128, now: u128| per((now - before) as f64, span_ns);
    let percent = |before: Nanos, now: Nanos| 100.0 * per((now - before).0 as f64, span_ns);
    let seeks = (m.seeks - l.seeks) as f64;
    let operations = (now.operations - before.operations) as f64;
    let in_queue = mean(l.queued_time, m.queued_time);
    let at_device = mean(l.depth_time, m.depth_time);
    let named = [
        ("device.rrqm/s", rate(l.merges[0], m.merges[0])),
        ("device.wrqm/s", rate(l.merges[1], m.merges[1])),
        ("device.r/s", per(r.completed as f64, span_s)),
        ("device.w/s", per(w.completed as f64, span_s)),
        ("device.rMB/s", per(r.sectors as f64 / 2048.0, span_s)),
        ("device.wMB/s", per(w.sectors as f64 / 2048.0, span_s)),
        ("device.avgrq-sz", per((r.sectors + w.sectors) as f64, all)),
        ("device.avgqu-sz", in_queue + at_device),
        ("device.await", ms(r.time + w.time, all)),
        ("device.r_await", ms(r.time, r.completed as f64)),
        ("device.w_await", ms(w.time, w.completed as f64)),
        ("device.svctm", per(busy / 1e6, all)),
        ("device.%util", 100.0 * per(busy, span_ns)),
        ("device.f/s", per(f.completed as f64, span_s)),
        ("device.f_await", ms(f.time, f.completed as f64)),
        ("sim.time_in_queue_ms", ms(now.waited - before.waited, all)),
        ("sim.time_at_device_ms", ms(now.served - before.served, all)),
        ("sim.time_asleep_ms", ms(now.asleep - before.asleep, operations)),
        ("sim.queued", in_queue),
        ("sim.depth", at_device),
        ("sim.seek_sectors", per((m.seek_sectors - l.seek_sectors) as f64, seeks)),
        ("sim.%sequential", 100.0 * per((m.sequential - l.sequential) as f64, seeks)),
        ("sim.busy_drives", mean(before.busy_units, now.busy_units)),
        ("sim.%idle_while_waiting", percent(l.idle_waiting, m.idle_waiting)),
        ("sim.%room_while_waiting", percent(l.room_waiting, m.room_waiting)),
        ("sim.sleeps/s", rate(l.sleeps, m.sleeps)),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
