use crate::{Generation, KernelVersion, Spec, Tunable, Unit, Versions};

const RANGE: (u64, u64) = (1000, 1 << 40);

pub(crate) const SPEC: Spec = Spec {
    name: "kyber",
    description: "Limits how many requests of a kind are at the device, to hold target latencies.",
    generation: Generation::MultiQueue,
    versions: Versions::since(KernelVersion::new(4, 12, 0)),
    tunables: &[
        Tunable::of(
            "read_lat_nsec",
            Unit::Nanoseconds,
            2_000_000,
            RANGE,
            "The latency that reads should have.",
        ),
        Tunable::of(
            "write_lat_nsec",
            Unit::Nanoseconds,
            10_000_000,
            RANGE,
            "The latency that synchronous writes should have.",
        ),
    ],
    module: Some("kyber-iosched"),
    successor: None,
    page: "kyber",
};
