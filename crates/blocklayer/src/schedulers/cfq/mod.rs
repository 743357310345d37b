//! cfq: fair shares of the device's time. Four different schedulers share the name; here are two
//! engines, of which the second has the settings of three kernels.

mod round_robin;
mod service_tree;

pub(super) use round_robin::RoundRobinCfq;
pub(super) use service_tree::TreeCfq;
