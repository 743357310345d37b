//! One table for each scheduler.
//!
//! Sources: names, units and defaults from the kernel's Documentation/block (as-iosched,
//! deadline-iosched, cfq-iosched, bfq-iosched, kyber-iosched) and Documentation/ABI; versions from the
//! kernels' release notes.

pub(crate) mod anticipatory;
pub(crate) mod bfq;
pub(crate) mod cfq;
pub(crate) mod deadline;
pub(crate) mod kyber;
pub(crate) mod mq_deadline;
pub(crate) mod none;
pub(crate) mod noop;

use crate::{KernelVersion, Tunable, Unit};

/// The first kernel without the single-queue block layer.
const V5_0: KernelVersion = KernelVersion::new(5, 0, 0);

/// Ranges that the kernel does not limit.
const MAX_COUNT: u64 = 100_000;

const BACK_SEEK_MAX: Tunable = Tunable::of(
    "back_seek_max",
    Unit::Kibibytes,
    16_384,
    (0, 1 << 30),
    "How far back from the head a request may lie and still be considered next.",
);
const BACK_SEEK_PENALTY: Tunable = Tunable::count(
    "back_seek_penalty",
    2,
    (1, 1000),
    "By how much a distance backwards counts more than one forwards.",
);
const FIFO_EXPIRE_SYNC: Tunable =
    Tunable::ms("fifo_expire_sync", 125, "By when a synchronous request should be served.");
const FIFO_EXPIRE_ASYNC: Tunable =
    Tunable::ms("fifo_expire_async", 250, "By when an asynchronous request should be served.");

/// What deadline and mq-deadline have in common.
const READ_EXPIRE: Tunable =
    Tunable::ms("read_expire", 500, "By when a read should be dispatched.");
const WRITE_EXPIRE: Tunable =
    Tunable::ms("write_expire", 5000, "By when a write should be dispatched.");
const FIFO_BATCH: Tunable = Tunable::count(
    "fifo_batch",
    16,
    (0, MAX_COUNT),
    "How many requests of one direction go in sector order before deadlines are looked at again.",
);
const WRITES_STARVED: Tunable = Tunable::count(
    "writes_starved",
    2,
    (0, MAX_COUNT),
    "How many batches of reads may go before waiting writes.",
);
const FRONT_MERGES: Tunable =
    Tunable::flag("front_merges", 1, "Whether requests may grow at their front.");
