//! When operations are to begin, where load is offered at a rate.

use crate::{Arrivals, BURST, BURST_PERIOD, Rate};
use random::Stream;
use units::Nanos;

/// One client's intended starts. What is due but not taken stays due: that is the backlog, and no
/// start is ever skipped or moved.
pub struct Schedule {
    start: Nanos,
    /// From `start` to the next arrival, in nanoseconds; where load comes in bursts, of their time alone. A double counts
    /// whole nanoseconds exactly for 104 days.
    next_ns: f64,
    gap_ns: f64,
    taken: u64,
    first_ns: f64,
    poisson: Option<Stream>,
    bursts: bool,
}

impl Schedule {
    /// Of one of `clients` that share `rate` evenly.
    pub fn new(
        rate: Rate,
        (client, clients): (u32, u32),
        start: Nanos,
        mut stream: Stream,
    ) -> Self {
        let bursts = rate.arrivals == Arrivals::Bursts;
        let share = if bursts { BURST.0 as f64 / BURST_PERIOD.0 as f64 } else { 1.0 };
        let gap_ns = share * 1e9 * f64::from(clients) / rate.per_second;
        let (first_ns, poisson) = match rate.arrivals {
            // Evenly spaced over all clients, too.
            Arrivals::Fixed => (gap_ns * f64::from(client) / f64::from(clients), None),
            Arrivals::Poisson | Arrivals::Bursts => (stream.exponential(gap_ns), Some(stream)),
        };
        Schedule { start, next_ns: first_ns, gap_ns, taken: 0, first_ns, poisson, bursts }
    }

    /// When the next operation is to begin.
    #[inline]
    pub fn next(&self) -> Nanos {
        let next = self.next_ns as u64;
        self.start
            + Nanos(match self.bursts {
                true => next / BURST.0 * BURST_PERIOD.0 + next % BURST.0,
                false => next,
            })
    }

    /// Takes it.
    #[inline]
    pub fn take(&mut self) {
        self.taken += 1;
        self.next_ns = match &mut self.poisson {
            Some(stream) => self.next_ns + stream.exponential(self.gap_ns),
            // Multiplied, not added: no error accumulates.
            None => self.first_ns + self.taken as f64 * self.gap_ns,
        };
    }

    /// About how many more are due before `end`: the next one, and the mean number after it.
    pub fn due_before(&self, end: Nanos) -> u64 {
        if end <= self.next() {
            return 0;
        }
        let end = (end - self.start).0;
        let end = match self.bursts {
            true => end / BURST_PERIOD.0 * BURST.0 + (end % BURST_PERIOD.0).min(BURST.0),
            false => end,
        };
        1 + ((end - 1).saturating_sub(self.next_ns as u64) as f64 / self.gap_ns) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(rate: &str, client: (u32, u32)) -> Schedule {
        Schedule::new(rate.parse().unwrap(), client, Nanos(1000), Stream::new(1, "test"))
    }

    #[test]
    fn fixed_arrivals_of_all_clients_interleave() {
        let taken = |client| {
            let mut schedule = schedule("fixed:1000/s", (client, 2));
            [(); 3].map(|()| {
                let next = schedule.next().0;
                schedule.take();
                next
            })
        };
        assert_eq!(taken(0), [1000, 2_001_000, 4_001_000]);
        assert_eq!(taken(1), [1_001_000, 3_001_000, 5_001_000]);
    }

    #[test]
    fn bursts_have_the_rate_and_fall_into_their_part_of_each_period() {
        let mut schedule = schedule("bursts:400/s", (0, 4));
        let due = schedule.due_before(Nanos(1000) + BURST_PERIOD * 100);
        assert!((4700..5300).contains(&due), "{due}");
        let mut arrivals = 0;
        while schedule.next() < Nanos(1000) + BURST_PERIOD * 100 {
            let within = (schedule.next() - Nanos(1000)).0 % BURST_PERIOD.0;
            assert!(within < BURST.0, "{within}");
            schedule.take();
            arrivals += 1;
        }
        assert!((4700..5300).contains(&arrivals), "{arrivals} of 5,000");
        let end = schedule.next();
        assert_eq!((schedule.due_before(end), schedule.due_before(end + Nanos(1))), (0, 1));
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_varied_gaps() {
        let mut schedule = schedule("2000/s", (0, 4));
        let mut gaps = Vec::new();
        for _ in 0..20_000 {
            let before = schedule.next();
            schedule.take();
            gaps.push((schedule.next() - before).0 as f64);
        }
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation =
            (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 2e6 - 1.0).abs() < 0.03, "{mean}");
        assert!((deviation / mean - 1.0).abs() < 0.05, "exponential: deviation equals mean");
    }
}
