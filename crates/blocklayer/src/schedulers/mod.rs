//! The schedulers, one file each.

mod anticipatory;
mod bfq;
mod cfq;
mod deadline;
mod kyber;
mod mean;
mod mq_deadline;
mod noop;
mod process_queue;

use crate::config::Resolved;
use crate::kernel::Kernel;
use crate::scheduler::Scheduler;

/// The scheduler of that name; None for `none`, where the layer passes everything on.
pub(crate) fn make(config: &Resolved) -> Option<Box<dyn Scheduler>> {
    match config.scheduler {
        "noop" => Some(Box::new(noop::Noop::new(config.kernel))),
        "deadline" => Some(Box::new(deadline::Deadline::new(config))),
        "anticipatory" => Some(Box::new(anticipatory::Anticipatory::new(config))),
        "cfq" if config.kernel == Kernel::V2_6_18 => {
            Some(Box::new(cfq::RoundRobinCfq::new(config)))
        }
        "cfq" => Some(Box::new(cfq::TreeCfq::new(config))),
        "mq-deadline" => Some(Box::new(mq_deadline::MqDeadline::new(config))),
        "bfq" => Some(Box::new(bfq::Bfq::new(config))),
        "kyber" => Some(Box::new(kyber::Kyber::new(config))),
        _ => None,
    }
}
