//! Devices of which queueing theory knows everything.

use device::{Completion, Device, Op, Path, Request, View};
use random::Stream;
use std::collections::{BTreeSet, VecDeque};
use units::{Nanos, Sectors};

/// How long a request takes.
#[derive(Debug)]
pub enum Service {
    Constant(Nanos),
    /// With this mean.
    Exponential(Nanos, Stream),
}

impl Service {
    fn draw(&mut self) -> Nanos {
        match self {
            Service::Constant(time) => *time,
            Service::Exponential(mean, stream) => {
                Nanos(stream.exponential(mean.0 as f64) as u64 + 1)
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: u64,
    submitted: Nanos,
}

/// Drives, each with a queue served in order of arrival; a request goes to a random one. Watches
/// that nobody sends it more than its depth, or an id twice.
#[derive(Debug)]
pub struct Servers {
    queues: Vec<VecDeque<Waiting>>,
    /// When each drive's first is done, and when it began.
    ends: Vec<Option<(Nanos, Nanos)>>,
    service: Service,
    choice: Stream,
    depth: u32,
    inside: BTreeSet<u64>,
}

impl Servers {
    pub fn new(drives: usize, depth: u32, service: Service) -> Self {
        Servers {
            queues: vec![VecDeque::new(); drives],
            ends: vec![None; drives],
            service,
            choice: Stream::new(1, "choice of drive"),
            depth,
            inside: BTreeSet::new(),
        }
    }

    pub fn constant(micros: u64, depth: u32) -> Self {
        Servers::new(1, depth, Service::Constant(Nanos::from_micros(micros)))
    }

    pub fn exponential(drives: usize, micros: u64, depth: u32) -> Self {
        let stream = Stream::new(1, "service");
        Servers::new(drives, depth, Service::Exponential(Nanos::from_micros(micros), stream))
    }

    fn start(&mut self, drive: usize, now: Nanos) {
        if self.ends[drive].is_none() && !self.queues[drive].is_empty() {
            self.ends[drive] = Some((now + self.service.draw(), now));
        }
    }
}

impl Device for Servers {
    fn submit(&mut self, request: Request, now: Nanos) {
        assert!(self.inside.insert(request.id), "id {} twice", request.id);
        assert!(self.inside.len() <= self.depth as usize, "more than the depth {}", self.depth);
        assert!(request.op == Op::Flush || request.count.0 > 0);
        let drive = self.choice.below(self.queues.len() as u64) as usize;
        self.queues[drive].push_back(Waiting { id: request.id, submitted: now });
        self.start(drive, now);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.ends.iter().flatten().map(|(end, _)| *end).min()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            for drive in 0..self.ends.len() {
                let Some((end, began)) = self.ends[drive].filter(|(end, _)| *end == at) else {
                    continue;
                };
                self.ends[drive] = None;
                let Some(Waiting { id, submitted }) = self.queues[drive].pop_front() else {
                    continue;
                };
                assert!(self.inside.remove(&id));
                done.push(Completion { id, submitted, began, at: end, path: Path::Medium });
                self.start(drive, end);
            }
        }
    }

    fn queue_depth(&self) -> u32 {
        self.depth
    }

    fn capacity(&self) -> Sectors {
        Sectors(1 << 24)
    }

    fn view(&self) -> View {
        View {
            outstanding: self.inside.len() as u32,
            busy: self.ends.iter().flatten().count() as u32,
            units: self.ends.len() as u32,
            ..View::default()
        }
    }
}
