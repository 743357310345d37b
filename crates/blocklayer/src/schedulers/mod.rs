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
use crate::scheduler::Scheduler;
use ::scheduler::SchedulerKind;

/// The model of the configured scheduler; None for `none`, where the layer passes everything on.
pub(crate) fn make(config: &Resolved) -> Option<Box<dyn Scheduler>> {
    Some(match config.scheduler {
        SchedulerKind::Noop => Box::new(noop::Noop::new(config.kernel)),
        SchedulerKind::Deadline => Box::new(deadline::Deadline::new(config)),
        SchedulerKind::Anticipatory => Box::new(anticipatory::Anticipatory::new(config)),
        SchedulerKind::Cfq => match config.kernel.is_2_6_18() {
            true => Box::new(cfq::RoundRobinCfq::new(config)),
            false => Box::new(cfq::TreeCfq::new(config)),
        },
        SchedulerKind::None => return None,
        SchedulerKind::MqDeadline => Box::new(mq_deadline::MqDeadline::new(config)),
        SchedulerKind::Kyber => Box::new(kyber::Kyber::new(config)),
        SchedulerKind::Bfq => Box::new(bfq::Bfq::new(config)),
    })
}
