//! When operations are to begin, where load is offered at a rate.

use plan::{Arrivals, Rate};
use random::Stream;
use units::Nanos;

/// One client's intended starts, from time zero. What is due but not taken stays due.
pub(crate) struct Schedule {
    next_ns: f64,
    first_ns: f64,
    gap_ns: f64,
    taken: u64,
    poisson: Option<Stream>,
}

impl Schedule {
    /// Of one of `clients` that share `rate` evenly.
    pub fn new(rate: Rate, (client, clients): (u32, u32), mut stream: Stream) -> Self {
        let gap_ns = 1e9 * f64::from(clients) / rate.per_second;
        let (first_ns, poisson) = match rate.arrivals {
            // Evenly spaced over all clients, too.
            Arrivals::Fixed => (gap_ns * f64::from(client) / f64::from(clients), None),
            Arrivals::Poisson => (stream.exponential(gap_ns), Some(stream)),
        };
        Schedule { next_ns: first_ns, first_ns, gap_ns, taken: 0, poisson }
    }

    /// When the next operation is to begin.
    #[inline]
    pub fn next(&self) -> Nanos {
        Nanos(self.next_ns as u64)
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
        Schedule::new(rate.parse().unwrap(), client, Stream::new(1, "test"))
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
        assert_eq!(taken(0), [0, 2_000_000, 4_000_000]);
        assert_eq!(taken(1), [1_000_000, 3_000_000, 5_000_000]);
    }

    #[test]
    fn poisson_arrivals_have_the_rate() {
        let mut schedule = schedule("2000/s", (0, 4));
        (0..20_000).for_each(|_| schedule.take());
        let per_second = 20_000.0 / schedule.next().as_secs_f64();
        assert!((per_second / 500.0 - 1.0).abs() < 0.03, "{per_second}");
    }
}
