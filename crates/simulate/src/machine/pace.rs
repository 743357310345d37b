//! Throttling writers while too much is dirty.

use super::write_back::{Mode, WriteOut};
use super::{BY_WRITER, Frame, Machine, Step, TaskId};
use blocklayer::Kernel;
use device::Device;
use units::Nanos;

/// How fast pages were written recently; since Linux 3.2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Pages written since the beginning.
    pub written: u64,
    /// Pages per second, smoothed.
    rate: f64,
    /// Tasks that write.
    dirtiers: f64,
    seen: u64,
    at: Nanos,
}

impl Default for Pace {
    /// The assumed rate before it has been measured: 100 MB/s. Assumed.
    fn default() -> Self {
        Pace { written: 0, rate: 25_600.0, dirtiers: 1.0, seen: 0, at: Nanos::ZERO }
    }
}

/// How often the rate is updated.
const LOOK: Nanos = Nanos::from_millis(200);
/// The longest pause.
const MAX_PAUSE: Nanos = Nanos::from_millis(200);
/// The shortest pause; shorter ones accumulate.
const MIN_PAUSE: Nanos = Nanos::from_millis(10);
/// How long a writer over the limit waits for congestion to end.
const WAIT: Nanos = Nanos::from_millis(100);

impl<D: Device + ?Sized> Machine<D> {
    /// Pages of dirty data above which the flusher works in the background, and above which writers
    /// are throttled: vm.dirty_background_ratio and vm.dirty_ratio of the memory.
    pub(super) fn thresholds(&self) -> (u64, u64) {
        let memory = self.cache.capacity();
        match self.kernel.is_2_6_18() {
            true => (memory / 10, memory * 2 / 5),
            false => (memory / 10, memory / 5),
        }
    }

    fn unclean(&self) -> u64 {
        self.cache.dirty() + self.cache.under_write()
    }

    /// Decides whether the flusher has to work, and whether this writer is throttled.
    pub(super) fn must_balance(&mut self, id: TaskId) -> bool {
        let unclean = self.unclean();
        let (background, max) = self.thresholds();
        if unclean > background {
            self.wake_flusher();
        }
        if self.kernel < Kernel::V3_10 {
            return unclean > max;
        }
        if unclean <= (background + max) / 2 {
            self.tasks[id as usize].dirtied = 0;
            return false;
        }
        let pause = self.pause(id, unclean);
        pause >= MIN_PAUSE
    }

    /// Before 3.2, a writer over the limit writes back pages itself until it is below; since then it pauses,
    /// so that all writers together proceed at the device's rate ("No-I/O dirty throttling").
    pub(super) fn throttle(&mut self, id: TaskId) -> Step {
        let unclean = self.unclean();
        if self.kernel >= Kernel::V3_10 {
            let pause = self.pause(id, unclean).min(MAX_PAUSE);
            self.tasks[id as usize].dirtied = 0;
            if pause < MIN_PAUSE {
                return Step::Done;
            }
            self.counts.throttled += pause;
            self.set_timer(id, self.now + pause);
            return Step::Wait(Frame::Throttle);
        }
        if unclean <= self.thresholds().1 {
            return Step::Done;
        }
        let task = &mut self.tasks[id as usize];
        let tried = std::mem::replace(&mut task.congested, false);
        if tried {
            self.counts.throttled += WAIT;
            self.set_timer(id, self.now + WAIT);
            return Step::Wait(Frame::Throttle);
        }
        // With nothing left to write, it waits for write-back.
        match self.next_dirty_file() {
            Some(file) => {
                self.tasks[id as usize].congested = true;
                let out = WriteOut::some_of(file, Mode::Blocking(BY_WRITER), self.cursor_of(file));
                Step::Call(Frame::Throttle, Frame::WriteOut(out))
            }
            None => {
                self.counts.throttled += WAIT;
                self.set_timer(id, self.now + WAIT);
                Step::Wait(Frame::Throttle)
            }
        }
    }

    /// How long a task that dirtied this many pages pauses: by its share of the device's rate, which falls
    /// towards the limit by the factor 1 + ((setpoint − dirty)/(limit − setpoint))³.
    fn pause(&mut self, id: TaskId, unclean: u64) -> Nanos {
        self.look_at_pace();
        let (background, max) = self.thresholds();
        let free = (background + max) / 2;
        let setpoint = ((free + max) / 2) as f64;
        let x = (setpoint - unclean as f64) / (max as f64 - setpoint).max(1.0);
        let weight = (1.0 + x.powi(3)).clamp(0.01, 2.0);
        let rate = (self.pace.rate / self.pace.dirtiers * weight).max(1.0);
        Nanos::from_secs_f64(f64::from(self.tasks[id as usize].dirtied) / rate)
    }

    fn look_at_pace(&mut self) {
        let span = self.now - self.pace.at;
        if span < LOOK {
            return;
        }
        let recent = self.now.saturating_sub(Nanos::from_secs(1));
        let writes = |task: &&super::Task| task.last_dirtied >= recent;
        self.pace.dirtiers = self.tasks.iter().filter(writes).count().max(1) as f64;
        let rate = (self.pace.written - self.pace.seen) as f64 / span.as_secs_f64();
        // Smoothed over about three seconds.
        let share = (span.as_secs_f64() / 3.0).min(1.0);
        if rate > 0.0 {
            self.pace.rate += (rate - self.pace.rate) * share;
        }
        (self.pace.seen, self.pace.at) = (self.pace.written, self.now);
    }
}
