//! What is simulated, and what cannot be.

use blocklayer::{Config, ConfigError};
use plan::{AfterWrite, Job, OpenSync, Workload};
use units::{Bytes, Nanos, Sectors};

/// A client's time between a completion and its next request when nothing is said: an interrupt, a
/// wake-up, a return from one system call and the way into the next. An assumption: 5 to 20 µs are
/// usual.
pub const TURNAROUND_USUAL: Nanos = Nanos::from_micros(10);

/// The page of the page cache.
const PAGE: Bytes = Bytes::from_kib(4);

/// One trial.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// What the clients do.
    pub workload: &'a Workload,
    /// The block layer and its settings.
    pub queue: &'a Config,
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
    /// Requests whose lives are written into the event log, from the end of warm-up on.
    pub log_requests: u32,
}

/// Why something cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The queue's settings.
    #[error(transparent)]
    Queue(#[from] ConfigError),
    /// The job.
    #[error("{0}")]
    Job(String),
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

/// Why a job cannot be simulated on a raw device without a page cache, in a sentence.
pub fn refuse_job(job: &Job) -> Option<String> {
    if let Err(error) = job.check() {
        return Some(error.to_string());
    }
    if job.sync.direct {
        return None;
    }
    let each_write = job.sync.open != OpenSync::None
        || (job.sync.after != AfterWrite::None && job.sync.every == 1);
    let advice = "write direct, direct+osync or direct+fsync";
    if !each_write {
        return Some(format!(
            "sync mode {} goes through the page cache and its write-back, which the simulated \
             world does not model: {advice}",
            job.sync
        ));
    }
    if job.pattern.reads() {
        return Some(format!(
            "with sync mode {} reads may come from the page cache, which the simulated world does \
             not model: {advice}",
            job.sync
        ));
    }
    (!job.block_size.0.is_multiple_of(PAGE.0)).then(|| {
        format!(
            "a write of {} with sync mode {} first reads the rest of its page into the page cache, \
             which the simulated world does not model: {advice}",
            job.block_size, job.sync
        )
    })
}
