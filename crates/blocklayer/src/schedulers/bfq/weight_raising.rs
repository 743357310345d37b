//! bfq's weight raising: which queues, by how much and for how long. Raised are queues of applications
//! that seem to start (interactive), or to play or record media (soft real-time).
//!
//! Documented: P. Valente and M. Andreolini, "Improving application responsiveness with the BFQ disk I/O
//! scheduler" (2012); the limit of sectors served, Paolo Valente, "block, bfq: limit sectors served with
//! interactive weight raising" (2017). Constants are tagged with their own source.

use super::super::process_queue::Q;
use units::Nanos;

/// The factor of an interactive queue's weight. Documented: the paper.
pub(super) const INTERACTIVE: u64 = 30;
/// The factor of a soft real-time queue's weight. Observed: block tracepoints on 6.18.
const SOFT: u64 = 3000;
/// A queue that was idle for this long counts as an application that starts.
const AFTER_IDLE: Nanos = Nanos::from_secs(2);
/// How long interactive weight raising lasts on rotational devices.
pub(super) const ROTATIONAL: Nanos = Nanos::from_millis(10_500);
/// The same on other devices.
pub(super) const OTHERS: Nanos = Nanos::from_millis(3750);
/// How long soft real-time weight raising lasts. Observed: block tracepoints on 6.18.
const SOFT_DURATION: Nanos = Nanos::from_millis(300);
/// Sectors served after which a queue is not interactive any more. Documented as somewhat more than
/// 110,000; the value is assumed.
const MAX_SERVED: u64 = 120_000;
/// Soft real-time applications need no more sectors per second. Assumed; block tracepoints agree.
const SOFT_RATE: u64 = 7000;
/// The kernel measures these times in jiffies, in nanoseconds at CONFIG_HZ=250. Assumed; block
/// tracepoints agree.
const JIFFY: u64 = 4_000_000;
/// By how much longer than slice_idle a soft real-time queue must have been empty.
const SOFT_PAUSE: Nanos = Nanos(4 * JIFFY);
/// The only priority level that may be soft real-time. Assumed; block tracepoints agree.
const SOFT_LEVEL: u8 = 4;

/// The weight raising of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WeightRaising {
    interactive_until: Nanos,
    soft_until: Nanos,
    /// Sectors served since it was first raised.
    served: u64,
    /// A request that arrives later than this, with none at the device, makes it soft real-time.
    soft_from: Nanos,
    /// When it last became busy, and the sectors served since.
    filled: Nanos,
    since_filled: u64,
    last_active: Option<Nanos>,
    in_burst: bool,
}

/// A request's arrival, as far as weight raising depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The queue was empty, and did not have the device.
    pub fills: bool,
    /// The queue has no request at the device.
    pub alone: bool,
    pub level: u8,
    /// How long interactive weight raising lasts; `None`: never raised.
    pub lasts: Option<Nanos>,
}

impl WeightRaising {
    /// The factor of its weight.
    pub fn factor(&self, now: Nanos) -> u64 {
        match () {
            () if now < self.soft_until => SOFT,
            () if now < self.interactive_until && self.served <= MAX_SERVED => INTERACTIVE,
            () => 1,
        }
    }

    /// Whether it was idle for so long that it counts as an application that starts.
    pub fn starts(&self, now: Nanos) -> bool {
        self.last_active.is_none_or(|last| last + AFTER_IDLE <= now)
    }

    /// It is active.
    pub fn touch(&mut self, now: Nanos) {
        self.last_active = Some(now);
    }

    /// Whether it belongs to a large burst of queues, which are not raised. One that was raised before
    /// loses that when it next dispatches, or becomes busy. Observed: block tracepoints on 6.18.
    pub fn set_in_burst(&mut self, is: bool) {
        self.in_burst = is;
    }

    /// A sync request arrives.
    pub fn arrive(&mut self, arrival: Arrival, starts: bool, now: Nanos) {
        if self.last_active.is_none() {
            self.soft_from = now;
        }
        self.touch(now);
        let soft = arrival.fills
            && arrival.alone
            && arrival.level == SOFT_LEVEL
            && self.soft_from.0 / JIFFY < now.0 / JIFFY;
        if arrival.fills {
            (self.filled, self.since_filled) = (now, 0);
        }
        if self.in_burst && arrival.fills {
            self.end();
        }
        let Some(lasts) = arrival.lasts.filter(|_| !self.in_burst && (starts || soft)) else {
            return;
        };
        if self.factor(now) == 1 {
            self.end();
            self.served = 0;
        }
        match starts {
            true => (self.interactive_until, self.soft_until) = (now + lasts, Nanos::ZERO),
            false => self.soft_until = now + SOFT_DURATION,
        }
    }

    /// Sectors are dispatched.
    pub fn serve(&mut self, sectors: u64) {
        if self.in_burst {
            self.end();
        }
        self.served += sectors;
        self.since_filled += sectors;
    }

    fn end(&mut self) {
        (self.interactive_until, self.soft_until) = (Nanos::ZERO, Nanos::ZERO);
    }

    /// It has no request left, here or at the device. The next ones of a soft real-time application come
    /// neither at once nor faster than it needs them. Does not apply to interactive queues.
    pub fn empties(&mut self, slice_idle: Nanos, now: Nanos) {
        if self.factor(now) != INTERACTIVE {
            let needs = Nanos(self.since_filled * 1_000_000_000 / SOFT_RATE);
            self.soft_from = (self.filled + needs).max(now + slice_idle + SOFT_PAUSE);
        }
    }

    /// Another queue is merged into this one, which takes over its weight raising.
    pub fn join(&mut self, other: &WeightRaising, now: Nanos) {
        if self.factor(now) == 1 && other.factor(now) > 1 {
            let WeightRaising { interactive_until, soft_until, served, .. } = *other;
            *self = WeightRaising { interactive_until, soft_until, served, ..*self };
        }
    }
}

/// This many queues, each created within [`BURST_INTERVAL`] of the one before, are a burst: of one
/// application that needs throughput, whose queues are not raised.
const BURST: usize = 8;
const BURST_INTERVAL: Nanos = Nanos::from_millis(180);

/// Queues created shortly after one another.
#[derive(Debug, Default)]
pub(super) struct Burst {
    last: Option<Nanos>,
    queues: Vec<Q>,
    large: bool,
}

impl Burst {
    /// Adds a new queue; returns the queues that are now known to belong to a large burst.
    pub fn join(&mut self, q: Q, now: Nanos) -> Vec<Q> {
        if self.last.is_none_or(|last| last + BURST_INTERVAL < now) {
            *self = Burst::default();
        }
        self.last = Some(now);
        self.queues.push(q);
        self.large |= self.queues.len() >= BURST;
        if self.large { std::mem::take(&mut self.queues) } else { Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_created_shortly_after_one_another_are_a_burst() {
        let mut burst = Burst::default();
        let at = |millis| Nanos::from_millis(millis);
        for q in 0..7 {
            assert!(burst.join(q, at(q as u64 * 180)).is_empty());
        }
        assert_eq!(burst.join(7, at(7 * 180)), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(burst.join(8, at(8 * 180)), [8]);
        // A later one begins another burst.
        assert!(burst.join(9, at(9 * 180 + 1)).is_empty());
    }

    const SLICE_IDLE: Nanos = Nanos::from_millis(8);

    fn arrive(raising: &mut WeightRaising, millis: u64) -> u64 {
        let now = Nanos::from_millis(millis);
        let arrival = Arrival { fills: true, alone: true, level: 4, lasts: Some(ROTATIONAL) };
        raising.arrive(arrival, raising.starts(now), now);
        raising.factor(now)
    }

    #[test]
    fn a_starting_queue_is_interactive_and_soft_real_time_from_the_next_tick_on() {
        let mut raising = WeightRaising::default();
        let factor = |raising: &WeightRaising, millis| raising.factor(Nanos::from_millis(millis));
        assert_eq!(arrive(&mut raising, 1000), INTERACTIVE);
        assert_eq!(arrive(&mut raising, 1002), INTERACTIVE, "the same tick");
        assert_eq!(arrive(&mut raising, 1004), SOFT);
        // Of which it needs more than such an application: 7000 sectors a second.
        raising.serve(1400);
        raising.empties(SLICE_IDLE, Nanos::from_millis(1010));
        assert_eq!(arrive(&mut raising, 1190), SOFT);
        assert_eq!((factor(&raising, 1303), factor(&raising, 1304)), (SOFT, INTERACTIVE));
        assert_eq!(arrive(&mut raising, 1308), SOFT);
        assert_eq!((factor(&raising, 1607), factor(&raising, 1608)), (SOFT, INTERACTIVE));
        // 120,000 sectors end what is interactive.
        raising.serve(MAX_SERVED - 1400);
        assert_eq!(factor(&raising, 1608), INTERACTIVE);
        raising.serve(1);
        assert_eq!(factor(&raising, 1608), 1);
        // What is raised for soft real-time after that goes back to nothing.
        assert_eq!(arrive(&mut raising, 1640), SOFT);
        assert_eq!(factor(&raising, 1940), 1);
    }

    #[test]
    fn a_queue_that_is_not_interactive_may_be_soft_real_time_by_its_rate() {
        let mut raising = WeightRaising::default();
        raising.touch(Nanos::from_millis(1));
        let fill = |raising: &mut WeightRaising, millis| {
            let soft = arrive(raising, millis);
            raising.soft_until = Nanos::ZERO;
            raising.serve(700);
            raising.empties(SLICE_IDLE, Nanos::from_millis(millis + 5));
            soft
        };
        assert_eq!(fill(&mut raising, 1000), SOFT);
        assert_eq!(fill(&mut raising, 1100), 1, "700 sectors within 100 ms: not yet over");
        assert_eq!(fill(&mut raising, 1208), SOFT);
    }

    #[test]
    fn queues_of_a_burst_are_not_raised() {
        let mut raising = WeightRaising::default();
        raising.set_in_burst(true);
        assert_eq!((arrive(&mut raising, 1000), arrive(&mut raising, 5000)), (1, 1));
    }
}
