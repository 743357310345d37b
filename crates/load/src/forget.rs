//! Forgetting what the page cache holds of a target, so that every trial begins alike.

use crate::{LoadError, Target};
use std::{fs::File, os::fd::AsRawFd};

/// Writes back what is dirty of the target and drops its clean pages from the page cache. What is
/// mapped or locked by others stays.
pub fn forget_cached(target: &Target) -> Result<(), LoadError> {
    let wrong =
        |doing| move |source| LoadError::Target { doing, path: target.path.clone(), source };
    let file = File::open(&target.path).map_err(wrong("open"))?;
    file.sync_all().map_err(wrong("sync"))?;
    // SAFETY: the descriptor is open as long as `file` lives; the call takes plain integers.
    let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    match failed {
        0 => Ok(()),
        errno => Err(wrong("drop the cached pages of")(std::io::Error::from_raw_os_error(errno))),
    }
}
