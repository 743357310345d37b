//! Why a preset leaves out a level.

use serde::{Deserialize, Serialize};
use units::Bytes;

/// Why a preset leaves out a level on a server, version or storage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum PresetLimit {
    /// The server has no such variable.
    #[error("{server} has no {variable}: {when}")]
    NoVariable {
        /// The server and its version.
        server: String,
        /// The variable.
        variable: String,
        /// When it came, or went.
        when: Presence,
    },
    /// The server does not take the value.
    #[error("{server} does not take it: {complaint}")]
    NotTaken {
        /// The server and its version.
        server: String,
        /// In the server's words.
        complaint: String,
    },
    /// Pages could be torn by a power failure.
    #[error(
        "a power failure could tear a page of {page}, and {limit}; a preset compares this only where atomic \
         writes are proven"
    )]
    Torn {
        /// The size of a page.
        page: Bytes,
        /// Why atomic writes of it are not proven.
        limit: AtomicLimit,
    },
    /// More page cleaners than buffer pools have nothing to do.
    #[error(
        "a buffer pool of {buffer_pool} has one instance, and one page cleaner for it: it takes more \
         than 1 GiB (buffer_pool=2G) to have several"
    )]
    OneInstance {
        /// The buffer pool.
        buffer_pool: Bytes,
    },
    /// Files are not flushed when they grow.
    #[error(
        "{server} does not flush a file's metadata with it: a crash can lose what a file grew by; safe \
         since {safe_since}"
    )]
    NoMetadataFlush {
        /// The server and its version.
        server: String,
        /// The first version that does.
        safe_since: String,
    },
    /// Data files are not flushed before the log that covers them goes.
    #[error(
        "{server} does not flush its data files with it: whether what it wrote survives a power failure \
         depends on the filesystem"
    )]
    NoDataFlush {
        /// The server and its version.
        server: String,
    },
    /// The kernel does not let the server use io_uring.
    #[error("this host forbids io_uring (kernel.io_uring_disabled={value})")]
    IoUringDisabled {
        /// The value of the sysctl.
        value: u32,
    },
}

/// When a variable came to a server, or went from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// The version that brought it.
    Since(String),
    /// The version that took it away.
    Until(String),
}

impl std::fmt::Display for Presence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Presence::Since(version) => write!(f, "it came with {version}"),
            Presence::Until(version) => write!(f, "it went with {version}"),
        }
    }
}

/// Why atomic writes of a size are not proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum AtomicLimit {
    /// The device has none.
    #[error("the device has no atomic writes (queue/atomic_write_unit_max_bytes)")]
    Device,
    /// The device has them, the filesystem takes none.
    #[error(
        "the filesystem takes no atomic writes, though the device has them (statx, STATX_WRITE_ATOMIC)"
    )]
    Filesystem,
    /// The filesystem does it by writing elsewhere first, for writes that ask for it.
    #[error(
        "the filesystem writes a page whole only where it is asked for that (RWF_ATOMIC), which database \
         servers do not do"
    )]
    WhenAsked,
    /// They are smaller.
    #[error("atomic writes here are at most {max} (statx, STATX_WRITE_ATOMIC)")]
    Above {
        /// The largest.
        max: Bytes,
    },
    /// They are larger, or not of such a size.
    #[error("atomic writes here are of other sizes (statx, STATX_WRITE_ATOMIC)")]
    OtherSizes,
    /// The kernel does not know the question.
    #[error("this kernel tells nothing of atomic writes (Linux before 6.11)")]
    Kernel,
    /// The filesystem does not answer.
    #[error("the filesystem tells nothing of atomic writes (statx, STATX_WRITE_ATOMIC)")]
    Unsaid,
    /// The storage does not exist yet.
    #[error("the filesystem is made for the run, so that it cannot be asked before")]
    NotMade,
}
