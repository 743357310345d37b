//! The schedulers, one file each.

mod deadline;
mod kyber;
mod mq_deadline;
mod noop;

use crate::config::Resolved;
use crate::scheduler::Scheduler;

/// The scheduler of that name; None for `none`, where the layer passes everything on.
pub(crate) fn make(config: &Resolved) -> Option<Box<dyn Scheduler>> {
    match config.scheduler {
        "noop" => Some(Box::new(noop::Noop::new(config.kernel))),
        "deadline" => Some(Box::new(deadline::Deadline::new(config.kernel, &config.tunables))),
        "mq-deadline" => Some(Box::new(mq_deadline::MqDeadline::new(config))),
        "kyber" => Some(Box::new(kyber::Kyber::new(config))),
        _ => None,
    }
}
