//! pread(2), pwrite(2), fsync(2): what most databases do; preadv2(2) and pwritev2(2) where flags go with
//! each operation. One operation at a time.

use super::{Action, Done, Engine, Operation, sleep};
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};
use units::Nanos;

/// Does each operation when it is submitted.
pub(crate) struct Sync {
    file: OwnedFd,
    /// RWF_…, of each read and write.
    flags: i32,
    done: Option<Done>,
}

impl Sync {
    pub fn new(file: OwnedFd, flags: i32) -> Self {
        Sync { file, flags, done: None }
    }
}

impl Engine for Sync {
    unsafe fn submit(&mut self, operation: Operation, slot: u32) {
        let Operation { action, offset, buffer, length } = operation;
        let (fd, offset, length) = (self.file.as_raw_fd(), offset as i64, length as usize);
        let whole = libc::iovec { iov_base: buffer.cast(), iov_len: length };
        let result = loop {
            // SAFETY: the caller promises a buffer of `length` bytes that nothing else uses.
            let result = unsafe {
                match action {
                    Action::Read if self.flags != 0 => {
                        libc::preadv2(fd, &raw const whole, 1, offset, self.flags)
                    }
                    Action::Write if self.flags != 0 => {
                        libc::pwritev2(fd, &raw const whole, 1, offset, self.flags)
                    }
                    Action::WriteThrough => {
                        let flags = self.flags | libc::RWF_DSYNC;
                        libc::pwritev2(fd, &raw const whole, 1, offset, flags)
                    }
                    Action::Read => libc::pread(fd, buffer.cast(), length, offset),
                    Action::Write => libc::pwrite(fd, buffer.cast(), length, offset),
                    Action::Fsync => libc::fsync(fd) as isize,
                    Action::Fdatasync => libc::fdatasync(fd) as isize,
                }
            };
            if result >= 0 {
                break result as i32;
            }
            let errno = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
            if errno != libc::EINTR {
                break -errno;
            }
        };
        self.done = Some(Done { slot, result });
    }

    fn reap(&mut self, timeout: Option<Nanos>, done: &mut Vec<Done>) -> io::Result<()> {
        match (self.done.take(), timeout) {
            (Some(one), _) => done.push(one),
            (None, Some(span)) => sleep(span),
            (None, None) => {}
        }
        Ok(())
    }
}
