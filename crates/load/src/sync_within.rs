//! fsync(2) that is not waited for without end: in a process of its own, because nothing ends a process in a call that
//! waits for a device.

use crate::{LoadError, handles::HUNG_AFTER};
use std::{
    fs::File,
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileTypeExt, MetadataExt},
    },
    path::Path,
    time::{Duration, Instant},
};
use units::Nanos;

/// How often to look whether it is done, from the first time on.
const LOOK_EVERY: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(20)];

/// Writes a file or device back; an error where its device completes nothing for too long meanwhile.
pub fn sync_within(file: &File, path: &Path) -> Result<(), LoadError> {
    let wrong = |source| LoadError::Target { doing: "sync", path: path.to_owned(), source };
    let progress = Progress::of(file);
    let descriptor = file.as_raw_fd();
    // SAFETY: the child makes two system calls, which are async-signal-safe, and no other thread lives in it.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(wrong(io::Error::last_os_error()));
    }
    if child == 0 {
        // It may stay after us: of what we have open, pipes and locks, it holds nothing but the file.
        // SAFETY: plain integers; `_exit` runs nothing of the parent's.
        unsafe {
            let number = descriptor.unsigned_abs();
            libc::syscall(libc::SYS_close_range, number + 1, u32::MAX, 0);
            if number > 0 {
                libc::syscall(libc::SYS_close_range, 0, number - 1, 0);
            }
            let failed = libc::fsync(descriptor) != 0;
            libc::_exit(if failed { *libc::__errno_location() } else { 0 });
        }
    }
    let mut pause = LOOK_EVERY[0];
    let (mut seen, mut since) = (progress.now(), Instant::now());
    loop {
        let mut status = 0;
        // SAFETY: the child is ours and not reaped yet; `status` is an integer of ours.
        match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
            0 => {}
            id if id == child && status == 0 => return Ok(()),
            id if id == child && libc::WIFEXITED(status) => {
                return Err(wrong(io::Error::from_raw_os_error(libc::WEXITSTATUS(status))));
            }
            id if id == child => return Err(wrong(io::Error::other("the process was killed"))),
            _ => return Err(wrong(io::Error::last_os_error())),
        }
        let now = progress.now();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        let waited = Nanos(since.elapsed().as_nanos() as u64);
        if seen.is_some() && waited > HUNG_AFTER {
            return Err(LoadError::Hung { path: path.to_owned(), waited });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK_EVERY[1]);
    }
}

/// What a file's device has completed.
struct Progress(Option<String>);

impl Progress {
    fn of(file: &File) -> Progress {
        let number = file
            .metadata()
            .map(|meta| if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() });
        let stat =
            |number| format!("/sys/dev/block/{}:{}/stat", libc::major(number), libc::minor(number));
        Progress(number.ok().map(stat))
    }

    /// Reads, writes, discards and flushes that have ended; none where nobody counts them, as on btrfs: there it is not
    /// known whether a device hangs.
    fn now(&self) -> Option<[u64; 4]> {
        let text = std::fs::read_to_string(self.0.as_ref()?).ok()?;
        let fields: Vec<u64> = text.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        (fields.len() > 4).then(|| [field(0), field(4), field(11), field(15)])
    }
}
