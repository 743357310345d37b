use super::{FIFO_BATCH, FRONT_MERGES, READ_EXPIRE, V5_0, WRITE_EXPIRE, WRITES_STARVED};
use crate::{Generation, SchedulerKind, Spec, Versions};

pub(crate) const SPEC: Spec = Spec {
    name: "deadline",
    description: "Serves batches in sector order, and what has waited past its deadline first.",
    generation: Generation::SingleQueue,
    versions: Versions::before(V5_0),
    tunables: &[READ_EXPIRE, WRITE_EXPIRE, FIFO_BATCH, WRITES_STARVED, FRONT_MERGES],
    module: None,
    successor: Some(SchedulerKind::MqDeadline),
    page: "deadline",
};
