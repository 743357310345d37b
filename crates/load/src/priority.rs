//! I/O priorities: ioprio_set(2), and reading back what the kernel took.

use std::io;
use workload::{IoClass, IoPriority};

const WHO_PROCESS: i32 = 1;

/// The kernel's number: class in the bits from 13, level below.
pub(crate) fn kernel_number(priority: IoPriority) -> u16 {
    let class = match priority.class {
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    };
    class << 13 | u16::from(priority.level)
}

/// Sets the calling thread's priority and verifies it.
pub(crate) fn set(priority: IoPriority) -> io::Result<()> {
    let number = i32::from(kernel_number(priority));
    // SAFETY: three integers; 0 is the calling thread.
    if unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, number) } != 0 {
        return Err(io::Error::last_os_error());
    }
    match get(0)? {
        set if set == number => Ok(()),
        other => Err(io::Error::other(format!("asked for {number}, the kernel has {other}"))),
    }
}

/// A thread's priority, by the kernel's number; 0 is the calling thread.
pub(crate) fn get(thread: i32) -> io::Result<i32> {
    // SAFETY: two integers.
    match unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, thread) } {
        -1 => Err(io::Error::last_os_error()),
        number => Ok(number as i32),
    }
}
