//! Forgetting what the page cache holds of a target, so that every trial begins alike.

use crate::{LoadError, Target, sync_within::sync_within};
use std::{fs::File, os::fd::AsRawFd};
use units::Bytes;

/// Writes back what is dirty of the target and drops its clean pages from the page cache. What is
/// mapped or locked by others stays.
pub fn forget_cached(target: &Target) -> Result<(), LoadError> {
    let wrong =
        |doing| move |source| LoadError::Target { doing, path: target.path.clone(), source };
    let file = File::open(target.open_path()).map_err(wrong("open"))?;
    sync_within(&file, &target.path)?;
    // SAFETY: the descriptor is open as long as `file` lives; the call takes plain integers.
    let failed = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    match failed {
        0 => Ok(()),
        errno => Err(wrong("drop the cached pages of")(std::io::Error::from_raw_os_error(errno))),
    }
}

/// cachestat(2), since Linux 6.5, of the same number on every architecture; libc names it on few of them.
const SYS_CACHESTAT: libc::c_long = 451;

/// How much of a file is in the page cache; `None` where the kernel does not say.
pub struct CachedPart(File);

impl CachedPart {
    /// Of the target, if it is a file: others read devices, too, such as udev.
    pub fn of(target: &Target) -> Option<CachedPart> {
        let file = File::open(target.open_path()).ok()?;
        let part = file.metadata().ok()?.is_file().then_some(CachedPart(file))?;
        part.bytes().is_some().then_some(part)
    }

    /// Now.
    pub fn bytes(&self) -> Option<Bytes> {
        // Offset and length: the whole file.
        let range = [0_u64; 2];
        // Pages: cached, dirty, under write-back, evicted, recently evicted.
        let mut pages = [0_u64; 5];
        // SAFETY: the descriptor is open as long as `self` lives, and both buffers are of the size that the call reads
        // and fills.
        let failed = unsafe {
            libc::syscall(
                SYS_CACHESTAT,
                self.0.as_raw_fd(),
                range.as_ptr(),
                pages.as_mut_ptr(),
                0 as libc::c_uint,
            )
        } != 0;
        // SAFETY: it takes and gives a plain integer.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        (!failed).then(|| Bytes(pages[0] * page.unsigned_abs()))
    }
}
