//! What a world must know beside its target before there is a plan.

use plan::{Factor, Plan, RawPlan};
use units::Bytes;
use workload::Replay;

/// What a world must know beside its target before there is a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The scratch file gets a loop device of its own.
    pub own_loop: bool,
    /// The serial of the block device that may be overwritten: the user's consent.
    pub confirm: Option<String>,
    /// A running server's database may be used though it holds tables that Spindle did not make.
    pub use_existing: bool,
    /// Bound of the page cache.
    pub page_cache: Option<Bytes>,
    /// The trace that is replayed in place of a job.
    pub replay: Option<Replay>,
    /// Filesystems are compared, so that a block device is needed to make them on.
    pub makes_filesystems: bool,
    /// Simulated trials that run at once; without it, as many as there are CPUs.
    pub threads: Option<u32>,
}

impl Options {
    /// Of a plan that is yet to be resolved.
    pub fn of(raw: &RawPlan) -> Options {
        Options {
            own_loop: raw.own_loop.unwrap_or(false),
            confirm: raw.confirm.clone(),
            use_existing: raw.use_existing,
            page_cache: raw.page_cache,
            replay: raw.replay.clone(),
            makes_filesystems: raw.factors.contains_key(&Factor::Filesystem.to_string()),
            threads: raw.threads,
        }
    }

    /// Of a plan that is resumed. Consent is given anew.
    pub fn resuming(plan: &Plan, confirm: Option<String>, use_existing: bool) -> Options {
        Options {
            own_loop: plan.own_loop,
            confirm,
            use_existing,
            page_cache: plan.page_cache,
            replay: plan.workload.replay.clone(),
            makes_filesystems: plan.factors.contains(&Factor::Filesystem),
            threads: None,
        }
    }
}
