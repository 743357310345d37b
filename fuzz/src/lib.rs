//! What every execution of a target holds to: memory in proportion to its input, and no hang. Panics are
//! libFuzzer's own to see.

pub mod run_file;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

/// Bytes that reading may take for each byte of input, and what it may take beside.
const PROPORTION: usize = 100;
const FREE: usize = 64 << 20;

/// Counts what is allocated.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What takes longer hangs: time of the processor, for a busy machine may stop the program as long as it likes.
const HANG: Duration = Duration::from_secs(1);

/// Time that this thread has had of the processor.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to the address of one.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0, "a thread's processor time cannot be read");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Reads an input, and panics where that took more memory than an input of its length may, or too long.
pub fn bounded(input: &[u8], read: impl Fn()) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let begun = processor_time();
    read();
    let taken = MOST.load(Relaxed) - before;
    let limit = PROPORTION * input.len() + FREE;
    assert!(taken <= limit, "{taken} bytes for an input of {}", input.len());
    let lasted = processor_time() - begun;
    assert!(lasted < HANG, "an input of {} bytes takes {lasted:?} of the processor", input.len());
}

/// The format that is fuzzed, as its name stands in the environment; `None`: whatever the content says.
pub fn named<T: Copy + std::fmt::Display>(all: &[T]) -> Option<T> {
    let name = std::env::var("SPINDLE_FUZZ").ok().filter(|name| name != "all")?;
    let found = all.iter().copied().find(|it| it.to_string() == name);
    Some(found.unwrap_or_else(|| panic!("SPINDLE_FUZZ={name} is no format")))
}
