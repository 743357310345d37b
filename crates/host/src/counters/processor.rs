//! Processor time: of the machine (`/proc/stat`, proc_stat(5)) and our own.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Time of all processors since boot, in clock ticks (1/100 s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTicks {
    /// Programs, guests of virtual machines among them.
    pub user: u64,
    /// Programs of low priority.
    pub nice: u64,
    /// The kernel.
    pub system: u64,
    /// Nothing to do.
    pub idle: u64,
    /// Nothing to do while I/O was under way.
    pub iowait: u64,
    /// Interrupts.
    pub irq: u64,
    /// What interrupts left for later.
    pub softirq: u64,
    /// The host of this virtual machine ran something else.
    pub steal: u64,
}

impl CpuTicks {
    /// From the first line of `/proc/stat`.
    pub(super) fn parse(text: &str) -> Option<CpuTicks> {
        let mut fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let mut next = || fields.next().and_then(|field| field.parse().ok()).unwrap_or(0);
        Some(CpuTicks {
            user: next(),
            nice: next(),
            system: next(),
            idle: next(),
            iowait: next(),
            irq: next(),
            softirq: next(),
            steal: next(),
        })
    }

    /// All of it. Guests' time is in `user` and `nice` already.
    pub fn total(&self) -> u64 {
        let CpuTicks { user, nice, system, idle, iowait, irq, softirq, steal } = self;
        user + nice + system + idle + iowait + irq + softirq + steal
    }
}

/// CPU time of this process and of its ended children: user mode, kernel.
pub(super) fn own_time() -> (Nanos, Nanos) {
    let of = |who: libc::c_int| {
        // SAFETY: `rusage` is plain integers, for which all zeroes is a value.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel fills one `struct rusage`, which this is.
        unsafe { libc::getrusage(who, &raw mut usage) };
        usage
    };
    let [own, children] = [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(of);
    let nanos =
        |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    (
        Nanos(nanos(own.ru_utime) + nanos(children.ru_utime)),
        Nanos(nanos(own.ru_stime) + nanos(children.ru_stime)),
    )
}
