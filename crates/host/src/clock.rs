//! The clock that nobody sets.

use units::Nanos;

/// The moment that it is now on CLOCK_MONOTONIC, which is the clock of the kernel's log, too.
pub fn monotonic_now() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}
