//! Opening a device for ourselves alone.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

/// Whoever only looks lets go within this: udev's probes, and children of programs that had the
/// device open, between fork(2) and execve(2).
const A_MOMENT: Duration = Duration::from_secs(1);

/// Opens a device exclusively (O_EXCL). One that is held is asked for again for a moment.
pub fn open_exclusively(node: &Path, writing: bool) -> io::Result<File> {
    let begun = Instant::now();
    loop {
        match try_exclusively(node, writing) {
            Err(error) if busy(&error) && begun.elapsed() < A_MOMENT => {
                sleep(Duration::from_millis(5));
            }
            other => return other,
        }
    }
}

/// The same without waiting for anybody.
pub fn try_exclusively(node: &Path, writing: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(writing).custom_flags(libc::O_EXCL).open(node)
}

fn busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBUSY)
}
