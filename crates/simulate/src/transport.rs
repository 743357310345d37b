//! A way between block layer and device that takes time, such as that to an emulated device's server.

use device::{Completion, Device, Request, View};
use std::collections::VecDeque;
use units::{Nanos, Sectors};

/// A device behind a way: requests reach it later, and so do completions their host.
#[derive(Debug)]
pub struct Transport {
    device: Box<dyn Device>,
    /// From the host to the device.
    there: Nanos,
    /// From the device to the host.
    back: Nanos,
    /// Between two requests on their way.
    gap: Nanos,
    /// When the way is free for the next.
    free: Nanos,
    arriving: VecDeque<(Nanos, Request)>,
    leaving: VecDeque<Completion>,
    scratch: Vec<Completion>,
}

impl Transport {
    /// `device` behind a way whose round trip takes `round_trip`, half of it in each direction, and
    /// which takes one request every `gap`.
    pub fn new(device: Box<dyn Device>, round_trip: Nanos, gap: Nanos) -> Transport {
        let there = Nanos(round_trip.0 / 2);
        Transport {
            device,
            there,
            back: round_trip - there,
            gap,
            free: Nanos::ZERO,
            arriving: VecDeque::new(),
            leaving: VecDeque::new(),
            scratch: Vec::new(),
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

impl Device for Transport {
    fn submit(&mut self, request: Request, now: Nanos) {
        let begins = now.max(self.free);
        self.free = begins + self.gap;
        self.arriving.push_back((begins + self.there, request));
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
            for completion in self.scratch.drain(..) {
                self.leaving.push_back(Completion {
                    submitted: completion.submitted.saturating_sub(self.there),
                    at: completion.at + self.back,
                    ..completion
                });
            }
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
        let way = Nanos::from_micros(25);
        let behind = times(Box::new(Transport::new(disk(), way, Nanos::ZERO)));
        let expected: Vec<_> =
            behind.iter().map(|(id, at)| (*id, at.saturating_sub(way))).collect();
        let direct = times(disk());
        assert_eq!(expected.len(), direct.len());
        // The disk's rotation goes on while requests travel, so times move a little; not their sum.
        let last = |times: &[(u64, Nanos)]| times.last().unwrap().1.as_millis_f64();
        assert!((last(&expected) / last(&direct) - 1.0).abs() < 0.05);
        assert_eq!(times(Box::new(Transport::new(disk(), Nanos::ZERO, Nanos::ZERO))), direct);
    }
}
