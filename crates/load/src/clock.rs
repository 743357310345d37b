//! The one clock of measuring: CLOCK_MONOTONIC, which no correction of the wall clock moves.

use units::Nanos;

/// Something that tells the time. Tests have one that only they move.
pub(crate) trait Clock {
    fn now(&self) -> Nanos;
}

/// CLOCK_MONOTONIC.
#[derive(Clone, Copy)]
pub(crate) struct Monotonic;

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> Nanos {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one timespec; cannot fail for this clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }
}
