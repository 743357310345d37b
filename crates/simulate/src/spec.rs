//! What is simulated, and why a simulation fails.

use crate::replay::ReplaySpec;
use crate::stack::Stack;
use blocklayer::{Config, ConfigError};
use units::{Bytes, Nanos, Sectors};
use workload::Workload;

/// A client's time between a completion and its next request when nothing is said: an interrupt, a
/// wake-up, a return from one system call and the way into the next. An assumption: 5 to 20 µs are
/// usual.
pub const DEFAULT_TURNAROUND: Nanos = Nanos::from_micros(10);

/// A smaller page cache would be full of a single read-ahead.
pub const MIN_PAGE_CACHE: Bytes = Bytes::from_mib(16);

/// One trial.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// What the clients do.
    pub workload: &'a Workload,
    /// The block layer and its settings.
    pub queue: &'a Config,
    /// What lies between clients and block layer.
    pub stack: &'a Stack,
    /// The part of the device, from its start, that is used.
    pub span: Sectors,
    /// Virtual time before anything counts.
    pub warmup: Nanos,
    /// Virtual time that counts.
    pub measure: Nanos,
    /// A client's time between a completion and its next request. It delays that request alone:
    /// processors are never short.
    pub turnaround: Nanos,
    /// Of all that is random.
    pub seed: u64,
    /// A trace in place of the measured job; the trial ends when it is through.
    pub replay: Option<ReplaySpec<'a>>,
    /// Requests whose lives are written into the event log, from the end of warm-up on.
    pub log_requests: u32,
}

/// Why something cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The queue's settings.
    #[error(transparent)]
    Queue(#[from] ConfigError),
    /// A job or a database workload that is not valid.
    #[error(transparent)]
    Workload(#[from] workload::WordError),
    /// What is not possible with this stack.
    #[error(transparent)]
    Refused(#[from] plan::Refusal),
    /// A page cache that is too small to simulate.
    #[error("a page cache of {0} is too small: use at least {MIN_PAGE_CACHE}")]
    PageCache(Bytes),
    /// The span.
    #[error("a span of {span} does not fit: the device has {capacity}; use a smaller size")]
    Span {
        /// What was asked for.
        span: Bytes,
        /// What there is.
        capacity: Bytes,
    },
    /// A block that does not fit into the span.
    #[error("a block of {block} does not fit into {span}")]
    Block {
        /// The block.
        block: Bytes,
        /// The span.
        span: Bytes,
    },
    /// The caller said stop.
    #[error("stopped")]
    Stopped,
    /// Nothing will ever happen again, though operations are outstanding: a fault of a model.
    #[error("the simulation stalled at {at} with {outstanding} requests outstanding")]
    Stalled {
        /// When.
        at: Nanos,
        /// Requests that will never complete.
        outstanding: u64,
    },
}
