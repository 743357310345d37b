//! The device's counters second by second, under iostat's names, and what only a simulation sees.

use crate::machine::Gauges;
use blocklayer::{BioDone, Counters, LayerView};
use counters::{DEVICE_D, DEVICE_D_AWAIT, DEVICE_D_MB, DeviceGrowth, RequestGrowth};
use device::Op;
use record::CounterSample;
use std::collections::BTreeMap;
use units::Nanos;

/// KindSums of one kind that were done.
#[derive(Clone, Copy, Debug, Default)]
struct KindSums {
    completed: u64,
    sectors: u64,
    /// Sum of the times from their making to their end.
    time: u64,
}

impl KindSums {
    fn since(self, before: KindSums) -> KindSums {
        KindSums {
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
    reads: KindSums,
    writes: KindSums,
    flushes: KindSums,
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
        (counters::CACHE_HIT_RATIO.id, per(hits as f64, (hits + misses) as f64)),
        (counters::CACHE_USED.id, mib(now.cached)),
        (counters::CACHE_DIRTY.id, mib(now.dirty)),
        (counters::CACHE_WRITEBACK.id, mib(now.under_write)),
        (counters::WRITEBACK_FLUSHER.id, rate(b.written[0], n.written[0])),
        (counters::WRITEBACK_WRITER.id, rate(b.written[1], n.written[1])),
        (counters::WRITEBACK_FSYNC.id, rate(b.written[2], n.written[2])),
        (counters::WRITEBACK_JOURNAL.id, rate(b.written[3], n.written[3])),
        (counters::WRITEBACK_HELD_OFF.id, rate(b.held_off, n.held_off)),
        (
            counters::WRITEBACK_THROTTLED.id,
            per((n.throttled - b.throttled).as_millis_f64(), span_s),
        ),
        (counters::CACHE_READ_BEFORE_WRITE.id, rate(b.read_before_write, n.read_before_write)),
        (counters::JOURNAL_COMMITS.id, rate(b.commits, n.commits)),
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

/// What happened between two readings. A request's time counts from its creation, as the kernel's does.
fn rates(before: &Sums, now: &Sums) -> BTreeMap<String, f64> {
    let span_ns = (now.at - before.at).0 as f64;
    let span_s = span_ns / 1e9;
    let (l, m) = (&before.layer, &now.layer);
    let r = now.reads.since(before.reads);
    let w = now.writes.since(before.writes);
    let f = now.flushes.since(before.flushes);
    let all = (r.completed + w.completed) as f64;
    let ms = |ns: u64, count: f64| per(ns as f64 / 1e6, count);
    let rate = |before: u64, now: u64| per((now - before) as f64, span_s);
    let mean = |before: u128, now: u128| per((now - before) as f64, span_ns);
    let percent = |before: Nanos, now: Nanos| 100.0 * per((now - before).0 as f64, span_ns);
    let seeks = (m.seeks - l.seeks) as f64;
    let operations = (now.operations - before.operations) as f64;
    let in_queue = mean(l.queued_time, m.queued_time);
    let at_device = mean(l.depth_time, m.depth_time);
    let growth = |requests: KindSums, merges: u64| RequestGrowth {
        completed: requests.completed as f64,
        merged: merges as f64,
        sectors: requests.sectors as f64,
        time_ms: requests.time as f64 / 1e6,
    };
    let device = DeviceGrowth {
        span_s,
        reads: growth(r, m.merges[0] - l.merges[0]),
        writes: growth(w, m.merges[1] - l.merges[1]),
        discards: RequestGrowth::default(),
        flushes: f.completed as f64,
        flush_ms: f.time as f64 / 1e6,
        busy_ms: (now.busy - before.busy) as f64 / 1e6,
        queue_ms: (in_queue + at_device) * span_s * 1e3,
    };
    let discards = [DEVICE_D.id, DEVICE_D_MB.id, DEVICE_D_AWAIT.id];
    // No simulated client discards.
    let of_device = device.rates().named().into_iter().filter(|(id, _)| !discards.contains(id));
    let of_model = [
        (counters::SIM_TIME_IN_QUEUE.id, ms(now.waited - before.waited, all)),
        (counters::SIM_TIME_AT_DEVICE.id, ms(now.served - before.served, all)),
        (counters::SIM_TIME_ASLEEP.id, ms(now.asleep - before.asleep, operations)),
        (counters::SIM_QUEUED.id, in_queue),
        (counters::SIM_DEPTH.id, at_device),
        (counters::SIM_SEEK.id, per((m.seek_sectors - l.seek_sectors) as f64, seeks)),
        (counters::SIM_SEQUENTIAL.id, 100.0 * per((m.sequential - l.sequential) as f64, seeks)),
        (counters::SIM_BUSY_DRIVES.id, mean(before.busy_units, now.busy_units)),
        (counters::SIM_IDLE_WHILE_WAITING.id, percent(l.idle_waiting, m.idle_waiting)),
        (counters::SIM_ROOM_WHILE_WAITING.id, percent(l.room_waiting, m.room_waiting)),
        (counters::SIM_SLEEPS.id, rate(l.sleeps, m.sleeps)),
    ];
    of_device.chain(of_model).map(|(name, value)| (name.to_owned(), value)).collect()
}
