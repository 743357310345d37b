//! Whether a write of one size is atomic.

use host::{AtomicAnswer, AtomicUnsaid, NotAtomic};

/// Whether writes of a size are atomic, and how that is known, without a full stop.
pub fn atomic_write(answer: AtomicAnswer) -> String {
    match answer {
        AtomicAnswer::ByDevice => "atomic when written with RWF_ATOMIC: the device does it".to_owned(),
        AtomicAnswer::ByFilesystem => {
            "atomic when written with RWF_ATOMIC: the filesystem does it, by writing elsewhere first"
                .to_owned()
        }
        AtomicAnswer::No(NotAtomic::Device) => {
            "not atomic: the device has no atomic writes (queue/atomic_write_unit_max_bytes is 0)".to_owned()
        }
        AtomicAnswer::No(NotAtomic::Filesystem) => {
            "not atomic: the device has atomic writes, the filesystem takes none here".to_owned()
        }
        AtomicAnswer::No(NotAtomic::Below(least)) => {
            format!("not atomic: atomic writes begin at {least} here")
        }
        AtomicAnswer::No(NotAtomic::Above(most)) => {
            format!("not atomic: atomic writes go up to {most} here")
        }
        AtomicAnswer::No(NotAtomic::Uneven) => "not atomic: the size is no power of two".to_owned(),
        AtomicAnswer::Unsaid(AtomicUnsaid::Kernel) => {
            "not known: the kernel has no atomic writes (Linux 6.11), or does not say".to_owned()
        }
        AtomicAnswer::Unsaid(AtomicUnsaid::Filesystem) => {
            "not known: the filesystem does not say (statx STATX_WRITE_ATOMIC)".to_owned()
        }
    }
}
