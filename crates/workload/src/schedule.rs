//! When operations are to begin, where load is offered at a rate.

use crate::{Arrivals, Rate};
use random::Stream;
use units::Nanos;

/// One client's intended starts. What is due but not taken stays due: that is the backlog, and no
/// start is ever skipped or moved.
pub struct Schedule {
    start: Nanos,
    /// From `start` to the next arrival, in nanoseconds. A double counts whole nanoseconds exactly
    /// for 104 days.
    next_ns: f64,
    gap_ns: f64,
    taken: u64,
    first_ns: f64,
    poisson: Option<Stream>,
}

impl Schedule {
    /// Of one of `clients` that share `rate` evenly.
    pub fn new(
        rate: Rate,
        (client, clients): (u32, u32),
        start: Nanos,
        mut stream: Stream,
    ) -> Self {
        let gap_ns = 1e9 * f64::from(clients) / rate.per_second;
        let (first_ns, poisson) = match rate.arrivals {
            // Evenly spaced over all clients, too.
            Arrivals::Fixed => (gap_ns * f64::from(client) / f64::from(clients), None),
            Arrivals::Poisson => (stream.exponential(gap_ns), Some(stream)),
        };
        Schedule { start, next_ns: first_ns, gap_ns, taken: 0, first_ns, poisson }
    }

    /// When the next operation is to begin.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.start + Nanos(self.next_ns as u64)
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
        match end.saturating_sub(self.next()) {
            Nanos::ZERO => 0,
            wait => 1 + ((wait.0 - 1) as f64 / self.gap_ns) as u64,
        }
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
