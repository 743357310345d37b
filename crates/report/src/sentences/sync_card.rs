//! What a sync card concludes, and from what. Without full stops.

use host::{CacheEvidence, DurableBy, NoFsyncReason, NoFsyncVerdict, PowerLossVerdict};

/// How a direct write with O_DSYNC became durable; `share` is flushes a write.
pub(crate) fn durable_by(by: DurableBy, share: Option<f64>) -> String {
    let share = share.map_or(String::new(), |share| format!(" ({share:.2} flushes a write)"));
    match by {
        DurableBy::Fua => format!("direct+O_DSYNC is durable by FUA, not by a flush{share}"),
        DurableBy::Flush => format!("direct+O_DSYNC is durable by a flush after the write{share}"),
        DurableBy::Neither => format!(
            "direct+O_DSYNC is durable as it is, without FUA or flush: the queue is write through{share}"
        ),
        DurableBy::Unknown => {
            format!("direct+O_DSYNC: whether by FUA or by a flush could not be counted{share}")
        }
    }
}

/// The verdict on the cache.
pub(crate) fn power_loss_verdict(verdict: PowerLossVerdict) -> &'static str {
    match verdict {
        PowerLossVerdict::LooksProtected => "looks protected (evidence, not proof)",
        PowerLossVerdict::LooksUnprotected => "looks unprotected (evidence, not proof)",
        PowerLossVerdict::CannotBeTold => "cannot be told",
    }
}

/// One thing that was seen of the cache.
pub(crate) fn cache_evidence(evidence: &CacheEvidence) -> String {
    match evidence {
        CacheEvidence::SaysVolatile { device } => {
            format!("{device} says that it has a volatile cache (queue/write_cache: write back)")
        }
        CacheEvidence::SaysNotVolatile { device } => {
            format!("{device} says that it has no volatile cache (queue/write_cache: write through)")
        }
        CacheEvidence::Model { device, model } => {
            format!("{device} is a {model}: its data sheet says whether it has power-loss protection")
        }
        CacheEvidence::Virtual { device } => format!(
            "{device} is a virtual or remote disk: what keeps its data cannot be seen from here"
        ),
        CacheEvidence::Medium { medium, median } => {
            format!("random reads answer like {medium} ({median} at the median)")
        }
        CacheEvidence::Times { direct, durable, medium } => {
            let least = medium
                .map_or(String::new(), |least| format!("; the medium {least} or more"));
            format!("a direct write takes {direct}, a durable one {durable}{least}")
        }
        CacheEvidence::WritesReachTheMedium => {
            "each write alone takes the time of the medium: no cache answers for it".to_owned()
        }
        CacheEvidence::DurabilityReachesTheMedium => {
            "a cache answers writes, and making them durable takes the medium's time".to_owned()
        }
        CacheEvidence::FasterThanTheMedium => {
            "durable writes are faster than the medium: a protected cache keeps them, or the device \
             ignores flushes (pulling the plug tells)"
                .to_owned()
        }
        CacheEvidence::BetweenBoth => {
            "making a write durable costs time, but not more than a protected cache may take".to_owned()
        }
        CacheEvidence::NoDirectWrites => "direct writes could not be measured here".to_owned(),
    }
}

/// The verdict on O_DIRECT without fsync.
pub(crate) fn no_fsync_verdict(verdict: NoFsyncVerdict) -> &'static str {
    match verdict {
        NoFsyncVerdict::InPlaceOnly => "safe in place only",
        NoFsyncVerdict::NotSafe => "not safe here",
        NoFsyncVerdict::CannotBeTold => "cannot be told",
    }
}

/// Why it is safe or not.
pub(crate) fn no_fsync_reason(reason: &NoFsyncReason) -> String {
    match reason {
        NoFsyncReason::VolatileCache { device, looks_protected: false } => format!(
            "{device} has a volatile cache that nothing flushes then: written pages may be lost"
        ),
        NoFsyncReason::VolatileCache { device, looks_protected: true } => format!(
            "{device} says that its cache is volatile, though it looks protected: without fsync nothing \
             flushes it"
        ),
        NoFsyncReason::NoVolatileCache => {
            "no device below says that it has a volatile cache: a completed write is kept".to_owned()
        }
        NoFsyncReason::CacheUnsaid { device } => {
            format!("{device} does not say whether it has a volatile cache")
        }
        NoFsyncReason::BufferedLoop { device } => {
            format!("{device} writes into the page cache of the filesystem below it, which only fsync empties")
        }
        NoFsyncReason::Growth => {
            "a file's new length and blocks are durable only after fsync: the server has to call it when a \
             file grows (MySQL does from 8.0.14 on)"
                .to_owned()
        }
        NoFsyncReason::CopyOnWrite { filesystem } => {
            format!("{filesystem} writes each block elsewhere: where it is now is durable only after fsync")
        }
        NoFsyncReason::NotDirect { filesystem } => {
            format!("O_DIRECT goes through the page cache of this {filesystem}: only fsync empties it")
        }
        NoFsyncReason::Elsewhere { filesystem } => {
            format!("{filesystem}: its server decides what is kept of a write without fsync")
        }
        NoFsyncReason::Memory => "the files are memory: nothing survives".to_owned(),
        NoFsyncReason::UnknownFilesystem { filesystem } => {
            format!("what {filesystem} keeps of a write without fsync is not known here")
        }
    }
}
