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

/// Growth of a counter; one that was reset (the device was replaced) counts from zero.
fn grown(before: u64, after: u64) -> f64 {
    after.checked_sub(before).unwrap_or(after) as f64
}

impl Rates {
    /// What happened from `before` to `after`.
    pub fn between(before: &Counters, after: &Counters) -> Rates {
        let span_s = grown(before.at.0, after.at.0) / 1e9;
        let own = grown(before.own_user.0, after.own_user.0)
            + grown(before.own_system.0, after.own_system.0);
        let device = match (&before.device, &after.device) {
            (Some(before), Some(after)) => Some(device_rates(before, after, span_s)),
            _ => None,
        };
        let devices = after.devices.iter().filter_map(|(name, now)| {
            let (_, then) = before.devices.iter().find(|(its_name, _)| its_name == name)?;
            Some((name.clone(), device_rates(then, now, span_s)))
        });
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
            device,
            devices: devices.collect(),
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

/// What a device did in `span_s` seconds.
fn device_rates(before: &DeviceCounters, after: &DeviceCounters, span_s: f64) -> DeviceRates {
    let growth = |before: &Requests, after: &Requests| RequestGrowth {
        completed: grown(before.completed, after.completed),
        merged: grown(before.merged, after.merged),
        sectors: grown(before.sectors.0, after.sectors.0),
        time_ms: grown(before.time_ms, after.time_ms),
    };
    let growth = DeviceGrowth {
        span_s,
        reads: growth(&before.reads, &after.reads),
        writes: growth(&before.writes, &after.writes),
        discards: growth(&before.discards, &after.discards),
        flushes: grown(before.flushes, after.flushes),
        flush_ms: grown(before.flush_ms, after.flush_ms),
        busy_ms: grown(before.busy_ms, after.busy_ms),
        queue_ms: grown(before.queue_ms, after.queue_ms),
    };
    growth.rates()
}

impl CpuShares {
    /// Where the processors' time went.
    pub fn between(before: &CpuTicks, after: &CpuTicks) -> CpuShares {
        let total = grown(before.total(), after.total());
        let share = |before: u64, after: u64| 100.0 * per(grown(before, after), total);
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
    fn nothing_done_is_zero_and_not_infinite() {
        let rates = Rates::between(&sample(10, 1), &sample(11, 1));
        assert!(rates.named().iter().all(|(_, value)| value.is_finite()));
        assert_eq!(rates.device.unwrap().await_ms, 0.0);
        let still = Rates::between(&sample(10, 1), &sample(10, 1));
        assert!(still.named().iter().all(|(_, value)| value.is_finite()));
    }
}
