//! The times of a trial, on whichever clock its world has: CLOCK_MONOTONIC or virtual time.

use crate::Phase;
use units::Nanos;

const SECOND: Nanos = Nanos::from_secs(1);

/// When a trial's clients begin, when measuring begins and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialClock {
    /// The clients begin.
    pub start: Nanos,
    /// Warm-up ends and measuring begins.
    pub measure: Nanos,
    /// Measuring ends.
    pub end: Nanos,
}

impl TrialClock {
    /// Of a trial that begins at `start`.
    pub fn new(start: Nanos, warmup: Nanos, measure: Nanos) -> TrialClock {
        let begin = start + warmup;
        TrialClock { start, measure: begin, end: begin + measure }
    }

    /// When to look next, after a look at `last`: the next whole second before or after the end of
    /// warm-up, that moment itself, or the end.
    pub fn next_tick(&self, last: Nanos) -> Nanos {
        self.next_tick_of(last, SECOND)
    }

    /// The same with another length than a second.
    pub fn next_tick_of(&self, last: Nanos, length: Nanos) -> Nanos {
        let length = length.0.max(1);
        let next = match last < self.measure {
            true => {
                let left = (self.measure - last).0;
                self.measure - Nanos((left - 1) / length * length)
            }
            false => {
                let ticks = (last - self.measure).0 / length;
                self.measure + Nanos((ticks + 1) * length)
            }
        };
        next.min(self.end)
    }

    /// Seconds from the end of warm-up: the time axis of every sample of a trial.
    pub fn axis(&self, at: Nanos) -> f64 {
        (at.0 as f64 - self.measure.0 as f64) / 1e9
    }

    /// The phase of a second that ends at `at`.
    pub fn phase(&self, at: Nanos) -> Phase {
        if at <= self.measure { Phase::WarmUp } else { Phase::Measuring }
    }

    /// Whether what completes at `at` counts.
    #[inline]
    pub fn counts(&self, at: Nanos) -> bool {
        at >= self.measure && at < self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ticks(clock: TrialClock) -> Vec<u64> {
        let mut ticks = Vec::new();
        let mut last = clock.start;
        while last < clock.end {
            last = clock.next_tick(last);
            ticks.push(last.0 / 1_000_000);
        }
        ticks
    }

    #[test]
    fn ticks_are_whole_seconds_around_the_end_of_warm_up() {
        let ms = Nanos::from_millis;
        let clock = TrialClock::new(ms(100), ms(1500), ms(2300));
        assert_eq!(ticks(clock), [600, 1600, 2600, 3600, 3900]);
        assert_eq!(ticks(TrialClock::new(ms(0), ms(0), ms(500))), [500]);
        assert_eq!((clock.axis(ms(600)), clock.axis(ms(3900))), (-1.0, 2.3));
        assert_eq!(
            (clock.phase(ms(1600)), clock.phase(ms(1601))),
            (Phase::WarmUp, Phase::Measuring)
        );
    }

    proptest! {
        #[test]
        fn ticks_advance_to_the_end(start in 0u64..1 << 40, warmup in 0u64..1 << 34, measure in 1u64..1 << 34) {
            let clock = TrialClock::new(Nanos(start), Nanos(warmup), Nanos(measure));
            let mut last = clock.start;
            while last < clock.end {
                let next = clock.next_tick(last);
                prop_assert!(next > last && (next - last).0 <= SECOND.0);
                last = next;
            }
            prop_assert_eq!(last, clock.end);
        }
    }
}
