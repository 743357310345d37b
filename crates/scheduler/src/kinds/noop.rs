use super::V5_0;
use crate::{Generation, SchedulerKind, Spec, Versions};

pub(crate) const SPEC: Spec = Spec {
    name: "noop",
    description: "Passes requests on in order of arrival, and merges neighbours.",
    generation: Generation::SingleQueue,
    versions: Versions::before(V5_0),
    tunables: &[],
    module: None,
    successor: Some(SchedulerKind::None),
    page: "noop",
};
