//! What making the load costs: CPU time by getrusage(2), and of io_uring's kernel workers.

use std::fs;
use units::{Bytes, Nanos};

/// CPU time in user mode and in the kernel, and waiting for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cpu {
    pub user: Nanos,
    pub system: Nanos,
    /// Ready to run and not running: of the calling thread alone. None where the kernel keeps no count.
    pub wait: Option<Nanos>,
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
            wait: self.wait.zip(earlier.wait).map(|(now, then)| now.saturating_sub(then)),
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
    let schedstat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Cpu { user: nanos(usage.ru_utime), system: nanos(usage.ru_stime), wait: waited(&schedstat) }
}

/// What a thread's `schedstat` file says that it waited for a processor: its second field (kernel's
/// documentation, sched-stats). A kernel that keeps no such count writes zeroes, also as the time of
/// a thread that runs.
fn waited(schedstat: &str) -> Option<Nanos> {
    let mut fields = schedstat.split(' ').map(str::parse::<u64>);
    match (fields.next(), fields.next()) {
        (Some(Ok(1..)), Some(Ok(waited))) => Some(Nanos(waited)),
        _ => None,
    }
}

/// What this process's io_uring workers have done: kernel threads that do what could not be done
/// without blocking. They count to no client thread, but to the load they do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Workers {
    /// Their CPU time.
    pub cpu: Nanos,
    /// What they read and wrote.
    pub moved: Bytes,
}

impl Workers {
    /// Of those that are there now.
    pub fn now() -> Workers {
        let Ok(tasks) = fs::read_dir("/proc/self/task") else {
            return Workers::default();
        };
        let mut all = Workers::default();
        for task in tasks.flatten() {
            let read = |name: &str| fs::read_to_string(task.path().join(name)).unwrap_or_default();
            if read("comm").starts_with("iou-wrk-") {
                // Its first field is the time on a CPU in nanoseconds (proc documentation, schedstat).
                let cpu = read("schedstat").split(' ').next().and_then(|field| field.parse().ok());
                all.cpu += Nanos(cpu.unwrap_or(0));
                all.moved.0 += moved(&read("io"));
            }
        }
        all
    }
}

/// What a task's `io` file says that it made devices read and write.
fn moved(io: &str) -> u64 {
    let lines = io.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter(|(name, _)| matches!(*name, "read_bytes" | "write_bytes"))
        .filter_map(|(_, bytes)| bytes.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waited_if_the_kernel_counts_that() {
        assert_eq!(waited("4711 815 3\n"), Some(Nanos(815)));
        assert_eq!(waited("0 0 0\n"), None);
        assert_eq!(waited(""), None);
    }

    #[test]
    fn a_task_moved_what_it_read_and_wrote() {
        let io =
            "rchar: 9\nsyscr: 1\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 7\n";
        assert_eq!(moved(io), 4608);
        assert_eq!(moved(""), 0);
    }
}
