//! Every scheduler's tunables: the kernel's names, units, defaults and ranges.
//!
//! Names and defaults from Documentation/block (deadline-iosched, as-iosched, cfq-iosched, bfq,
//! kyber). Ranges are ours where the kernel takes any non-negative number.

use crate::kernel::Kernel;

/// One thing that can be set on a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// The kernel's name for it (in queue/iosched).
    pub name: &'static str,
    /// The kernel's unit; empty for plain numbers.
    pub unit: &'static str,
    /// The kernel's default.
    pub default: u64,
    /// The least that makes sense.
    pub min: u64,
    /// The most.
    pub max: u64,
}

const fn ms(name: &'static str, default: u64) -> Tunable {
    Tunable { name, unit: "ms", default, min: 0, max: 600_000 }
}
const fn from(name: &'static str, default: u64, min: u64, max: u64) -> Tunable {
    Tunable { name, unit: "", default, min, max }
}
const fn flag(name: &'static str, default: u64) -> Tunable {
    from(name, default, 0, 1)
}

const DEADLINE: &[Tunable] = &[
    ms("read_expire", 500),
    ms("write_expire", 5000),
    from("fifo_batch", 16, 0, 100_000),
    from("writes_starved", 2, 0, 100_000),
    flag("front_merges", 1),
];
const MQ_DEADLINE: &[Tunable] = &[
    ms("read_expire", 500),
    ms("write_expire", 5000),
    from("fifo_batch", 16, 0, 100_000),
    from("writes_starved", 2, 0, 100_000),
    flag("front_merges", 1),
    ms("prio_aging_expire", 10_000),
    // 0 stands for the default: all of nr_requests.
    from("async_depth", 0, 0, 2048),
];
const ANTICIPATORY: &[Tunable] = &[
    ms("read_expire", 125),
    ms("write_expire", 250),
    ms("antic_expire", 6),
    ms("read_batch_expire", 500),
    ms("write_batch_expire", 125),
];
const BACK_SEEK: Tunable =
    Tunable { name: "back_seek_max", unit: "KiB", default: 16_384, min: 0, max: 1 << 30 };

/// What every cfq has; what came later is added behind.
const fn cfq(quantum: u64) -> [Tunable; 9] {
    [
        from("quantum", quantum, 1, 100_000),
        ms("fifo_expire_sync", 125),
        ms("fifo_expire_async", 250),
        BACK_SEEK,
        from("back_seek_penalty", 2, 1, 1000),
        ms("slice_sync", 100),
        ms("slice_async", 40),
        from("slice_async_rq", 2, 1, 100_000),
        ms("slice_idle", 8),
    ]
}
const CFQ_2_6_18: &[Tunable] = &cfq(4);
const CFQ_2_6_32: &[Tunable] = {
    const C: [Tunable; 9] = cfq(4);
    &[C[0], C[1], C[2], C[3], C[4], C[5], C[6], C[7], C[8], flag("low_latency", 1)]
};
const CFQ_3_10: &[Tunable] = {
    const C: [Tunable; 9] = cfq(8);
    &[
        C[0],
        C[1],
        C[2],
        C[3],
        C[4],
        C[5],
        C[6],
        C[7],
        C[8],
        flag("low_latency", 1),
        ms("target_latency", 300),
        ms("group_idle", 8),
    ]
};
const KYBER: &[Tunable] = &[
    Tunable { name: "read_lat_nsec", unit: "ns", default: 2_000_000, min: 1000, max: 1 << 40 },
    Tunable { name: "write_lat_nsec", unit: "ns", default: 10_000_000, min: 1000, max: 1 << 40 },
];
const BFQ: &[Tunable] = &[
    ms("fifo_expire_sync", 125),
    ms("fifo_expire_async", 250),
    BACK_SEEK,
    from("back_seek_penalty", 2, 1, 1000),
    ms("slice_idle", 8),
    // 0: automatic, peak rate × timeout.
    Tunable { name: "max_budget", unit: "sectors", default: 0, min: 0, max: 1 << 30 },
    ms("timeout_sync", 125),
    flag("strict_guarantees", 0),
    flag("low_latency", 1),
];

/// What can be set on `scheduler` at `kernel`; empty if it has nothing, or is not there.
pub fn tunables(kernel: Kernel, scheduler: &str) -> &'static [Tunable] {
    if !kernel.schedulers().contains(&scheduler) {
        return &[];
    }
    match (scheduler, kernel) {
        ("deadline", _) => DEADLINE,
        ("mq-deadline", _) => MQ_DEADLINE,
        ("anticipatory", _) => ANTICIPATORY,
        ("cfq", Kernel::V2_6_18) => CFQ_2_6_18,
        ("cfq", Kernel::V2_6_32) => CFQ_2_6_32,
        ("cfq", _) => CFQ_3_10,
        ("kyber", _) => KYBER,
        ("bfq", _) => BFQ,
        _ => &[],
    }
}
