//! What can go wrong, and what to do about it.

use std::{io, path::PathBuf, process::ExitStatus};
use units::{Bytes, Nanos};

/// Why there is no measurement, or no laid-out file.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The job cannot be run as asked; the reason says what could.
    #[error("{0}")]
    Refused(String),
    /// The target cannot be opened, or asked about.
    #[error("cannot {doing} {path}: {source}{}", hint(.source.raw_os_error()))]
    Target {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// Not enough free space, found before anything was written.
    #[error(
        "laying out {size} in {path} needs {size} and a margin of {margin}, but only {free} are \
         free there: free some space, or measure on a smaller file"
    )]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// What it needs.
        size: Bytes,
        /// What must stay free.
        margin: Bytes,
        /// What is free.
        free: Bytes,
    },
    /// The filesystem became full while the file was written; what was written is removed.
    #[error(
        "the filesystem of {path} became full after {written} of {size}: something else writes \
         there, or a quota applies; the unfinished file was {}",
        if *.removed { "removed" } else { "not removed: remove it by hand" }
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// What had been written.
        written: Bytes,
        /// What was to be.
        size: Bytes,
        /// Whether the unfinished file is gone.
        removed: bool,
    },
    /// A client could not be prepared.
    #[error("cannot {stage} for client {client}: {}{}", io::Error::from_raw_os_error(*.errno),
        stage.hint(*.errno))]
    Client {
        /// Which client.
        client: usize,
        /// What it was doing.
        stage: Stage,
        /// What the kernel said.
        errno: i32,
    },
    /// Operations fail in a way that will not pass.
    #[error("{stage} at offset {offset} of {path} failed: {}{}",
        io::Error::from_raw_os_error(*.errno), operation_hint(*.errno))]
    Operation {
        /// The target.
        path: PathBuf,
        /// Read, write or sync.
        stage: Stage,
        /// Where.
        offset: Bytes,
        /// What the kernel said.
        errno: i32,
    },
    /// Every operation failed.
    #[error(
        "all {count} operations on {path} failed ({errors}): nothing was measured; the kernel's \
         log (dmesg) may say why"
    )]
    AllFailed {
        /// The target.
        path: PathBuf,
        /// How many.
        count: u64,
        /// How, with counts.
        errors: String,
    },
    /// A client process ended by itself.
    #[error(
        "client process {client} ended unexpectedly ({how}): perhaps the kernel ran out of memory \
         (dmesg says so), or somebody killed it"
    )]
    Died {
        /// Which client.
        client: usize,
        /// Its end.
        how: String,
    },
    /// Operations neither completed nor failed.
    #[error(
        "{path} has not completed an operation for {waited} after the end of the trial: the device hangs"
    )]
    Hung {
        /// The target.
        path: PathBuf,
        /// Since when.
        waited: Nanos,
    },
    /// Told to stop before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
    /// fio is not installed.
    #[error(
        "the engine fio needs the program fio, which is not in PATH: install it (Debian and Ubuntu: \
         apt install fio), or use --engine io_uring"
    )]
    NoFio,
    /// fio failed, or printed what was not understood.
    #[error("fio {problem}{}", if .output.is_empty() { String::new() } else {
        format!(":\n{}", .output) })]
    Fio {
        /// What went wrong.
        problem: FioProblem,
        /// The end of what it printed.
        output: String,
    },
}

/// What went wrong with fio.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FioProblem {
    /// It could not be run.
    #[error("cannot be run: {0}")]
    NotRun(String),
    /// It ended with an error of its own.
    #[error("ended with {0}")]
    Ended(ExitStatus),
    /// It gave a job up.
    #[error(
        "stopped the {role} job after an error: {} ({}); the kernel's log (dmesg) may say more",
        errno_name(*errno),
        io::Error::from_raw_os_error(*errno)
    )]
    JobStopped {
        /// `measured` or `background`.
        role: String,
        /// The kernel's error.
        errno: i32,
    },
    /// It printed no results.
    #[error("printed no results")]
    NoResults,
    /// It completed nothing in the measured span.
    #[error("completed no operation")]
    NoOperation,
    /// Operations moved fewer bytes than asked.
    #[error(
        "counted about {count} operations that moved fewer bytes than asked: the target shrank or \
         disappeared; the kernel's log (dmesg) may say why"
    )]
    Short {
        /// About how many.
        count: u64,
    },
}

/// What a client was doing when it gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// Starting a thread or process.
    Start = 1,
    /// Opening the target.
    Open,
    /// Allocating buffers.
    Allocate,
    /// Setting the I/O priority.
    Priority,
    /// Setting up the engine.
    Engine,
    /// Waiting for completions.
    Wait,
    /// A read.
    Read,
    /// A write.
    Write,
    /// An fsync or fdatasync.
    Sync,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Stage::Start => "start a thread or process",
            Stage::Open => "open the target",
            Stage::Allocate => "allocate buffers",
            Stage::Priority => "set the I/O priority",
            Stage::Engine => "set up the engine",
            Stage::Wait => "wait for completions",
            Stage::Read => "reading",
            Stage::Write => "writing",
            Stage::Sync => "fsync",
        })
    }
}

impl Stage {
    pub(crate) fn code(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_code(code: u32) -> Option<Self> {
        use Stage::*;
        [Start, Open, Allocate, Priority, Engine, Wait, Read, Write, Sync]
            .into_iter()
            .find(|stage| stage.code() == code)
    }

    /// Whether an operation failed, rather than the preparation for all of them.
    pub(crate) fn is_operation(self) -> bool {
        matches!(self, Stage::Read | Stage::Write | Stage::Sync)
    }

    fn hint(self, errno: i32) -> &'static str {
        match (self, errno) {
            (Stage::Priority, libc::EPERM) => {
                ": real-time and idle classes may need root (CAP_SYS_ADMIN or CAP_SYS_NICE)"
            }
            (Stage::Engine, libc::ENOSYS) => {
                ": this kernel has no io_uring, or one from before 5.11; use --engine sync"
            }
            (Stage::Engine, libc::EPERM | libc::EACCES) => {
                ": io_uring is forbidden here (sysctl kernel.io_uring_disabled, or the container's \
                 seccomp filter); use --engine sync"
            }
            (Stage::Engine, libc::ENOMEM) => {
                ": raise the limit of locked memory (ulimit -l), or use fewer clients or less depth"
            }
            (Stage::Start, libc::EAGAIN) => {
                ": a limit of processes was reached (ulimit -u, sysctl kernel.threads-max, or the \
                 cgroup's pids.max); use fewer clients"
            }
            (_, libc::EMFILE | libc::ENFILE) => ": raise the limit of open files (ulimit -n)",
            (_, errno) => hint(Some(errno)),
        }
    }
}

/// Why a client gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub stage: Stage,
    pub errno: i32,
    pub offset: u64,
}

/// What probably causes an error at open, and what to do.
fn hint(errno: Option<i32>) -> &'static str {
    match errno {
        Some(libc::EROFS) => ": it is on a read-only filesystem; name another target",
        Some(libc::EACCES | libc::EPERM) => ": root may be needed",
        Some(libc::EINVAL) => {
            ": this filesystem may not support O_DIRECT; use a sync mode without 'direct'"
        }
        Some(libc::EBUSY) => ": something else holds it exclusively",
        Some(libc::ENXIO | libc::ENODEV | libc::ENOMEDIUM) => ": the device is gone",
        Some(libc::EMFILE | libc::ENFILE) => ": raise the limit of open files (ulimit -n)",
        _ => "",
    }
}

/// What probably causes an error of an operation, and what to do.
fn operation_hint(errno: i32) -> &'static str {
    match errno {
        libc::EINVAL => {
            ": under O_DIRECT the block size and offset must be multiples of the device's logical \
             block (blockdev --getss) and the filesystem must support it; use a larger block size, \
             or a sync mode without 'direct'"
        }
        libc::EIO | libc::ENODEV | libc::ENXIO | libc::ENOMEDIUM | libc::ESHUTDOWN => {
            ": the device disappeared or is failing; the kernel's log (dmesg) says more"
        }
        libc::ENOSPC => {
            ": a block device that says so shrank or disappeared; a filesystem (or a thin volume \
             below it) is full: the target was not fully laid out, or overwriting it needs new space"
        }
        libc::EROFS => ": the filesystem became read-only, as after errors; see dmesg",
        libc::EOPNOTSUPP => ": the device or filesystem does not support this operation",
        _ => "",
    }
}

/// The kernel's word for an error number, as in errno(3).
pub(crate) fn errno_name(errno: i32) -> String {
    let name = match errno {
        libc::EPERM => "EPERM",
        libc::EINTR => "EINTR",
        libc::EIO => "EIO",
        libc::ENXIO => "ENXIO",
        libc::E2BIG => "E2BIG",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EBUSY => "EBUSY",
        libc::ENODEV => "ENODEV",
        libc::EINVAL => "EINVAL",
        libc::EFBIG => "EFBIG",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENODATA => "ENODATA",
        libc::ETIME => "ETIME",
        libc::ENOLINK => "ENOLINK",
        libc::EBADE => "EBADE",
        libc::EPROTO => "EPROTO",
        libc::EBADMSG => "EBADMSG",
        libc::EOVERFLOW => "EOVERFLOW",
        libc::EILSEQ => "EILSEQ",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::ESHUTDOWN => "ESHUTDOWN",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::EREMOTEIO => "EREMOTEIO",
        libc::EDQUOT => "EDQUOT",
        libc::ENOMEDIUM => "ENOMEDIUM",
        libc::ECANCELED => "ECANCELED",
        libc::ESTALE => "ESTALE",
        libc::EUCLEAN => "EUCLEAN",
        other => return format!("errno {other}"),
    };
    name.to_owned()
}
