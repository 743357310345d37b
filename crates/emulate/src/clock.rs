//! The wall clock, precise sleeping, and what wakes a thread in time.

use rustix::{
    fd::OwnedFd,
    io::Errno,
    thread::set_current_timer_slack,
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
        clock_gettime, timerfd_create, timerfd_settime,
    },
};
use std::{
    fs::File,
    io::{self, Write},
    num::NonZeroU64,
};
use units::Nanos;

const SECOND: u64 = 1_000_000_000;

/// A moment of CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallInstant(pub u64);

impl WallInstant {
    /// Later than every other.
    pub const NEVER: WallInstant = WallInstant(u64::MAX);

    /// The time from `earlier` to this; zero where it is not earlier.
    #[inline]
    pub fn since(self, earlier: WallInstant) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment `time` before this, or the clock's zero.
    #[inline]
    pub fn before(self, time: Nanos) -> WallInstant {
        WallInstant(self.0.saturating_sub(time.0))
    }
}

impl std::ops::Add<Nanos> for WallInstant {
    type Output = WallInstant;
    #[inline]
    fn add(self, time: Nanos) -> WallInstant {
        WallInstant(self.0 + time.0)
    }
}

/// The present moment.
#[inline]
pub fn now() -> WallInstant {
    let time = clock_gettime(ClockId::Monotonic);
    WallInstant(time.tv_sec as u64 * SECOND + time.tv_nsec as u64)
}

/// Processor time of this process, including threads that have ended.
pub fn processor_time() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * SECOND + time.tv_nsec as u64)
}

/// A timer that rings at a moment. Any thread may set it; one waits for it.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// Not set.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Sets it, replacing what was set; a moment in the past rings at once.
    pub fn set(&self, at: WallInstant) -> io::Result<()> {
        // Zero would switch it off.
        let at = at.0.max(1);
        let it_value = Timespec { tv_sec: (at / SECOND) as i64, tv_nsec: (at % SECOND) as i64 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let time = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &time)?;
        Ok(())
    }

    /// Sleeps until it rings.
    pub fn wait(&self) -> io::Result<()> {
        let mut rings = [0; 8];
        loop {
            match rustix::io::read(&self.0, &mut rings) {
                Err(Errno::INTR) => {}
                other => return Ok(other.map(drop)?),
            }
        }
    }
}

/// How the pacing thread is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Real-time scheduling (SCHED_FIFO): it runs as soon as it is woken.
    RealTime,
    /// Like other threads: a busy machine makes it late.
    Ordinary,
}

/// Gives the calling thread real-time scheduling and precise sleeping, as far as it is permitted.
///
/// The priority is the lowest real-time one: above all ordinary threads, and below whatever the
/// machine's owner made real-time.
pub fn set_realtime() -> Scheduling {
    // For sleeps other than timerfd's; without it they are less precise.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    real_time(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK)
}

/// The same, inherited by the threads that this one starts from now on.
pub fn set_realtime_with_children() -> Scheduling {
    real_time(libc::SCHED_FIFO)
}

/// Keeps idle processors from halting while completions have to be on time.
///
/// A halted processor takes time to run again: a virtual one, hundreds of microseconds. The kernel lets a
/// process bound that latency by holding `/dev/cpu_dma_latency` open; the bound ends with the process.
///
/// A virtual processor that never halts gives its host no opportunity to run other work, and the host
/// preempts it instead (observed: 8 ms every eight seconds). One that halts now and then is not
/// preempted: hence the pauses.
#[derive(Debug)]
pub struct CpuLatencyGuard {
    file: Option<File>,
    /// When it ends unless more requests arrive; `None` while it does not hold.
    until: Option<WallInstant>,
    pauses: bool,
    /// Processors may halt now.
    pausing: bool,
    /// When the next pause begins, or this one ends.
    turn: WallInstant,
}

impl CpuLatencyGuard {
    /// Does not hold yet. Without permission to open the file, processors halt as usual.
    pub fn new(pauses: bool) -> CpuLatencyGuard {
        let file = File::options().write(true).open("/dev/cpu_dma_latency").ok();
        CpuLatencyGuard { file, until: None, pauses, pausing: false, turn: WallInstant(0) }
    }

    /// Holds while requests are outstanding (`busy`) and [`CpuLatencyGuard::HOLD`] longer; returns when
    /// to call it again.
    pub fn update(&mut self, busy: bool, now: WallInstant) -> Option<WallInstant> {
        if busy {
            if self.until.is_none() {
                self.pause(false, now);
            }
            self.until = Some(now + CpuLatencyGuard::HOLD);
        } else if self.until.is_some_and(|until| until <= now) {
            self.pause(true, now);
            self.until = None;
        }
        let until = self.until?;
        if !self.pauses {
            return Some(until);
        }
        if self.turn <= now {
            self.pause(!self.pausing, now);
        }
        Some(until.min(self.turn))
    }

    fn pause(&mut self, pausing: bool, now: WallInstant) {
        self.pausing = pausing;
        self.turn = now + if pausing { CpuLatencyGuard::PAUSE } else { CpuLatencyGuard::AWAKE };
        self.set_latency_us(if pausing { CpuLatencyGuard::ANY_US } else { 0 });
    }

    /// How long it holds after the last request.
    pub const HOLD: Nanos = Nanos::from_secs(1);

    /// Between two pauses.
    const AWAKE: Nanos = Nanos::from_millis(48);

    /// Observed: once in [`CpuLatencyGuard::AWAKE`] this was enough for no preemption; 1 ms in 20 was not.
    const PAUSE: Nanos = Nanos::from_millis(2);

    /// Any latency: the kernel's default (PM_QOS_CPU_LATENCY_DEFAULT_VALUE).
    const ANY_US: i32 = 2_000_000_000;

    fn set_latency_us(&self, micros: i32) {
        if let Some(mut file) = self.file.as_ref() {
            // If this fails, wake-ups are later, which is measured.
            let _ = file.write_all(&micros.to_ne_bytes());
        }
    }
}

/// Tells the kernel that other processes' I/O depends on this one (PR_SET_IO_FLUSHER, Linux 5.6), so
/// that its memory allocations never wait for that I/O. Inherited by threads started after this.
pub fn set_io_flusher() {
    /// As in linux/prctl.h.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: the call takes numbers only. If it fails, scarce memory may make the server slow.
    let _ = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

fn real_time(policy: libc::c_int) -> Scheduling {
    /// `struct sched_param` as the kernel has it: musl's has more fields, and its sched_setscheduler(3) refuses all.
    #[repr(C)]
    struct Parameters {
        priority: libc::c_int,
    }
    let priority = Parameters { priority: 1 };
    // SAFETY: thread 0 is the calling one; the kernel reads one `struct sched_param`, which this is.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    match answer {
        0 => Scheduling::RealTime,
        _ => Scheduling::Ordinary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn an_alarm_rings_and_never_early() {
        let alarm = Alarm::new().unwrap();
        for ahead in [0, 1_000, 300_000] {
            let until = now() + Nanos(ahead);
            alarm.set(until).unwrap();
            alarm.wait().unwrap();
            assert!(now() >= until);
        }
    }

    /// The latency in microseconds that the kernel knows it must keep, where it tells.
    fn least() -> Option<i32> {
        match File::open("/dev/cpu_dma_latency") {
            Err(error) => {
                eprintln!("what the kernel says of it was not looked at: {error}");
                None
            }
            Ok(mut file) => {
                let mut least = [1; 4];
                file.read_exact(&mut least).unwrap();
                Some(i32::from_ne_bytes(least))
            }
        }
    }

    #[test]
    fn the_guard_pauses_and_holds_a_second_after_the_last_request() {
        let ns = WallInstant;
        let mut guard = CpuLatencyGuard::new(true);
        assert_eq!(guard.update(false, ns(5)), None);
        let pause = ns(5) + CpuLatencyGuard::AWAKE;
        assert_eq!(guard.update(true, ns(5)), Some(pause));
        assert!(least().is_none_or(|micros| micros == 0));
        assert_eq!(guard.update(false, ns(6)), Some(pause));
        assert_eq!(guard.update(true, ns(7)), Some(pause));
        let awake = pause + CpuLatencyGuard::PAUSE;
        assert_eq!(guard.update(false, pause), Some(awake));
        assert!(guard.pausing);
        assert_eq!(guard.update(false, awake), Some(awake + CpuLatencyGuard::AWAKE));
        assert!(least().is_none_or(|micros| micros == 0));
        assert_eq!(guard.update(false, ns(7 + SECOND)), None);
        // After a long idle time it holds at once, without a pause.
        let later = ns(9 * SECOND);
        assert_eq!(guard.update(true, later), Some(later + CpuLatencyGuard::AWAKE));
        assert!(!guard.pausing);

        let mut guard = CpuLatencyGuard::new(false);
        assert_eq!(guard.update(true, ns(5)), Some(ns(5 + SECOND)));
        assert_eq!(guard.update(false, ns(6)), Some(ns(5 + SECOND)));
        assert_eq!(guard.update(false, ns(5 + SECOND)), None);
    }

    #[test]
    fn an_alarm_in_the_past_rings_at_once() {
        let alarm = Alarm::new().unwrap();
        alarm.set(WallInstant(0)).unwrap();
        alarm.wait().unwrap();
    }
}
