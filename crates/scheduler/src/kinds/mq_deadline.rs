use super::{FIFO_BATCH, FRONT_MERGES, READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED};
use crate::{Generation, KernelVersion, Spec, Tunable, Versions};

const SINCE_PRIORITIES: Versions = Versions::since(KernelVersion::new(5, 14, 0));

pub(crate) const SPEC: Spec = Spec {
    name: "mq-deadline",
    description: "Deadline for blk-mq: batches in sector order, deadlines, and I/O priorities.",
    generation: Generation::MultiQueue,
    versions: Versions::since(KernelVersion::new(4, 11, 0)),
    tunables: &[
        READ_EXPIRE,
        WRITE_EXPIRE,
        FIFO_BATCH,
        WRITES_STARVED,
        FRONT_MERGES,
        Tunable::ms(
            "prio_aging_expire",
            10_000,
            "After how long a request of a lower priority goes before those of a higher one.",
        )
        .in_versions(SINCE_PRIORITIES),
        Tunable::count(
            "async_depth",
            0,
            (0, 2048),
            "How many asynchronous requests it may hold; 0 stands for the default, nr_requests.",
        )
        .in_versions(Versions::between(
            KernelVersion::new(5, 14, 0),
            // Then the queue's own, of every scheduler.
            KernelVersion::new(7, 0, 0),
        )),
    ],
    module: Some("mq-deadline"),
    successor: None,
    page: "mq-deadline",
};
