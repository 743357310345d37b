//! cfq: fair shares of the device's time. Its kernel versions differ so much that there are two models: one
//! of 2.6.18, and one with the settings of three later kernels.

mod round_robin;
mod service_tree;

pub(super) use round_robin::RoundRobinCfq;
pub(super) use service_tree::TreeCfq;
