use crate::{Generation, KernelVersion, Spec, Versions};

pub(crate) const SPEC: Spec = Spec {
    name: "none",
    description: "No scheduler: requests go to the device as they come, merged in their task's plug alone.",
    generation: Generation::MultiQueue,
    versions: Versions::since(KernelVersion::new(3, 13, 0)),
    tunables: &[],
    module: None,
    successor: None,
    page: "none",
};
