//! io_uring, one ring a client, its file and buffers registered where the limits allow.

use super::{Action, Done, Engine, Operation};
use crate::buffer::Buffers;
use io_uring::{
    IoUring, opcode, squeue,
    types::{Fixed, FsyncFlags, SubmitArgs, Timespec},
};
use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
};
use units::Nanos;
use workload::HAND_OVER_AFTER;

/// Buffers above this are not registered: pinning them would take long and count against
/// RLIMIT_MEMLOCK; at such sizes it saves nothing.
const MAX_REGISTERED_BYTES: u64 = 64 << 20;

/// A ring of its own. All operations go through the ring's thread alone.
pub(crate) struct Ring {
    ring: IoUring,
    /// The kernel holds it too, as registered file 0.
    _file: OwnedFd,
    buffers_registered: bool,
    priority: u16,
    /// RWF_…, of each read and write.
    flags: i32,
    /// Operations that the kernel does not know of yet.
    prepared: usize,
}

impl Ring {
    /// A ring for `depth` operations on `file`. `priority` is the kernel's number for an I/O
    /// priority, 0 for what the thread has; `flags` are RWF_… of each read and write.
    ///
    /// # Safety
    ///
    /// `buffers` must outlive the ring: the kernel may write into them as long as it exists.
    pub unsafe fn new(
        file: OwnedFd,
        depth: u32,
        buffers: &Buffers,
        (priority, flags): (u16, i32),
    ) -> io::Result<Self> {
        let ring = build(depth)?;
        if !ring.params().is_feature_ext_arg() {
            // Waiting with a timeout came with Linux 5.11; without it no rate can be offered.
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        let whole = buffers.whole();
        let buffers_registered = whole.iov_len as u64 <= MAX_REGISTERED_BYTES
            // SAFETY: the caller keeps the buffers until the ring is gone.
            && unsafe { ring.submitter().register_buffers(&[whole]) }.is_ok();
        Ok(Ring { ring, _file: file, buffers_registered, priority, flags, prepared: 0 })
    }

    fn entry(&self, operation: Operation) -> squeue::Entry {
        let Operation { action, offset, buffer, length } = operation;
        let file = Fixed(0);
        let flags = match action {
            Action::WriteThrough => self.flags | libc::RWF_DSYNC,
            _ => self.flags,
        };
        match (action, self.buffers_registered) {
            (Action::Read, true) => opcode::ReadFixed::new(file, buffer, length, 0)
                .offset(offset)
                .ioprio(self.priority)
                .rw_flags(flags)
                .build(),
            (Action::Read, false) => opcode::Read::new(file, buffer, length)
                .offset(offset)
                .ioprio(self.priority)
                .rw_flags(flags)
                .build(),
            (Action::Write | Action::WriteThrough, true) => {
                opcode::WriteFixed::new(file, buffer, length, 0)
                    .offset(offset)
                    .ioprio(self.priority)
                    .rw_flags(flags)
                    .build()
            }
            (Action::Write | Action::WriteThrough, false) => {
                opcode::Write::new(file, buffer, length)
                    .offset(offset)
                    .ioprio(self.priority)
                    .rw_flags(flags)
                    .build()
            }
            (Action::Fsync, _) => opcode::Fsync::new(file).build(),
            (Action::Fdatasync, _) => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        }
    }
}

/// The cheapest kind of ring that this kernel has: completions handled by the submitting thread
/// when it asks (6.1), without interrupting it (5.19), or as it comes.
fn build(depth: u32) -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(depth)
        .or_else(|_| IoUring::builder().setup_coop_taskrun().build(depth))
        .or_else(|_| IoUring::builder().build(depth))
}

impl Engine for Ring {
    #[inline]
    unsafe fn submit(&mut self, operation: Operation, slot: u32) {
        let entry = self.entry(operation).user_data(slot.into());
        // SAFETY: the caller keeps the buffer, and the ring its file, until the operation is done;
        // the ring has an entry for every slot, so pushing cannot fail.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        debug_assert!(pushed.is_ok());
        self.prepared += 1;
        if self.prepared == HAND_OVER_AFTER {
            self.prepared = 0;
            // What is not taken now is offered again by the next reaping, which reports errors.
            let _ = self.ring.submit();
        }
    }

    fn reap(&mut self, timeout: Option<Nanos>, done: &mut Vec<Done>) -> io::Result<()> {
        self.prepared = 0;
        let result = match timeout {
            None => self.ring.submit_and_wait(1),
            Some(span) => {
                let time = Timespec::new()
                    .sec(span.0 / 1_000_000_000)
                    .nsec((span.0 % 1_000_000_000) as u32);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
            }
        };
        match result {
            Ok(_) => {}
            // Interrupted, timed out, or the kernel is short of something: the driver comes back.
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY) => {}
                _ => return Err(error),
            },
        }
        for entry in self.ring.completion() {
            done.push(Done { slot: entry.user_data() as u32, result: entry.result() });
        }
        Ok(())
    }
}
