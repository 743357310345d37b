//! The memory that clients, threads or processes, share with the observer: one shared mapping with
//! a control page and a page for each client.

use crate::bank::Bank;
use crate::error::Failure;
use crate::target::held_path;
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd},
    path::{Path, PathBuf},
    ptr,
    sync::atomic::{
        AtomicI32, AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
};
use units::Nanos;
use workload::TrialClock;

/// errno values that are counted apart; all above count as the last.
pub(crate) const ERRNOS: usize = 135;
/// Where transfers that moved fewer bytes than asked are counted, among the errno values.
pub(crate) const SHORT: usize = 0;

/// When to begin, to measure and to end, on CLOCK_MONOTONIC.
#[repr(C, align(4096))]
pub(crate) struct Control {
    /// Futex: 0 wait, 1 start, 2 end without starting.
    gate: AtomicU32,
    pub ready: AtomicU32,
    /// Clients that gave up.
    pub failed: AtomicU32,
    start: AtomicU64,
    measure: AtomicU64,
    /// Moved to the present to end early.
    end: AtomicU64,
    /// The next entry of a trace that all clients share.
    entry: AtomicU64,
}

impl Control {
    pub fn next_entry(&self) -> u64 {
        self.entry.fetch_add(1, Relaxed)
    }

    pub fn end(&self) -> Nanos {
        Nanos(self.end.load(Relaxed))
    }

    pub fn end_now(&self, now: Nanos) {
        self.end.store(now.0, Relaxed);
    }

    /// Lets the waiting clients begin.
    pub fn go(&self, times: TrialClock) {
        self.start.store(times.start.0, Relaxed);
        self.measure.store(times.measure.0, Relaxed);
        self.end.store(times.end.0, Relaxed);
        self.open_gate(1);
    }

    /// Ends clients that wait at the gate.
    pub fn cancel(&self) {
        self.end.store(0, Relaxed);
        self.open_gate(2);
    }

    fn open_gate(&self, value: u32) {
        self.gate.store(value, Release);
        // SAFETY: the address is of a live aligned u32; FUTEX_WAKE reads nothing else.
        unsafe { libc::syscall(libc::SYS_futex, &self.gate, libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Blocks a client until all begin; `None` when the trial was cancelled.
    pub fn wait(&self) -> Option<TrialClock> {
        self.ready.fetch_add(1, Release);
        loop {
            match self.gate.load(Acquire) {
                0 => {
                    let forever = ptr::null::<libc::timespec>();
                    // SAFETY: as above; FUTEX_WAIT returns at once if the value is no longer 0.
                    unsafe {
                        libc::syscall(libc::SYS_futex, &self.gate, libc::FUTEX_WAIT, 0, forever)
                    };
                }
                1 => {
                    return Some(TrialClock {
                        start: Nanos(self.start.load(Relaxed)),
                        measure: Nanos(self.measure.load(Relaxed)),
                        end: self.end(),
                    });
                }
                _ => return None,
            }
        }
    }
}

/// In place of a time that the kernel does not count.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// What one client did so far. All-zero memory is a client that has not begun.
#[repr(C, align(4096))]
pub(crate) struct Page {
    /// Whether the client has ended (well or not).
    pub done: AtomicU32,
    stage: AtomicU32,
    errno: AtomicI32,
    offset: AtomicU64,
    /// CPU time within the measured span.
    pub user: AtomicU64,
    pub system: AtomicU64,
    /// What it waited for a processor within that, or [`UNKNOWN`].
    pub cpu_wait: AtomicU64,
    /// Operations that were to have begun by the end and were not done, and how long the first of
    /// them had waited.
    pub backlog: AtomicU64,
    pub oldest: AtomicU64,
    /// Operations that began late though the client was free, and by how much in all.
    pub awaited: AtomicU64,
    pub lateness: AtomicU64,
    /// Completions after the end, and the longest latency among them.
    pub drained: AtomicU64,
    pub longest_drained: AtomicU64,
    /// When the client ended its work.
    pub ended: AtomicU64,
    /// Requests of a trace that began and that ended, and the bytes that they moved.
    pub begun: AtomicU64,
    pub finished: AtomicU64,
    pub bytes_read: AtomicU64,
    pub bytes_written: AtomicU64,
    /// Completions that failed in the measured span, by errno.
    pub errors: [AtomicU64; ERRNOS],
    /// Reads and writes of the warm-up.
    pub warm_reads: Bank,
    pub warm_writes: Bank,
    pub read_service: Bank,
    pub read_response: Bank,
    pub write_service: Bank,
    pub write_response: Bank,
    pub sync_service: Bank,
}

impl Page {
    /// Notes why the client gave up.
    pub fn fail(&self, failure: Failure) {
        self.errno.store(failure.errno, Relaxed);
        self.offset.store(failure.offset, Relaxed);
        self.stage.store(failure.stage.code(), Release);
    }

    pub fn failure(&self) -> Option<Failure> {
        let stage = crate::error::Stage::from_code(self.stage.load(Acquire))?;
        Some(Failure { stage, errno: self.errno.load(Relaxed), offset: self.offset.load(Relaxed) })
    }
}

/// The mapping of a file in memory that has no name.
pub(crate) struct Board {
    file: File,
    base: *mut u8,
    length: usize,
    clients: usize,
}

// SAFETY: everything in the mapping is atomic, and the mapping lives as long as the Board.
unsafe impl Send for Board {}
// SAFETY: as above.
unsafe impl Sync for Board {}

impl Board {
    pub fn new(clients: usize) -> io::Result<Self> {
        // SAFETY: a terminated string and a constant.
        let file = match unsafe { libc::memfd_create(c"load".as_ptr(), libc::MFD_CLOEXEC) } {
            -1 => return Err(io::Error::last_os_error()),
            // SAFETY: just made, and nobody else's.
            fd => unsafe { File::from_raw_fd(fd) },
        };
        file.set_len(Board::length(clients) as u64)?;
        Board::map(file, clients)
    }

    /// The board of another process, which [`Board::path`] named there.
    pub fn open(path: &Path, clients: usize) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != Board::length(clients) as u64 {
            return Err(io::Error::other(format!(
                "{} is no memory shared by {clients} clients",
                path.display()
            )));
        }
        Board::map(file, clients)
    }

    fn map(file: File, clients: usize) -> io::Result<Self> {
        let length = Board::length(clients);
        // SAFETY: a new mapping of a file as long; nobody shortens it.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Board { file, base: base.cast(), length, clients })
    }

    /// Most of it is never touched, and takes no memory.
    fn length(clients: usize) -> usize {
        size_of::<Control>() + clients * size_of::<Page>()
    }

    /// Where a child of this process opens it.
    pub fn path(&self) -> PathBuf {
        held_path(self.file.as_raw_fd())
    }

    pub fn clients(&self) -> usize {
        self.clients
    }

    pub fn control(&self) -> &Control {
        // SAFETY: the mapping begins with a Control, for which zeroes are valid; it is page-aligned.
        unsafe { &*self.base.cast() }
    }

    pub fn page(&self, client: usize) -> &Page {
        assert!(client < self.clients);
        // SAFETY: in bounds as asserted; pages are aligned because both sizes are multiples of 4096.
        unsafe { &*self.base.add(size_of::<Control>() + client * size_of::<Page>()).cast::<Page>() }
    }

    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        (0..self.clients).map(|client| self.page(client))
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference into it outlives the Board.
        unsafe { libc::munmap(self.base.cast(), self.length) };
    }
}

/// Adds to a cell of which the caller is the one writer.
pub(crate) fn add(cell: &AtomicU64, more: u64) {
    cell.store(cell.load(Relaxed) + more, Relaxed);
}
