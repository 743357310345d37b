use super::{
    BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC, MAX_COUNT, V5_0,
};
use crate::{Generation, KernelVersion, SchedulerKind, Spec, Tunable, Versions};

const QUANTUM: &str = "How many requests of one process may be at the device at once.";

/// From when on the quantum is 8, at the latest.
const V2_6_36: KernelVersion = KernelVersion::new(2, 6, 36);

pub(crate) const SPEC: Spec = Spec {
    name: "cfq",
    description: "Gives processes time slices of the disk, in turns and by their I/O priority.",
    generation: Generation::SingleQueue,
    versions: Versions::between(KernelVersion::new(2, 6, 6), V5_0),
    tunables: &[
        Tunable::count("quantum", 4, (1, MAX_COUNT), QUANTUM)
            .in_versions(Versions::before(V2_6_36)),
        Tunable::count("quantum", 8, (1, MAX_COUNT), QUANTUM).in_versions(Versions::since(V2_6_36)),
        FIFO_EXPIRE_SYNC,
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        Tunable::ms(
            "slice_sync",
            100,
            "How long a process's slice for synchronous requests lasts.",
        ),
        Tunable::ms("slice_async", 40, "How long a slice for asynchronous requests lasts."),
        Tunable::count(
            "slice_async_rq",
            2,
            (1, MAX_COUNT),
            "How many asynchronous requests go in a slice.",
        ),
        Tunable::ms("slice_idle", 8, "How long it waits for a process's next request; 0 is never."),
        Tunable::flag(
            "low_latency",
            1,
            "Whether slices are shortened so that all processes have their turn in time.",
        )
        .in_versions(Versions::since(KernelVersion::new(2, 6, 32))),
        Tunable::ms("target_latency", 300, "Within which time all processes should have a turn.")
            .in_versions(Versions::since(KernelVersion::new(3, 4, 0))),
        Tunable::ms("group_idle", 8, "How long it waits for the next request of a control group.")
            .in_versions(Versions::since(KernelVersion::new(2, 6, 36))),
    ],
    module: None,
    successor: Some(SchedulerKind::Bfq),
    page: "cfq",
};
