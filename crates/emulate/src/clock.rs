//! The wall clock, sleeping precisely, and a thread that is woken in time.

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
const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// Processor time of this process, its threads that have ended included.
pub fn processor_time() -> Nanos {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * SECOND + time.tv_nsec as u64)
}

/// An alarm at a moment of CLOCK_MONOTONIC. Any thread may set it; one waits for it.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// Not set.
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Sets it, in place of what was set; a moment that has passed rings at once.
    pub fn set(&self, at: u64) -> io::Result<()> {
        // Zero would switch it off.
        let at = at.max(1);
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

/// What a thread was given so that it wakes in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Real-time scheduling (SCHED_FIFO): it runs as soon as it is woken.
    RealTime,
    /// A thread like others: a busy machine makes it late.
    Ordinary,
}

/// Makes the calling thread one that sleeps precisely and runs when it wakes, as far as it may.
///
/// The priority is the lowest real-time one: it is before all ordinary threads and after whatever the
/// machine's owner made real-time.
pub fn hurry() -> Urgency {
    // Affects sleeps other than timerfd's; not having it costs precision only.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    real_time(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK)
}

/// The same for the threads that this one begins from now on.
pub fn hurry_with_children() -> Urgency {
    real_time(libc::SCHED_FIFO)
}

/// Keeps idle processors awake while there is something to be on time for.
///
/// A processor that has halted runs again some time after it is woken: a virtual one, hundreds of
/// microseconds. The kernel's own means against that is the latency that whoever holds
/// `/dev/cpu_dma_latency` open can bear; it ends with its holder, however that ends.
///
/// A virtual processor that never halts has no pause in which the host could run what else it has, and
/// is stopped for that, for as long as the host's scheduler thinks fit: for 8 ms, every eight seconds,
/// where it was looked at. One that may halt now and then is not: so the vigil may have pauses.
#[derive(Debug)]
pub struct Vigil {
    file: Option<File>,
    /// When it ends unless there is more to do; it is not kept without.
    until: Option<u64>,
    pauses: bool,
    /// Processors may halt just now.
    pausing: bool,
    /// When a pause begins or ends.
    turns: u64,
}

impl Vigil {
    /// Not kept yet. Where it may not be, processors halt as they do.
    pub fn new(pauses: bool) -> Vigil {
        let file = File::options().write(true).open("/dev/cpu_dma_latency").ok();
        Vigil { file, until: None, pauses, pausing: false, turns: 0 }
    }

    /// Keeps it now if somebody is `busy`, and [`Vigil::LASTS`] longer; says when to look again.
    pub fn watch(&mut self, busy: bool, now: u64) -> Option<u64> {
        if busy {
            if self.until.is_none() {
                self.pause(false, now);
            }
            self.until = Some(now + Vigil::LASTS);
        } else if self.until.is_some_and(|until| until <= now) {
            self.pause(true, now);
            self.until = None;
        }
        let until = self.until?;
        if !self.pauses {
            return Some(until);
        }
        if self.turns <= now {
            self.pause(!self.pausing, now);
        }
        Some(until.min(self.turns))
    }

    fn pause(&mut self, pausing: bool, now: u64) {
        self.pausing = pausing;
        self.turns = now + if pausing { Vigil::PAUSE } else { Vigil::AWAKE };
        self.bear(if pausing { Vigil::ANY } else { 0 });
    }

    /// So long after the last request.
    pub const LASTS: u64 = SECOND;

    /// Between two pauses.
    const AWAKE: u64 = 48 * MILLISECOND;

    /// Enough, once in [`Vigil::AWAKE`], for none to be stopped; 1 ms in 20 was not.
    const PAUSE: u64 = 2 * MILLISECOND;

    /// As long as halted processors may need, microseconds: the kernel's own default.
    const ANY: i32 = 2_000_000_000;

    fn bear(&self, micros: i32) {
        if let Some(mut file) = self.file.as_ref() {
            // Where it is refused, wake-ups are later; that is measured.
            let _ = file.write_all(&micros.to_ne_bytes());
        }
    }
}

/// Tells the kernel that other processes' I/O waits for this one (PR_SET_IO_FLUSHER, Linux 5.6), so
/// that its own need of memory never waits for that I/O. For all threads that are begun after this.
pub fn be_storage() {
    /// As in linux/prctl.h.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: the call takes numbers only. Where it is refused, scarce memory may make us slow.
    let _ = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

fn real_time(policy: libc::c_int) -> Urgency {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: thread 0 is the calling one; the kernel reads one `struct sched_param`, which this is.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const priority) } {
        0 => Urgency::RealTime,
        _ => Urgency::Ordinary,
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
            let until = now() + ahead;
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
    fn a_vigil_pauses_and_lasts_a_second_longer_than_there_is_something_to_do() {
        let mut vigil = Vigil::new(true);
        assert_eq!(vigil.watch(false, 5), None);
        let pause = 5 + Vigil::AWAKE;
        assert_eq!(vigil.watch(true, 5), Some(pause));
        assert!(least().is_none_or(|micros| micros == 0));
        assert_eq!(vigil.watch(false, 6), Some(pause));
        assert_eq!(vigil.watch(true, 7), Some(pause));
        let awake = pause + Vigil::PAUSE;
        assert_eq!(vigil.watch(false, pause), Some(awake));
        assert!(vigil.pausing);
        assert_eq!(vigil.watch(false, awake), Some(awake + Vigil::AWAKE));
        assert!(least().is_none_or(|micros| micros == 0));
        assert_eq!(vigil.watch(false, 7 + SECOND), None);
        // What comes after a long while finds it kept, not in a pause.
        assert_eq!(vigil.watch(true, 9 * SECOND), Some(9 * SECOND + Vigil::AWAKE));
        assert!(!vigil.pausing);

        let mut vigil = Vigil::new(false);
        assert_eq!(vigil.watch(true, 5), Some(5 + SECOND));
        assert_eq!(vigil.watch(false, 6), Some(5 + SECOND));
        assert_eq!(vigil.watch(false, 5 + SECOND), None);
    }

    #[test]
    fn an_alarm_in_the_past_rings_at_once() {
        let alarm = Alarm::new().unwrap();
        alarm.set(0).unwrap();
        alarm.wait().unwrap();
    }
}
