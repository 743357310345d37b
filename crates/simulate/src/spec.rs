//! What is simulated, and what cannot be.

use crate::database::Database;
use crate::replay::ReplaySpec;
use crate::stack::{JOURNAL, Stack, refuse_filesystem};
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
    #[error("the simulation came to a stand at {at} with {outstanding} requests outstanding")]
    Stalled {
        /// When.
        at: Nanos,
        /// Requests that will never complete.
        outstanding: u64,
    },
}

/// Whether all fits a volume of this capacity; the database that the workload asks for.
pub(crate) fn check(spec: &Spec, capacity: Sectors) -> Result<Option<Database>, SimulateError> {
    let capacity = match &spec.stack.filesystem {
        Some(filesystem) => {
            if let Some(reason) = refuse_filesystem(filesystem) {
                return Err(reason.into());
            }
            Sectors(capacity.0.saturating_sub(JOURNAL.0))
        }
        None => capacity,
    };
    let span = spec.span.bytes();
    if spec.span > capacity {
        return Err(SimulateError::Span { span, capacity: capacity.bytes() });
    }
    if let Some(replay) = &spec.replay {
        let reaches = replay.trace.span;
        if reaches > spec.span {
            return Err(plan::Refusal::TraceTooLong { reaches: reaches.bytes(), span }.into());
        }
    }
    for job in [Some(&spec.workload.job), spec.workload.background.as_ref()].into_iter().flatten() {
        job.check()?;
        if job.block_size > span {
            return Err(SimulateError::Block { block: job.block_size, span });
        }
    }
    if spec.stack.page_cache < MIN_PAGE_CACHE {
        return Err(SimulateError::PageCache(spec.stack.page_cache));
    }
    Database::of(spec.workload)
        .map_err(|error| plan::Refusal::Workload { message: error.to_string() }.into())
}
