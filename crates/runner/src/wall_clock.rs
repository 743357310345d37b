//! Whether the host's clock was set while a trial ran. Trials are timed by clocks that nobody sets; what is
//! told in times of day is not in order then.

use record::Warning;
use std::time::{Duration, Instant, SystemTime};

/// A step that counts: corrections of the clock's rate stay far below this in any trial.
const STEP_MIN: Duration = Duration::from_secs(1);

/// The host's clock, beside one that nobody sets, at a moment.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    wall: SystemTime,
    steady: Instant,
}

impl WallClock {
    /// Now.
    pub fn now() -> WallClock {
        WallClock { wall: SystemTime::now(), steady: Instant::now() }
    }

    /// Whether it was set since.
    pub fn was_set(self) -> Option<Warning> {
        step(self.wall + self.steady.elapsed(), SystemTime::now())
    }
}

/// From what the clock should say and what it says.
fn step(expected: SystemTime, found: SystemTime) -> Option<Warning> {
    let (by, sign) = match found.duration_since(expected) {
        Ok(ahead) => (ahead, 1),
        Err(back) => (back.duration(), -1),
    };
    (by >= STEP_MIN).then(|| Warning::ClockSet { by_seconds: sign * by.as_secs() as i64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_either_way_is_told_and_a_correction_is_not() {
        let expected = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let warned = |found| step(expected, found);
        assert_eq!(warned(expected), None);
        assert_eq!(warned(expected + Duration::from_millis(900)), None);
        let hour = Duration::from_secs(3600);
        assert_eq!(warned(expected + hour), Some(Warning::ClockSet { by_seconds: 3600 }));
        assert_eq!(warned(expected - hour), Some(Warning::ClockSet { by_seconds: -3600 }));
    }
}
