use super::{BACK_SEEK_MAX, BACK_SEEK_PENALTY, FIFO_EXPIRE_ASYNC, FIFO_EXPIRE_SYNC};
use crate::{Generation, KernelVersion, Spec, Tunable, Unit, Versions};

pub(crate) const SPEC: Spec = Spec {
    name: "bfq",
    description: "Gives processes budgets of sectors in fair turns, and interactive ones more weight.",
    generation: Generation::MultiQueue,
    versions: Versions::since(KernelVersion::new(4, 12, 0)),
    tunables: &[
        FIFO_EXPIRE_SYNC,
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        Tunable::ms("slice_idle", 8, "How long it waits for a process's next request; 0 is never."),
        Tunable::of(
            "slice_idle_us",
            Unit::Microseconds,
            8000,
            (0, 600_000_000),
            "slice_idle in microseconds.",
        )
        .not_modelled(),
        Tunable::of(
            "max_budget",
            Unit::Sectors,
            0,
            (0, 1 << 30),
            "The largest budget; 0 derives it from the device's rate and timeout_sync.",
        ),
        Tunable::ms("timeout_sync", 125, "How long a process may use up its budget."),
        Tunable::flag(
            "strict_guarantees",
            0,
            "Whether it always idles and sends one request at a time, for exact shares.",
        ),
        Tunable::flag(
            "low_latency",
            1,
            "Whether interactive and soft real-time processes get more weight.",
        ),
    ],
    module: Some("bfq"),
    successor: None,
    page: "bfq",
};
