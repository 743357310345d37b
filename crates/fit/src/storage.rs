//! What reads are sent to and timed on: a device under a kernel, which the caller has, or a model.

use device::{Completion, Device, Request};
use std::convert::Infallible;
use units::{Nanos, Sectors};

/// A read to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The first sector.
    pub start: u64,
    /// How many sectors.
    pub count: u64,
    /// How long the storage is left alone before it.
    pub pause: Nanos,
}

impl Read {
    /// A read of `count` sectors from `start`, sent at once.
    pub fn at(start: u64, count: u64) -> Read {
        Read { start, count, pause: Nanos::ZERO }
    }
}

/// How reads were answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// From sending to completion, read by read.
    pub times: Vec<Nanos>,
    /// From the first read's sending to the last completion.
    pub elapsed: Nanos,
}

impl Answers {
    /// Reads a second.
    pub fn per_second(&self) -> f64 {
        self.times.len() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// A storage that can be read, so many reads at a time.
pub trait Storage {
    /// Why a read failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// How much it holds.
    fn capacity(&self) -> Sectors;

    /// Sends the reads in their order, `depth` outstanding at a time. A pause is kept only at depth 1.
    fn read(&mut self, reads: &[Read], depth: u32) -> Result<Answers, Self::Error>;
}

/// A device model with a clock of its own.
#[derive(Debug)]
pub struct Model {
    device: Box<dyn Device>,
    now: Nanos,
    done: Vec<Completion>,
}

impl Model {
    /// Nothing is outstanding, and the clock is at 0.
    pub fn new(device: Box<dyn Device>) -> Model {
        Model { device, now: Nanos::ZERO, done: Vec::new() }
    }
}

impl Storage for Model {
    type Error = Infallible;

    fn capacity(&self) -> Sectors {
        self.device.capacity()
    }

    fn read(&mut self, reads: &[Read], depth: u32) -> Result<Answers, Infallible> {
        let began = self.now;
        let mut times = vec![Nanos::ZERO; reads.len()];
        let (mut sent, mut seen) = (0, 0);
        while seen < reads.len() {
            while sent < reads.len() && sent - seen < depth.max(1) as usize {
                let read = reads[sent];
                if depth <= 1 && read.pause > Nanos::ZERO {
                    self.now += read.pause;
                    self.device.advance(self.now, &mut self.done);
                }
                let request = Request::read(sent as u64, read.start, read.count);
                self.device.submit(request, self.now);
                sent += 1;
            }
            let Some(next) = self.device.next_event() else { break };
            self.now = self.now.max(next);
            self.device.advance(self.now, &mut self.done);
            for completion in self.done.drain(..) {
                times[completion.id as usize] = completion.at - completion.submitted;
                seen += 1;
            }
        }
        Ok(Answers { times, elapsed: self.now - began })
    }
}
