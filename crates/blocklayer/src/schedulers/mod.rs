//! The schedulers, one file each.

mod noop;

use crate::config::Resolved;
use crate::scheduler::Scheduler;

/// The scheduler of that name; None for `none`, where the layer passes everything on.
pub(crate) fn make(config: &Resolved) -> Option<Box<dyn Scheduler>> {
    match config.scheduler {
        "noop" => Some(Box::new(noop::Noop::new(config.kernel))),
        _ => None,
    }
}
