//! Whose weight bfq raises, by how much and for how long: what seems an application that starts
//! (interactive), or one that plays or records something (soft real-time).
//!
//! The two are those of P. Valente and M. Andreolini, "Improving application responsiveness with the
//! BFQ disk I/O scheduler" (2012), and the end by service is that of Paolo Valente, "block, bfq: limit
//! sectors served with interactive weight raising" (2017): some more than 110,000 sectors. 7000 sectors
//! a second, the ticks, and that level 4 alone may be soft real-time stand in no document found, and are
//! what is generally known of the kernel's code; its trace agrees.

use super::super::process_queue::Q;
use units::Nanos;

/// Of a weight, for who seems interactive.
pub(super) const INTERACTIVE: u64 = 30;
/// Of a weight, for who seems soft real-time. (Seen in the kernel's own trace, 6.18.)
const SOFT: u64 = 3000;
/// A queue that did nothing for so long counts as an application that starts.
const AFTER_IDLE: Nanos = Nanos::from_secs(2);
pub(super) const ROTATIONAL: Nanos = Nanos::from_millis(10_500);
pub(super) const OTHERS: Nanos = Nanos::from_millis(3750);
/// How long soft real-time lasts. (Seen in the trace.)
const SOFT_LASTS: Nanos = Nanos::from_millis(300);
/// Sectors after which nobody is interactive any more.
const SERVED_MOST: u64 = 120_000;
/// Soft real-time applications need no more sectors a second.
const SOFT_RATE: u64 = 7000;
/// The kernel's clock of these times, at CONFIG_HZ=250.
const JIFFY: u64 = 4_000_000;
/// So much longer than slice_idle it must have been empty.
const SOFT_PAUSE: Nanos = Nanos(4 * JIFFY);
/// The weight of level 4, the only one that is taken for soft real-time.
const SOFT_LEVEL: u8 = 4;

/// How a queue's weight is raised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Raise {
    interactive_until: Nanos,
    soft_until: Nanos,
    /// Sectors since it was first raised.
    served: u64,
    /// Who comes later than then, and with nothing at the device, is soft real-time.
    soft_from: Nanos,
    /// When it last got requests while it had none, and the sectors since.
    filled: Nanos,
    since_filled: u64,
    last_active: Option<Nanos>,
    in_burst: bool,
}

/// A request's arrival, as far as raising depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The queue had none, and not the device.
    pub fills: bool,
    /// It has none at the device either.
    pub alone: bool,
    pub level: u8,
    /// How long what seems interactive is raised; None: never.
    pub lasts: Option<Nanos>,
}

impl Raise {
    /// How many times its weight a queue has.
    pub fn factor(&self, now: Nanos) -> u64 {
        match () {
            () if now < self.soft_until => SOFT,
            () if now < self.interactive_until && self.served <= SERVED_MOST => INTERACTIVE,
            () => 1,
        }
    }

    /// Whether it did nothing for so long that it counts as one that starts.
    pub fn starts(&self, now: Nanos) -> bool {
        self.last_active.is_none_or(|last| last + AFTER_IDLE <= now)
    }

    /// It does something.
    pub fn touch(&mut self, now: Nanos) {
        self.last_active = Some(now);
    }

    /// Whether it is of a large burst of queues, which are not raised. Who was raised before loses that
    /// when it next sends something, or gets requests again. (Seen in the trace.)
    pub fn set_in_burst(&mut self, is: bool) {
        self.in_burst = is;
    }

    /// A sync request comes.
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
            false => self.soft_until = now + SOFT_LASTS,
        }
    }

    /// So many sectors of it are sent.
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

    /// It has no request, here or at the device. If it plays something, its next ones come neither at
    /// once nor faster than such an application needs them. (Who seems interactive is not judged by
    /// that.)
    pub fn empties(&mut self, slice_idle: Nanos, now: Nanos) {
        if self.factor(now) != INTERACTIVE {
            let needs = Nanos(self.since_filled * 1_000_000_000 / SOFT_RATE);
            self.soft_from = (self.filled + needs).max(now + slice_idle + SOFT_PAUSE);
        }
    }

    /// A raised queue is joined to this one.
    pub fn join(&mut self, other: &Raise, now: Nanos) {
        if self.factor(now) == 1 && other.factor(now) > 1 {
            let Raise { interactive_until, soft_until, served, .. } = *other;
            *self = Raise { interactive_until, soft_until, served, ..*self };
        }
    }
}

/// So many queues, each begun within such a time of the one before, are a burst: one application's,
/// which wants throughput, and is not raised.
const BURST: usize = 8;
const BURST_INTERVAL: Nanos = Nanos::from_millis(180);

/// Queues that began shortly after one another.
#[derive(Debug, Default)]
pub(super) struct Burst {
    last: Option<Nanos>,
    queues: Vec<Q>,
    large: bool,
}

impl Burst {
    /// A queue begins: those of which it is known now that they are of a large burst.
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
    fn eight_that_begin_shortly_after_one_another_are_a_burst() {
        let mut burst = Burst::default();
        let at = |millis| Nanos::from_millis(millis);
        for q in 0..7 {
            assert!(burst.join(q, at(q as u64 * 180)).is_empty());
        }
        assert_eq!(burst.join(7, at(7 * 180)), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(burst.join(8, at(8 * 180)), [8]);
        // Who comes later begins another.
        assert!(burst.join(9, at(9 * 180 + 1)).is_empty());
    }

    const SLICE_IDLE: Nanos = Nanos::from_millis(8);

    fn arrive(raise: &mut Raise, millis: u64) -> u64 {
        let now = Nanos::from_millis(millis);
        let arrival = Arrival { fills: true, alone: true, level: 4, lasts: Some(ROTATIONAL) };
        raise.arrive(arrival, raise.starts(now), now);
        raise.factor(now)
    }

    #[test]
    fn who_starts_is_interactive_and_soft_real_time_from_the_next_tick_on() {
        let mut raise = Raise::default();
        let factor = |raise: &Raise, millis| raise.factor(Nanos::from_millis(millis));
        assert_eq!(arrive(&mut raise, 1000), INTERACTIVE);
        assert_eq!(arrive(&mut raise, 1002), INTERACTIVE, "the same tick");
        assert_eq!(arrive(&mut raise, 1004), SOFT);
        // Of which it needs more than such an application: 7000 sectors a second.
        raise.serve(1400);
        raise.empties(SLICE_IDLE, Nanos::from_millis(1010));
        assert_eq!(arrive(&mut raise, 1190), SOFT);
        assert_eq!((factor(&raise, 1303), factor(&raise, 1304)), (SOFT, INTERACTIVE));
        assert_eq!(arrive(&mut raise, 1308), SOFT);
        assert_eq!((factor(&raise, 1607), factor(&raise, 1608)), (SOFT, INTERACTIVE));
        // 120,000 sectors end what is interactive.
        raise.serve(SERVED_MOST - 1400);
        assert_eq!(factor(&raise, 1608), INTERACTIVE);
        raise.serve(1);
        assert_eq!(factor(&raise, 1608), 1);
        // What is raised for soft real-time after that goes back to nothing.
        assert_eq!(arrive(&mut raise, 1640), SOFT);
        assert_eq!(factor(&raise, 1940), 1);
    }

    #[test]
    fn who_is_never_interactive_may_be_soft_real_time_by_its_rate() {
        let mut raise = Raise::default();
        raise.touch(Nanos::from_millis(1));
        let fill = |raise: &mut Raise, millis| {
            let soft = arrive(raise, millis);
            raise.soft_until = Nanos::ZERO;
            raise.serve(700);
            raise.empties(SLICE_IDLE, Nanos::from_millis(millis + 5));
            soft
        };
        assert_eq!(fill(&mut raise, 1000), SOFT);
        assert_eq!(fill(&mut raise, 1100), 1, "700 sectors within 100 ms: not yet over");
        assert_eq!(fill(&mut raise, 1208), SOFT);
    }

    #[test]
    fn who_is_of_a_burst_is_not_raised() {
        let mut raise = Raise::default();
        raise.set_in_burst(true);
        assert_eq!((arrive(&mut raise, 1000), arrive(&mut raise, 5000)), (1, 1));
    }
}
