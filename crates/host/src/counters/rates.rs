//! From two samples to rates, by the names of the catalogue of counters.

use super::{Counters, CpuTicks, DeviceCounters, device::Requests};
use counters::{DeviceGrowth, DeviceRates, RequestGrowth};
use serde::{Deserialize, Serialize};

/// What happened between two samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Between them, s.
    pub span_s: f64,
    /// The device, when both samples have it.
    pub device: Option<DeviceRates>,
    /// Each device by its name, where there are several.
    #[serde(default)]
    pub devices: Vec<(String, DeviceRates)>,
    /// The processors.
    pub cpu: CpuShares,
    /// CPU time of our own, in processors: 1.0 is one of them all the time.
    pub own_cpus: f64,
    /// Growth of the page cache, bytes.
    pub cached_growth: f64,
    /// Page cache at the end, bytes.
    pub cached: f64,
    /// Dirty memory at the end, bytes.
    pub dirty: f64,
    /// Memory under write-back at the end, bytes.
    pub writeback: f64,
    /// Read from block devices by all, bytes/s.
    pub paged_in_s: f64,
    /// Written to block devices by all, bytes/s.
    pub paged_out_s: f64,
    /// Share of the time with a task waiting for a processor, I/O, memory, in percent; `None`
    /// without pressure information.
    pub pressure: Option<[f64; 3]>,
    /// Share of the time for which our control group was held back, in percent.
    pub throttled: Option<f64>,
}

/// Shares of all processors' time, in percent; the kernel with its interrupts in `system`, as in
/// iostat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as iostat(1) names and explains them")]
pub struct CpuShares {
    pub user: f64,
    pub nice: f64,
    pub system: f64,
    pub iowait: f64,
    pub steal: f64,
    pub idle: f64,
}

/// A quotient, and zero of nothing.
fn per(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

/// What a counter of 32 bits counts before it begins again.
const WRAP: u64 = 1 << 32;

/// Growth of a counter. The kernel shows milliseconds in 32 bits
/// (Documentation/admin-guide/iostats.rst), and 32-bit kernels everything: one that is lower than before, and
/// was within 32 bits, has begun again.
fn grown(before: u64, after: u64) -> f64 {
    let growth = match after.checked_sub(before) {
        Some(growth) => growth,
        None if before < WRAP => after + WRAP - before,
        None => after,
    };
    growth as f64
}

/// Growth of what the kernel may also count back, by a little: time of waiting for I/O (proc(5), iowait), and of
/// processors that were taken away.
fn ticked(before: u64, after: u64) -> f64 {
    after.saturating_sub(before) as f64
}

impl Rates {
    /// What happened from `before` to `after`.
    pub fn between(before: &Counters, after: &Counters) -> Rates {
        let span_s = grown(before.at.0, after.at.0) / 1e9;
        let own = grown(before.own_user.0, after.own_user.0)
            + grown(before.own_system.0, after.own_system.0);
        let of_each = after.devices.iter().filter_map(|(name, now)| {
            let (_, then) = before.devices.iter().find(|(its_name, _)| its_name == name)?;
            Some((name, growth(then, now, span_s)))
        });
        let of_each: Vec<_> = of_each.collect();
        let device = match (&before.device, &after.device) {
            // Each by itself: the sum of two counters does not show that one of them has begun again.
            _ if !of_each.is_empty() => together(of_each.iter().map(|(_, growth)| growth)),
            (Some(before), Some(after)) => Some(growth(before, after, span_s)),
            _ => None,
        };
        let share = |before: u64, after: u64| 100.0 * per(grown(before, after) / 1e9, span_s);
        let pressure = match (&before.pressure, &after.pressure) {
            (Some(before), Some(after)) => Some([
                share(before.cpu_some.0, after.cpu_some.0),
                share(before.io_some.0, after.io_some.0),
                share(before.memory_some.0, after.memory_some.0),
            ]),
            _ => None,
        };
        let throttled = before.throttled.zip(after.throttled);
        Rates {
            span_s,
            device: device.map(|growth| growth.rates()),
            devices: of_each.iter().map(|(name, it)| ((*name).clone(), it.rates())).collect(),
            cpu: CpuShares::between(&before.cpu, &after.cpu),
            own_cpus: per(own / 1e9, span_s),
            cached_growth: after.memory.cached.0 as f64 - before.memory.cached.0 as f64,
            cached: after.memory.cached.0 as f64,
            dirty: after.memory.dirty.0 as f64,
            writeback: after.memory.writeback.0 as f64,
            paged_in_s: per(grown(before.paged_in.0, after.paged_in.0), span_s),
            paged_out_s: per(grown(before.paged_out.0, after.paged_out.0), span_s),
            pressure,
            throttled: throttled.map(|(before, after)| share(before.0, after.0)),
        }
    }

    /// All figures by the names that run files use.
    pub fn named(&self) -> Vec<(String, f64)> {
        let mut named: Vec<(String, f64)> =
            self.of_host().map(|(id, it)| (id.to_owned(), it)).collect();
        for (name, device) in &self.devices {
            let own = |(id, it): (&str, f64)| (counters::of_device(id, name), it);
            named.extend(device.named().into_iter().map(own));
        }
        named
    }

    fn of_host(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let mut named = Vec::new();
        if let Some(device) = &self.device {
            named.extend(device.named());
        }
        let CpuShares { user, nice, system, iowait, steal, idle } = self.cpu;
        named.extend([
            (counters::CPU_USER.id, user),
            (counters::CPU_NICE.id, nice),
            (counters::CPU_SYSTEM.id, system),
            (counters::CPU_IOWAIT.id, iowait),
            (counters::CPU_STEAL.id, steal),
            (counters::CPU_IDLE.id, idle),
            (counters::PROCESS_CPUS.id, self.own_cpus),
            (counters::MEMORY_CACHED.id, self.cached),
            (counters::MEMORY_CACHED_GROWTH.id, self.cached_growth),
            (counters::MEMORY_DIRTY.id, self.dirty),
            (counters::MEMORY_WRITEBACK.id, self.writeback),
            (counters::VM_PAGED_IN.id, self.paged_in_s),
            (counters::VM_PAGED_OUT.id, self.paged_out_s),
        ]);
        if let Some([cpu, io, memory]) = self.pressure {
            named.extend([
                (counters::PRESSURE_CPU.id, cpu),
                (counters::PRESSURE_IO.id, io),
                (counters::PRESSURE_MEMORY.id, memory),
            ]);
        }
        named.extend(self.throttled.map(|share| (counters::CGROUP_THROTTLED.id, share)));
        named.into_iter()
    }
}

/// What a device did in `span_s` seconds. Where all that it had counted is less than before, another device has
/// taken its place, and counts from zero.
fn growth(before: &DeviceCounters, after: &DeviceCounters, span_s: f64) -> DeviceGrowth {
    let counted = |it: &DeviceCounters| {
        [it.reads.completed, it.writes.completed, it.reads.sectors.0, it.writes.sectors.0]
    };
    let pairs = counted(before).into_iter().zip(counted(after));
    let mut counting = pairs.filter(|(before, _)| *before > 0).peekable();
    let is_another = counting.peek().is_some() && counting.all(|(before, after)| after < before);
    let nothing = DeviceCounters::default();
    let before = if is_another { &nothing } else { before };
    let of = |before: &Requests, after: &Requests| RequestGrowth {
        completed: grown(before.completed, after.completed),
        merged: grown(before.merged, after.merged),
        sectors: grown(before.sectors.0, after.sectors.0),
        time_ms: grown(before.time_ms, after.time_ms),
    };
    DeviceGrowth {
        span_s,
        reads: of(&before.reads, &after.reads),
        writes: of(&before.writes, &after.writes),
        discards: of(&before.discards, &after.discards),
        flushes: grown(before.flushes, after.flushes),
        flush_ms: grown(before.flush_ms, after.flush_ms),
        busy_ms: grown(before.busy_ms, after.busy_ms),
        queue_ms: grown(before.queue_ms, after.queue_ms),
    }
}

/// Several devices as one: what they did adds up; they were busy as long as one of them on average.
fn together<'a>(all: impl ExactSizeIterator<Item = &'a DeviceGrowth>) -> Option<DeviceGrowth> {
    let count = all.len() as f64;
    let add = |sum: RequestGrowth, more: RequestGrowth| RequestGrowth {
        completed: sum.completed + more.completed,
        merged: sum.merged + more.merged,
        sectors: sum.sectors + more.sectors,
        time_ms: sum.time_ms + more.time_ms,
    };
    let sum = all.copied().reduce(|sum, more| DeviceGrowth {
        span_s: sum.span_s,
        reads: add(sum.reads, more.reads),
        writes: add(sum.writes, more.writes),
        discards: add(sum.discards, more.discards),
        flushes: sum.flushes + more.flushes,
        flush_ms: sum.flush_ms + more.flush_ms,
        busy_ms: sum.busy_ms + more.busy_ms,
        queue_ms: sum.queue_ms + more.queue_ms,
    })?;
    Some(DeviceGrowth { busy_ms: sum.busy_ms / count, ..sum })
}

impl CpuShares {
    /// Where the processors' time went.
    pub fn between(before: &CpuTicks, after: &CpuTicks) -> CpuShares {
        let total = ticked(before.total(), after.total());
        let share = |before: u64, after: u64| 100.0 * per(ticked(before, after), total);
        let system = |ticks: &CpuTicks| ticks.system + ticks.irq + ticks.softirq;
        CpuShares {
            user: share(before.user, after.user),
            nice: share(before.nice, after.nice),
            system: share(system(before), system(after)),
            iowait: share(before.iowait, after.iowait),
            steal: share(before.steal, after.steal),
            idle: share(before.idle, after.idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::{Nanos, Sectors};

    fn sample(at_s: u64, times: u64) -> Counters {
        let requests = |completed, merged, sectors, time_ms| Requests {
            completed: completed * times,
            merged: merged * times,
            sectors: Sectors(sectors * times),
            time_ms: time_ms * times,
        };
        Counters {
            at: Nanos(at_s * 1_000_000_000),
            device: Some(DeviceCounters {
                reads: requests(1000, 10, 8000, 2000),
                writes: requests(500, 20, 8000, 4000),
                discards: requests(0, 0, 0, 0),
                flushes: 100 * times,
                flush_ms: 300 * times,
                in_flight: 1,
                busy_ms: 1500 * times,
                queue_ms: 6300 * times,
            }),
            cpu: CpuTicks {
                user: 50 * times,
                system: 30 * times,
                softirq: 10 * times,
                idle: 100 * times,
                iowait: 10 * times,
                ..CpuTicks::default()
            },
            ..Counters::default()
        }
    }

    #[test]
    fn worked_by_hand() {
        // Two seconds in which 1000 reads of 4 KiB took 2 ms each and 500 writes of 8 KiB 8 ms.
        let rates = Rates::between(&sample(10, 1), &sample(12, 2));
        let device = rates.device.unwrap();
        let expected = [
            (device.r_s, 500.0),
            (device.w_s, 250.0),
            (device.rrqm_s, 5.0),
            (device.wrqm_s, 10.0),
            (device.r_mb_s, 1.953125),
            (device.r_await_ms, 2.0),
            (device.w_await_ms, 8.0),
            (device.await_ms, 4.0),
            (device.areq_sz, 8000.0 / 1500.0),
            (device.aqu_sz, 3.15),
            (device.svctm_ms, 1.0),
            (device.util_percent, 75.0),
            (device.f_s, 50.0),
            (device.f_await_ms, 3.0),
            (rates.cpu.user, 25.0),
            (rates.cpu.system, 20.0),
            (rates.cpu.iowait, 5.0),
            (rates.cpu.idle, 50.0),
        ];
        for (index, (is, should)) in expected.into_iter().enumerate() {
            assert!((is - should).abs() < 1e-9, "figure {index}: {is} and not {should}");
        }
    }

    #[test]
    fn a_counter_of_32_bits_that_begins_again_has_grown() {
        let at = |ahead: u64| {
            let mut sample = sample(10 + ahead, 1);
            let device = sample.device.as_mut().unwrap();
            // 49.7 days of milliseconds, and what two seconds add to them.
            device.reads.time_ms = (WRAP - 500 + 1000 * ahead) % WRAP;
            device.queue_ms = (WRAP - 100 + 3000 * ahead) % WRAP;
            device.busy_ms = (WRAP - 1 + 750 * ahead) % WRAP;
            device.reads.completed += 500 * ahead;
            sample
        };
        let (before, after) = (at(0), at(2));
        let device = Rates::between(&before, &after).device.unwrap();
        assert_eq!((device.r_await_ms, device.aqu_sz, device.util_percent), (2.0, 3.0, 75.0));
        // Of two devices, of which one has begun again.
        let two = |first: &Counters, other: &Counters| Counters {
            devices: vec![("a".into(), first.device.unwrap()), ("b".into(), other.device.unwrap())],
            ..first.clone()
        };
        let both = Rates::between(&two(&before, &sample(10, 1)), &two(&after, &sample(12, 1)));
        let device = both.device.unwrap();
        assert_eq!((device.r_await_ms, device.aqu_sz, device.util_percent), (2.0, 3.0, 37.5));
    }

    #[test]
    fn another_device_in_its_place_counts_from_zero() {
        let device = Rates::between(&sample(10, 5), &sample(12, 1)).device.unwrap();
        assert_eq!((device.r_s, device.r_await_ms, device.util_percent), (500.0, 2.0, 75.0));
    }

    #[test]
    fn waiting_for_io_that_is_counted_back_is_none() {
        let (before, mut after) = (sample(10, 5), sample(12, 6));
        after.cpu.iowait = before.cpu.iowait - 1;
        let shares = Rates::between(&before, &after).cpu;
        assert_eq!(shares.iowait, 0.0);
        assert!(shares.user > 20.0 && shares.idle <= 100.0, "{shares:?}");
    }

    #[test]
    fn nothing_done_is_zero_and_not_infinite() {
        let rates = Rates::between(&sample(10, 1), &sample(11, 1));
        assert!(rates.named().iter().all(|(_, value)| value.is_finite()));
        assert_eq!(rates.device.unwrap().await_ms, 0.0);
        let still = Rates::between(&sample(10, 1), &sample(10, 1));
        assert!(still.named().iter().all(|(_, value)| value.is_finite()));
    }
}
