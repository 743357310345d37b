//! What moves the bytes: one file an engine.
//!
//! An engine knows nothing of rates, clocks or statistics: the driver stamps every time.

pub(crate) mod io_uring;
pub(crate) mod null;
pub(crate) mod sync;

use std::io;
use units::Nanos;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Read,
    Write,
    /// A write that is done when it is on the medium (RWF_DSYNC): past the page cache of a block device, a
    /// write with FUA.
    WriteThrough,
    Fsync,
    Fdatasync,
}

/// One operation. `buffer` is of `length` bytes and stays untouched by others until it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub action: Action,
    pub offset: u64,
    pub buffer: *mut u8,
    pub length: u32,
}

/// An operation that ended: which, and bytes moved or a negative errno.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub slot: u32,
    pub result: i32,
}

/// Moves bytes.
pub(crate) trait Engine {
    /// Starts an operation, or does it. A slot has one operation at a time, so an engine made for
    /// a depth is never full.
    ///
    /// # Safety
    ///
    /// A read or a write has a buffer of `length` bytes that stays valid, and that nothing else uses,
    /// until the operation has been reaped.
    unsafe fn submit(&mut self, operation: Operation, slot: u32);

    /// Waits until an operation is done or, with one, until the timeout has passed; all that are
    /// done are appended.
    fn reap(&mut self, timeout: Option<Nanos>, done: &mut Vec<Done>) -> io::Result<()>;
}

/// Sleeps, as an engine does that has nothing to wait for.
pub(crate) fn sleep(span: Nanos) {
    std::thread::sleep(span.as_duration());
}
