//! What making the load costs: CPU time by getrusage(2), and of io_uring's kernel workers.

use std::fs;
use units::Nanos;

/// CPU time in user mode and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpu {
    pub user: Nanos,
    pub system: Nanos,
}

impl Cpu {
    /// Of the calling thread.
    pub fn of_thread() -> Self {
        usage(libc::RUSAGE_THREAD)
    }

    /// Of the calling process with all its threads, io_uring's workers included.
    pub fn of_process() -> Self {
        usage(libc::RUSAGE_SELF)
    }

    pub fn since(self, earlier: Cpu) -> Cpu {
        Cpu {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

fn usage(who: i32) -> Cpu {
    // SAFETY: zeroes are a valid rusage, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let nanos = |time: libc::timeval| {
        Nanos(time.tv_sec as u64 * 1_000_000_000) + Nanos::from_micros(time.tv_usec as u64)
    };
    Cpu { user: nanos(usage.ru_utime), system: nanos(usage.ru_stime) }
}

/// CPU time of this process's io_uring workers: kernel threads that do what could not be done
/// without blocking. They count to no client thread, but to the load they do.
pub(crate) fn io_uring_workers() -> Nanos {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Nanos::ZERO;
    };
    tasks
        .flatten()
        .filter(|task| {
            fs::read_to_string(task.path().join("comm"))
                .is_ok_and(|name| name.starts_with("iou-wrk-"))
        })
        .filter_map(|task| {
            // Its first field is the time on a CPU in nanoseconds (proc documentation, schedstat).
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse().ok().map(Nanos)
        })
        .fold(Nanos::ZERO, |sum, time| sum + time)
}
