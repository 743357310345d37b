//! fanotify(7) on files of sysfs: which process opened and wrote which.

use crate::{Error, Result, error::io_error, tree::names};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    ffi::CString,
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};

/// A group of marks with its queue of events.
#[derive(Debug)]
pub(super) struct Notify {
    group: OwnedFd,
}

/// What one process did to one file.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub file: PathBuf,
    pub pid: u32,
    /// It wrote, and the kernel took it.
    pub wrote: bool,
}

/// The bytes of `struct fanotify_event_metadata`.
const METADATA: usize = 24;

/// The settings of a queue that can be written: their files, and their names below `queue/`.
pub(super) fn settings_below(queue: &Path) -> Vec<(PathBuf, String)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = Vec::new();
    for folder in ["", "iosched/"] {
        for name in names(queue.join(folder)) {
            let file = queue.join(folder).join(&name);
            let meta = fs::metadata(&file).ok();
            let writable =
                meta.is_some_and(|meta| meta.is_file() && meta.permissions().mode() & 0o222 != 0);
            if writable {
                found.push((file, format!("{folder}{name}")));
            }
        }
    }
    found
}

impl Notify {
    pub(super) fn begin() -> Result<Notify> {
        let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK;
        let of_events = (libc::O_RDONLY | libc::O_CLOEXEC) as libc::c_uint;
        // SAFETY: takes two numbers and gives a new descriptor or -1.
        let group = unsafe { libc::fanotify_init(flags, of_events) };
        if group < 0 {
            let error = io::Error::last_os_error();
            return Err(Error::Unsupported {
                what: "watching who writes settings".to_owned(),
                why: format!("fanotify_init: {error}"),
                next: "run it as root of the host (sudo), outside of a container".to_owned(),
            });
        }
        // SAFETY: it was just opened and is nobody else's.
        Ok(Notify { group: unsafe { OwnedFd::from_raw_fd(group) } })
    }

    /// Watches a file; false if it is gone meanwhile.
    pub(super) fn mark(&self, file: &Path) -> Result<bool> {
        let path = CString::new(file.as_os_str().as_bytes())
            .map_err(|error| io_error("watch", file)(error.into()))?;
        let mask = libc::FAN_OPEN | libc::FAN_MODIFY;
        // SAFETY: the path is a string that ends in zero and outlives the call.
        let outcome = unsafe {
            libc::fanotify_mark(
                self.group.as_raw_fd(),
                libc::FAN_MARK_ADD,
                mask,
                libc::AT_FDCWD,
                path.as_ptr(),
            )
        };
        match outcome {
            0 => Ok(true),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::NotFound => Ok(false),
                error => Err(io_error("watch", file)(error)),
            },
        }
    }

    /// What has happened, after at most so long.
    pub(super) fn wait(&self, most: Duration) -> Result<Vec<Event>> {
        let mut polled = [PollFd::new(&self.group, PollFlags::IN)];
        let time =
            Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
        match poll(&mut polled, Some(&time)) {
            // A signal: who waits looks at its flag.
            Err(rustix::io::Errno::INTR) | Ok(0) => return Ok(Vec::new()),
            Err(error) => return Err(io_error("wait for", "fanotify")(error.into())),
            Ok(_) => {}
        }
        let mut events = Vec::new();
        let mut buffer = [0_u8; 4096];
        loop {
            match rustix::io::read(&self.group, &mut buffer) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(events),
                Ok(length) => events.extend(parse(&buffer[..length])),
                Err(error) => return Err(io_error("read", "fanotify")(error.into())),
            }
        }
    }
}

/// The events of what was read; their descriptors are closed.
fn parse(mut bytes: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    while bytes.len() >= METADATA {
        let number = |at: usize| {
            let four: [u8; 4] = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
            u32::from_ne_bytes(four)
        };
        let length = number(0) as usize;
        // Its upper half has no bit that we ask for.
        let mask = if cfg!(target_endian = "little") { number(8) } else { number(12) };
        let descriptor = number(16).cast_signed();
        let pid = number(20);
        if descriptor >= 0 {
            // SAFETY: the kernel opened it for this event, and nobody else has its number.
            let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
            let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
            if let Ok(path) = fs::read_link(link) {
                let wrote = u64::from(mask) & libc::FAN_MODIFY != 0;
                events.push(Event { file: path, pid, wrote });
            }
        }
        if length < METADATA || length > bytes.len() {
            break;
        }
        bytes = &bytes[length..];
    }
    events
}
