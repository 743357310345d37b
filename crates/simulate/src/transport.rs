//! A transport between block layer and device that takes time, such as that to an emulated device's
//! server.

use device::{Completion, Device, Op, Request, View};
use random::Stream;
use std::collections::{BTreeMap, VecDeque};
use units::{Nanos, Sectors};

/// The delay of a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportDelay {
    /// The minimum round trip: half of it in each direction.
    pub round_trip: Nanos,
    /// A random addition. Requests keep their order.
    pub jitter: Chance,
    /// The interval between requests when the jitter was measured. Requests at shorter intervals meet it
    /// proportionally less often, because its causes (a processor that sleeps, or is preempted) occur per
    /// time, not per request. Zero: each request meets it.
    pub every: Nanos,
    /// The additional time of writes, whose data are copied.
    pub write: Nanos,
    /// The minimum time between two requests.
    pub gap: Nanos,
    /// It is a loop device: its worker waits for a flush or discard itself, and what comes behind waits, too.
    /// Inferred from rates and medians of replays with flushes on 6.18 (docs/design/load.md).
    pub is_loop: bool,
}

/// A random time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chance {
    /// Exponential with this mean, half of it in each direction.
    Exponential(Nanos),
    /// Measured: the quantiles of [`CHANCES`], with linear interpolation; of one
    /// half of the requests on the way to the device, of the others on the way back.
    Measured([Nanos; CHANCES.len()]),
}

/// The quantiles of [`Chance::Measured`]; beyond the last the time is constant.
pub const CHANCES: [f64; 11] = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];

impl Default for Chance {
    fn default() -> Self {
        Chance::Exponential(Nanos::ZERO)
    }
}

impl Chance {
    /// The times of one request: to the device, and back.
    fn draw(&self, stream: &mut Stream) -> (Nanos, Nanos) {
        match self {
            Chance::Exponential(Nanos::ZERO) => (Nanos::ZERO, Nanos::ZERO),
            Chance::Exponential(mean) => {
                let mut half = || Nanos(stream.exponential(mean.0 as f64 / 2.0) as u64);
                (half(), half())
            }
            Chance::Measured(times) => {
                let time = measured(times, stream.unit());
                if stream.unit() < 0.5 { (time, Nanos::ZERO) } else { (Nanos::ZERO, time) }
            }
        }
    }
}

fn measured(times: &[Nanos; CHANCES.len()], at: f64) -> Nanos {
    let above = CHANCES.partition_point(|chance| *chance <= at);
    let (Some(from), Some(to)) = (times.get(above - 1), times.get(above)) else {
        return times[CHANCES.len() - 1];
    };
    let part = (at - CHANCES[above - 1]) / (CHANCES[above] - CHANCES[above - 1]);
    *from + Nanos((part * to.saturating_sub(*from).0 as f64) as u64)
}

/// A device behind a transport: requests and completions arrive later.
#[derive(Debug)]
pub struct Transport {
    device: Box<dyn Device>,
    delay: TransportDelay,
    /// From the host to the device, at least.
    there: Nanos,
    chance: Stream,
    /// When the last request came.
    last: Option<Nanos>,
    /// When the transport accepts the next request.
    free: Nanos,
    arriving: VecDeque<(Nanos, Request)>,
    /// The random times on the way back, of requests in transit or at the device.
    returns: BTreeMap<u64, Nanos>,
    /// The flush or discard that the worker of a loop device waits for, and what came behind it.
    holding: Option<u64>,
    held: VecDeque<Request>,
    leaving: VecDeque<Completion>,
    scratch: Vec<Completion>,
}

impl Transport {
    /// `device` behind `way`; what is random comes from `seed`.
    pub fn new(device: Box<dyn Device>, delay: TransportDelay, seed: u64) -> Transport {
        Transport {
            device,
            delay,
            there: Nanos(delay.round_trip.0 / 2),
            chance: Stream::new(seed, "transport"),
            last: None,
            free: Nanos::ZERO,
            arriving: VecDeque::new(),
            returns: BTreeMap::new(),
            holding: None,
            held: VecDeque::new(),
            leaving: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// What a request that comes now meets by chance, there and back.
    fn chance(&mut self, now: Nanos) -> (Nanos, Nanos) {
        let every = self.delay.every;
        let since = self.last.replace(now).map_or(every, |last| now - last);
        match since >= every || self.chance.unit() * (every.0 as f64) < since.0 as f64 {
            true => self.delay.jitter.draw(&mut self.chance),
            false => (Nanos::ZERO, Nanos::ZERO),
        }
    }

    fn next_inside(&self) -> Option<Nanos> {
        let arrival = self.arriving.front().map(|(at, _)| *at);
        match (arrival, self.device.next_event()) {
            (Some(arrival), Some(event)) => Some(arrival.min(event)),
            (arrival, event) => arrival.or(event),
        }
    }
}

impl Transport {
    /// Sends a request on its way.
    fn send(&mut self, request: Request, now: Nanos) {
        if self.delay.is_loop && matches!(request.op, Op::Flush | Op::Discard) {
            self.holding = Some(request.id);
        }
        let begins = now.max(self.free);
        self.free = begins + self.delay.gap;
        let before = self.arriving.back().map_or(Nanos::ZERO, |(at, _)| *at);
        let copying = if request.op == Op::Write { self.delay.write } else { Nanos::ZERO };
        let (there, back) = self.chance(now);
        if back > Nanos::ZERO {
            self.returns.insert(request.id, back);
        }
        let arrives = begins + self.there + copying + there;
        self.arriving.push_back((arrives.max(before), request));
    }

    /// Sends what waited for a flush, as far as the next.
    fn release(&mut self, now: Nanos) {
        self.holding = None;
        while self.holding.is_none()
            && let Some(request) = self.held.pop_front()
        {
            self.send(request, now);
        }
    }
}

impl Device for Transport {
    fn submit(&mut self, request: Request, now: Nanos) {
        match self.holding {
            Some(_) => self.held.push_back(request),
            None => self.send(request, now),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let answer = self.leaving.front().map(|completion| completion.at);
        match (answer, self.next_inside()) {
            (Some(answer), Some(inside)) => Some(answer.min(inside)),
            (answer, inside) => answer.or(inside),
        }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.next_inside().filter(|at| *at <= now) {
            self.device.advance(at, &mut self.scratch);
            for nth in 0..self.scratch.len() {
                let completion = self.scratch[nth];
                let before = self.leaving.back().map_or(Nanos::ZERO, |completion| completion.at);
                let chance = self.returns.remove(&completion.id).unwrap_or(Nanos::ZERO);
                let back = self.delay.round_trip - self.there + chance;
                self.leaving.push_back(Completion {
                    submitted: completion.submitted.saturating_sub(self.there),
                    at: before.max(completion.at + back),
                    ..completion
                });
            }
            self.scratch.clear();
            while let Some((then, request)) = self.arriving.front().copied()
                && then <= at
            {
                self.arriving.pop_front();
                self.device.submit(request, at);
            }
        }
        while let Some(completion) = self.leaving.front().copied()
            && completion.at <= now
        {
            self.leaving.pop_front();
            done.push(completion);
            if self.holding == Some(completion.id) {
                self.release(completion.at);
            }
        }
    }

    fn queue_depth(&self) -> u32 {
        self.device.queue_depth()
    }

    fn capacity(&self) -> Sectors {
        self.device.capacity()
    }

    fn view(&self) -> View {
        self.device.view()
    }

    fn heads(&self) -> Vec<u32> {
        self.device.heads()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::profile;

    /// When each of some reads, submitted together, is done.
    fn times(mut device: Box<dyn Device>) -> Vec<(u64, Nanos)> {
        for nth in 0..50 {
            device.submit(Request::read(nth, nth * 7_919_000 % 200_000_000, 8), Nanos::ZERO);
        }
        let mut done = Vec::new();
        while let Some(at) = device.next_event() {
            device.advance(at, &mut done);
        }
        done.iter().map(|it| (it.id, it.at)).collect()
    }

    #[test]
    fn a_way_adds_its_round_trip_and_moves_nothing_else() {
        let disk = || profile::find("hdd-15k").unwrap().build(1).unwrap();
        let delay = Nanos::from_micros(25);
        let transport = |delay| times(Box::new(Transport::new(disk(), delay, 1)));
        let behind = transport(TransportDelay { round_trip: delay, ..TransportDelay::default() });
        let expected: Vec<_> =
            behind.iter().map(|(id, at)| (*id, at.saturating_sub(delay))).collect();
        let direct = times(disk());
        assert_eq!(expected.len(), direct.len());
        // The disk's rotation goes on while requests travel, so times move a little; not their sum.
        let last = |times: &[(u64, Nanos)]| times.last().unwrap().1.as_millis_f64();
        assert!((last(&expected) / last(&direct) - 1.0).abs() < 0.05);
        assert_eq!(transport(TransportDelay::default()), direct);
    }

    #[test]
    fn a_write_takes_longer_than_a_read() {
        let delay = TransportDelay { write: Nanos::from_micros(30), ..TransportDelay::default() };
        let once = |op| {
            let device = profile::find("ssd-nvme").unwrap().build(1).unwrap();
            let mut transport = Transport::new(device, delay, 1);
            let request = Request { op, ..Request::read(0, 0, 8) };
            transport.submit(request, Nanos::ZERO);
            transport.next_event().unwrap()
        };
        assert_eq!(once(Op::Write), delay.write);
        assert_eq!(once(Op::Read), Nanos::ZERO);
    }

    /// Each request takes nothing at once.
    #[derive(Debug, Default)]
    struct Instant(Vec<Completion>);
    impl Device for Instant {
        fn submit(&mut self, request: Request, now: Nanos) {
            let (id, path) = (request.id, device::Path::Medium);
            self.0.push(Completion { id, submitted: now, began: now, at: now, path });
        }
        fn next_event(&self) -> Option<Nanos> {
            self.0.first().map(|completion| completion.at)
        }
        fn advance(&mut self, _: Nanos, done: &mut Vec<Completion>) {
            done.append(&mut self.0);
        }
        fn queue_depth(&self) -> u32 {
            1
        }
        fn capacity(&self) -> Sectors {
            Sectors(1 << 30)
        }
        fn view(&self) -> View {
            View::default()
        }
    }

    /// The mean time that this transport adds to a request, with one request each `apart`.
    fn mean_us(delay: TransportDelay, apart: Nanos) -> f64 {
        let mut transport = Transport::new(Box::new(Instant::default()), delay, 1);
        let mut done = Vec::new();
        let mut total = Nanos::ZERO;
        for nth in 0..20_000 {
            let begun = Nanos(nth * apart.0);
            transport.submit(Request::read(nth, 0, 8), begun);
            while let Some(at) = transport.next_event() {
                transport.advance(at, &mut done);
            }
            total += done.last().unwrap().at - begun;
        }
        total.as_micros_f64() / 20_000.0
    }

    #[test]
    fn behind_a_loop_device_what_comes_after_a_flush_waits_for_it() {
        /// Each request takes a millisecond, whatever else is there.
        #[derive(Debug, Default)]
        struct Millisecond(Instant);
        impl Device for Millisecond {
            fn submit(&mut self, request: Request, now: Nanos) {
                self.0.submit(request, now + Nanos::from_millis(1));
            }
            fn next_event(&self) -> Option<Nanos> {
                self.0.next_event()
            }
            fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
                let due = |it: &Completion| it.at <= now;
                done.extend(self.0.0.extract_if(.., |it| due(it)));
            }
            fn queue_depth(&self) -> u32 {
                1
            }
            fn capacity(&self) -> Sectors {
                self.0.capacity()
            }
            fn view(&self) -> View {
                View::default()
            }
        }
        let ends = |is_loop| {
            let delay = TransportDelay { is_loop, ..TransportDelay::default() };
            let mut transport = Transport::new(Box::new(Millisecond::default()), delay, 1);
            let requests = [
                Request::read(0, 0, 8),
                Request::flush(1),
                Request::read(2, 8, 8),
                Request::flush(3),
            ];
            requests.into_iter().for_each(|it| transport.submit(it, Nanos::ZERO));
            let mut done = Vec::new();
            while let Some(at) = transport.next_event() {
                transport.advance(at, &mut done);
            }
            done.iter().map(|it| (it.id, it.at.0 / 1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(ends(false), [(0, 1), (1, 1), (2, 1), (3, 1)]);
        assert_eq!(ends(true), [(0, 1), (1, 1), (2, 2), (3, 2)]);
    }

    #[test]
    fn what_comes_sooner_than_where_jitter_was_measured_meets_it_as_much_more_rarely() {
        let micros = Nanos::from_micros;
        let delay = TransportDelay {
            jitter: Chance::Exponential(micros(20)),
            every: micros(1000),
            ..TransportDelay::default()
        };
        for (apart, expected) in [(5000, 20.0), (1000, 20.0), (250, 5.0)] {
            let mean = mean_us(delay, micros(apart));
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean}, not {expected}");
        }
    }

    #[test]
    fn jitter_is_of_its_mean_and_lets_nothing_overtake() {
        let times = [0, 0, 5, 10, 15, 20, 30, 50, 70, 90, 400].map(Nanos::from_micros);
        // The straight lines' own mean: the sum of each part's length times its middle, in us.
        let measured = 0.15 * 2.5
            + 0.25 * 7.5
            + 0.25 * 12.5
            + 0.15 * 17.5
            + 0.05 * 25.0
            + 0.03 * 40.0
            + 0.01 * 60.0
            + 0.005 * 80.0
            + 0.004 * 245.0
            + 0.001 * 400.0;
        let exponential = Chance::Exponential(Nanos::from_micros(20));
        for (jitter, expected) in [(exponential, 20.0), (Chance::Measured(times), measured)] {
            let delay = TransportDelay { jitter, ..TransportDelay::default() };
            let mean = mean_us(delay, Nanos::from_millis(1));
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean}, not {expected}");
            let mut transport = Transport::new(Box::new(Instant::default()), delay, 1);
            (0..100).for_each(|nth| transport.submit(Request::read(nth, 0, 8), Nanos::ZERO));
            let mut done = Vec::new();
            while let Some(at) = transport.next_event() {
                transport.advance(at, &mut done);
            }
            assert!(done.iter().map(|completion| completion.id).eq(0..100));
        }
    }
}
