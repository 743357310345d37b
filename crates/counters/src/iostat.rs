//! The formulas of iostat(1), over what the kernel counts (Documentation/admin-guide/iostats.rst).
//!
//! With Δ the growth between two samples and t the time between them: r/s = Δreads/t, rMB/s =
//! Δsectors/2048/t (MB of 2^20 bytes, as `iostat -m`), areq-sz = Δsectors/2/Δrequests (KiB), aqu-sz =
//! Δqueue_ms/1000/t, await = Δtime_ms/Δrequests, %util = Δbusy_ms/10/t, and svctm = Δbusy_ms/Δrequests,
//! which iostat 12 no longer prints because it means nothing on a device that serves several requests
//! at once. The kernel counts a flush without data twice (seen on 6.18): in f/s, and as a write of no
//! bytes in w/s, which lowers areq-sz and w_await as in iostat.

use crate::catalogue::*;
use serde::{Deserialize, Serialize};

/// Growth of a kind of request between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestGrowth {
    /// Requests that completed.
    pub completed: f64,
    /// Requests that were merged into others.
    pub merged: f64,
    /// Sectors of 512 bytes.
    pub sectors: f64,
    /// Sum of the requests' times, ms.
    pub time_ms: f64,
}

/// Growth of a device's counters between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceGrowth {
    /// Between the samples, s.
    pub span_s: f64,
    /// Reads.
    pub reads: RequestGrowth,
    /// Writes.
    pub writes: RequestGrowth,
    /// Discards.
    pub discards: RequestGrowth,
    /// Flushes.
    pub flushes: f64,
    /// Sum of the flushes' times, ms.
    pub flush_ms: f64,
    /// Time with at least one request in flight, ms.
    pub busy_ms: f64,
    /// Requests in flight, integrated over the time: ms times requests.
    pub queue_ms: f64,
}

/// The columns of `iostat -x -m` by the names of sysstat 12, and svctm of older ones. Times in ms, sizes
/// of requests in KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "named as iostat(1) names and explains them")]
pub struct DeviceRates {
    pub rrqm_s: f64,
    pub wrqm_s: f64,
    pub r_s: f64,
    pub w_s: f64,
    pub r_mb_s: f64,
    pub w_mb_s: f64,
    pub areq_sz: f64,
    pub rareq_sz: f64,
    pub wareq_sz: f64,
    pub aqu_sz: f64,
    pub await_ms: f64,
    pub r_await_ms: f64,
    pub w_await_ms: f64,
    pub svctm_ms: f64,
    pub util_percent: f64,
    pub d_s: f64,
    pub d_mb_s: f64,
    pub d_await_ms: f64,
    pub f_s: f64,
    pub f_await_ms: f64,
}

/// A quotient, and zero of nothing.
fn per(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}

impl DeviceGrowth {
    /// As rates.
    pub fn rates(&self) -> DeviceRates {
        let DeviceGrowth { span_s, reads: r, writes: w, discards: d, .. } = *self;
        let all = r.completed + w.completed + d.completed;
        DeviceRates {
            rrqm_s: per(r.merged, span_s),
            wrqm_s: per(w.merged, span_s),
            r_s: per(r.completed, span_s),
            w_s: per(w.completed, span_s),
            r_mb_s: per(r.sectors / 2048.0, span_s),
            w_mb_s: per(w.sectors / 2048.0, span_s),
            areq_sz: per((r.sectors + w.sectors + d.sectors) / 2.0, all),
            rareq_sz: per(r.sectors / 2.0, r.completed),
            wareq_sz: per(w.sectors / 2.0, w.completed),
            aqu_sz: per(self.queue_ms / 1e3, span_s),
            await_ms: per(r.time_ms + w.time_ms + d.time_ms, all),
            r_await_ms: per(r.time_ms, r.completed),
            w_await_ms: per(w.time_ms, w.completed),
            svctm_ms: per(self.busy_ms, all),
            util_percent: 100.0 * per(self.busy_ms / 1e3, span_s),
            d_s: per(d.completed, span_s),
            d_mb_s: per(d.sectors / 2048.0, span_s),
            d_await_ms: per(d.time_ms, d.completed),
            f_s: per(self.flushes, span_s),
            f_await_ms: per(self.flush_ms, self.flushes),
        }
    }
}

impl DeviceRates {
    /// By their names in run files.
    pub fn named(&self) -> [(&'static str, f64); 20] {
        [
            (DEVICE_RRQM.id, self.rrqm_s),
            (DEVICE_WRQM.id, self.wrqm_s),
            (DEVICE_R.id, self.r_s),
            (DEVICE_W.id, self.w_s),
            (DEVICE_R_MB.id, self.r_mb_s),
            (DEVICE_W_MB.id, self.w_mb_s),
            (DEVICE_AREQ_SZ.id, self.areq_sz),
            (DEVICE_RAREQ_SZ.id, self.rareq_sz),
            (DEVICE_WAREQ_SZ.id, self.wareq_sz),
            (DEVICE_AQU_SZ.id, self.aqu_sz),
            (DEVICE_AWAIT.id, self.await_ms),
            (DEVICE_R_AWAIT.id, self.r_await_ms),
            (DEVICE_W_AWAIT.id, self.w_await_ms),
            (DEVICE_SVCTM.id, self.svctm_ms),
            (DEVICE_UTIL.id, self.util_percent),
            (DEVICE_D.id, self.d_s),
            (DEVICE_D_MB.id, self.d_mb_s),
            (DEVICE_D_AWAIT.id, self.d_await_ms),
            (DEVICE_F.id, self.f_s),
            (DEVICE_F_AWAIT.id, self.f_await_ms),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        // Two seconds in which 1000 reads of 4 KiB took 2 ms each and 500 writes of 8 KiB 8 ms.
        let growth = DeviceGrowth {
            span_s: 2.0,
            reads: RequestGrowth { completed: 1e3, merged: 10.0, sectors: 8e3, time_ms: 2e3 },
            writes: RequestGrowth { completed: 500.0, merged: 20.0, sectors: 8e3, time_ms: 4e3 },
            flushes: 100.0,
            flush_ms: 300.0,
            busy_ms: 1500.0,
            queue_ms: 6300.0,
            ..DeviceGrowth::default()
        };
        let rates = growth.rates();
        assert_eq!((rates.r_s, rates.w_s, rates.rrqm_s, rates.wrqm_s), (500.0, 250.0, 5.0, 10.0));
        assert_eq!((rates.r_mb_s, rates.rareq_sz, rates.wareq_sz), (1.953125, 4.0, 8.0));
        assert_eq!((rates.r_await_ms, rates.w_await_ms, rates.await_ms), (2.0, 8.0, 4.0));
        assert_eq!((rates.areq_sz, rates.aqu_sz), (8000.0 / 1500.0, 3.15));
        assert_eq!((rates.svctm_ms, rates.util_percent), (1.0, 75.0));
        assert_eq!((rates.f_s, rates.f_await_ms), (50.0, 3.0));
        let nothing = DeviceGrowth::default().rates();
        assert!(nothing.named().iter().all(|(_, value)| *value == 0.0));
    }
}
