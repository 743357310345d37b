//! The tunables of a scheduler that the models have.

use crate::kernel::Kernel;
use scheduler::{SchedulerKind, Tunable};

/// What can be set on `scheduler` at `kernel`; nothing if it is not there.
pub fn tunables(
    kernel: Kernel,
    scheduler: SchedulerKind,
) -> impl Iterator<Item = &'static Tunable> + Clone {
    let there = scheduler.is_in(kernel.generation(), kernel.version());
    let all = scheduler.spec().tunables.iter();
    all.filter(move |tunable| {
        there && tunable.modelled && tunable.versions.contain(kernel.version())
    })
}
