//! From two samples to what iostat -x and sar print.
//!
//! Formulas are those of iostat(1)'s report, over the counters of Documentation/admin-guide/iostats:
//! with Δ the growth between two samples and t the time between them,
//! r/s = Δreads/t, rMB/s = Δsectors/2048/t (MB of 2²⁰ bytes, as iostat -m), avgrq-sz =
//! Δsectors/Δrequests, avgqu-sz = Δqueue_ms/t, await = Δtime_ms/Δrequests, %util = Δbusy_ms/t, and
//! svctm = Δbusy_ms/Δrequests, which iostat no longer prints because it means nothing on a device
//! that serves several requests at once. A flush without data is counted twice by the kernel (seen on
//! 6.18): in f/s, and as a write of no bytes in w/s, which lowers avgrq-sz and w_await as in iostat.

use super::{Counters, CpuTicks, DeviceCounters, device::Requests};
use serde::{Deserialize, Serialize};

/// What happened between two samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Between them, s.
    pub span_s: f64,
    /// The device, when both samples have it.
    pub device: Option<DeviceRates>,
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

/// The columns of `iostat -x -m`, in its order as far as it has them. Times in ms, sizes of
/// `avgrq_sz` in 512-byte sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as iostat(1) names and explains them")]
pub struct DeviceRates {
    pub rrqm_s: f64,
    pub wrqm_s: f64,
    pub r_s: f64,
    pub w_s: f64,
    pub r_mb_s: f64,
    pub w_mb_s: f64,
    pub avgrq_sz: f64,
    pub avgqu_sz: f64,
    pub await_ms: f64,
    pub r_await_ms: f64,
    pub w_await_ms: f64,
    /// Derived; meaningless on a device that serves several requests at once.
    pub svctm_ms: f64,
    /// At least one request in flight; no saturation on a device that serves several at once.
    pub util_percent: f64,
    pub d_s: f64,
    pub d_mb_s: f64,
    pub d_await_ms: f64,
    /// Flushes per second.
    pub f_s: f64,
    pub f_await_ms: f64,
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

/// Growth of a counter; one that was reset (the device came anew) counts from zero.
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
            (Some(before), Some(after)) => Some(DeviceRates::between(before, after, span_s)),
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
            device,
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
    pub fn named(&self) -> Vec<(&'static str, f64)> {
        let mut named = Vec::new();
        if let Some(device) = &self.device {
            named.extend(device.named());
        }
        let CpuShares { user, nice, system, iowait, steal, idle } = self.cpu;
        named.extend([
            ("cpu.%user", user),
            ("cpu.%nice", nice),
            ("cpu.%system", system),
            ("cpu.%iowait", iowait),
            ("cpu.%steal", steal),
            ("cpu.%idle", idle),
            ("process.cpus", self.own_cpus),
            ("memory.cached", self.cached),
            ("memory.cached_growth", self.cached_growth),
            ("memory.dirty", self.dirty),
            ("memory.writeback", self.writeback),
            ("vm.paged_in/s", self.paged_in_s),
            ("vm.paged_out/s", self.paged_out_s),
        ]);
        if let Some([cpu, io, memory]) = self.pressure {
            named.extend([("pressure.cpu", cpu), ("pressure.io", io), ("pressure.memory", memory)]);
        }
        named.extend(self.throttled.map(|share| ("cgroup.%throttled", share)));
        named
    }
}

impl DeviceRates {
    /// What the device did in `span_s` seconds.
    pub fn between(before: &DeviceCounters, after: &DeviceCounters, span_s: f64) -> DeviceRates {
        let kind = |before: &Requests, after: &Requests| {
            (
                grown(before.completed, after.completed),
                grown(before.merged, after.merged),
                grown(before.sectors.0, after.sectors.0),
                grown(before.time_ms, after.time_ms),
            )
        };
        let (r, r_merged, r_sectors, r_ms) = kind(&before.reads, &after.reads);
        let (w, w_merged, w_sectors, w_ms) = kind(&before.writes, &after.writes);
        let (d, _, d_sectors, d_ms) = kind(&before.discards, &after.discards);
        let flushes = grown(before.flushes, after.flushes);
        let busy_ms = grown(before.busy_ms, after.busy_ms);
        let all = r + w + d;
        DeviceRates {
            rrqm_s: per(r_merged, span_s),
            wrqm_s: per(w_merged, span_s),
            r_s: per(r, span_s),
            w_s: per(w, span_s),
            r_mb_s: per(r_sectors / 2048.0, span_s),
            w_mb_s: per(w_sectors / 2048.0, span_s),
            avgrq_sz: per(r_sectors + w_sectors + d_sectors, all),
            avgqu_sz: per(grown(before.queue_ms, after.queue_ms) / 1e3, span_s),
            await_ms: per(r_ms + w_ms + d_ms, all),
            r_await_ms: per(r_ms, r),
            w_await_ms: per(w_ms, w),
            svctm_ms: per(busy_ms, all),
            util_percent: 100.0 * per(busy_ms / 1e3, span_s),
            d_s: per(d, span_s),
            d_mb_s: per(d_sectors / 2048.0, span_s),
            d_await_ms: per(d_ms, d),
            f_s: per(flushes, span_s),
            f_await_ms: per(grown(before.flush_ms, after.flush_ms), flushes),
        }
    }

    /// By iostat's names.
    pub fn named(&self) -> [(&'static str, f64); 18] {
        [
            ("device.rrqm/s", self.rrqm_s),
            ("device.wrqm/s", self.wrqm_s),
            ("device.r/s", self.r_s),
            ("device.w/s", self.w_s),
            ("device.rMB/s", self.r_mb_s),
            ("device.wMB/s", self.w_mb_s),
            ("device.avgrq-sz", self.avgrq_sz),
            ("device.avgqu-sz", self.avgqu_sz),
            ("device.await", self.await_ms),
            ("device.r_await", self.r_await_ms),
            ("device.w_await", self.w_await_ms),
            ("device.svctm", self.svctm_ms),
            ("device.%util", self.util_percent),
            ("device.d/s", self.d_s),
            ("device.dMB/s", self.d_mb_s),
            ("device.d_await", self.d_await_ms),
            ("device.f/s", self.f_s),
            ("device.f_await", self.f_await_ms),
        ]
    }
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
            (device.avgrq_sz, 16000.0 / 1500.0),
            (device.avgqu_sz, 3.15),
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
