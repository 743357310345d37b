use crate::{Generation, KernelVersion, SchedulerKind, Spec, Tunable, Versions};

pub(crate) const SPEC: Spec = Spec {
    name: "anticipatory",
    description: "Deadline that keeps the disk idle after a read, for the next one of the same process.",
    generation: Generation::SingleQueue,
    versions: Versions::before(KernelVersion::new(2, 6, 33)),
    tunables: &[
        Tunable::ms("read_expire", 125, "By when a read should be dispatched."),
        Tunable::ms("write_expire", 250, "By when a write should be dispatched."),
        Tunable::ms("antic_expire", 6, "How long it waits at most for a process's next read."),
        Tunable::ms("read_batch_expire", 500, "How long a batch of reads lasts."),
        Tunable::ms("write_batch_expire", 125, "How long a batch of writes lasts."),
    ],
    module: None,
    successor: Some(SchedulerKind::Bfq),
    page: "anticipatory",
};
