//! A device that logs what it is given, and a world that hands over bios at stated times.

use blocklayer::{AdvanceOutput, Bio, BioDone, BlockLayer, Config, Context, IoClass, Submitted};
use device::{Completion, Device, Op, Path, Request, View};
use std::collections::{BTreeMap, VecDeque};
use units::{Nanos, Sectors};

/// Serves in order of arrival on `servers` servers, each request for the same time.
#[derive(Debug)]
pub struct Logger {
    pub servers: usize,
    pub service: Nanos,
    /// Every command with the time it came.
    pub log: Vec<(Nanos, Request)>,
    free_at: Vec<Nanos>,
    out: VecDeque<(Nanos, Nanos, Nanos, u64)>,
    pub most_out: usize,
}

impl Logger {
    pub fn new(servers: usize, service: Nanos) -> Box<Self> {
        let free_at = vec![Nanos::ZERO; servers];
        let (log, out) = (Vec::new(), VecDeque::new());
        Box::new(Logger { servers, service, log, free_at, out, most_out: 0 })
    }
}

impl Device for Logger {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.log.push((now, request));
        let first = (0..self.servers).min_by_key(|s| self.free_at[*s]).unwrap();
        let began = self.free_at[first].max(now);
        self.free_at[first] = began + self.service;
        self.out.push_back((began + self.service, now, began, request.id));
        self.most_out = self.most_out.max(self.out.len());
    }
    fn next_event(&self) -> Option<Nanos> {
        self.out.front().map(|out| out.0)
    }
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some((at, submitted, began, id)) =
            self.out.front().copied().filter(|out| out.0 <= now)
        {
            self.out.pop_front();
            done.push(Completion { id, submitted, began, at, path: Path::Medium });
        }
    }
    fn queue_depth(&self) -> u32 {
        self.servers as u32
    }
    fn capacity(&self) -> Sectors {
        Sectors(1 << 40)
    }
    fn view(&self) -> View {
        View { outstanding: self.out.len() as u32, ..View::default() }
    }
}

/// A bio of 8 sectors, or as said.
pub fn bio(id: u64, op: Op, start: u64, process: u32) -> Bio {
    Bio {
        id,
        op,
        start: Sectors(start),
        count: Sectors(8),
        sync: op == Op::Read,
        fua: false,
        context: Context { process, class: IoClass::BestEffort, level: 4 },
    }
}

pub fn read(id: u64, start: u64, process: u32) -> Bio {
    bio(id, Op::Read, start, process)
}

pub fn write(id: u64, start: u64, process: u32) -> Bio {
    bio(id, Op::Write, start, process)
}

pub fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

/// What came of it.
pub struct Run {
    pub done: Vec<BioDone>,
    /// (time in µs, start) in dispatch order.
    pub log: Vec<(u64, u64)>,
    pub commands: Vec<(Nanos, Request)>,
    pub layer: BlockLayer<Logger>,
    pub most_allocated: u32,
}

impl Run {
    pub fn starts(&self) -> Vec<u64> {
        self.log.iter().map(|(_, start)| *start).collect()
    }
}

/// Hands each bio over at its time. `follow` says what a task does after a completion: its next
/// bios, and how long it thinks before.
pub fn drive(
    config: &Config,
    device: Box<Logger>,
    arrivals: &[(Nanos, Bio)],
    mut follow: impl FnMut(&BioDone) -> Vec<(Nanos, Bio)>,
) -> Run {
    let mut layer = BlockLayer::new(config, device).unwrap();
    let mut agenda: BTreeMap<(Nanos, u64), Bio> = BTreeMap::new();
    let mut sequence = 0;
    let mut add = |agenda: &mut BTreeMap<_, _>, at: Nanos, bio: Bio| {
        sequence += 1;
        agenda.insert((at, sequence), bio);
    };
    arrivals.iter().for_each(|(at, bio)| add(&mut agenda, *at, *bio));
    let mut asleep: BTreeMap<u32, VecDeque<Bio>> = BTreeMap::new();
    let (mut done, mut outcome) = (Vec::new(), AdvanceOutput::default());
    let (mut now, mut most_allocated) = (Nanos::ZERO, 0);
    loop {
        let arrival = agenda.first_key_value().map(|((at, _), _)| *at);
        let event = layer.next_event();
        let Some(next) = [arrival, event].into_iter().flatten().min() else { break };
        assert!(next >= now, "time went back");
        now = next;
        layer.advance(now, &mut outcome);
        let mut again = Vec::new();
        for process in outcome.woken.drain(..) {
            again.extend(asleep.get_mut(&process).and_then(VecDeque::pop_front));
        }
        for bio_done in outcome.done.drain(..) {
            for (think, bio) in follow(&bio_done) {
                add(&mut agenda, now + think, bio);
            }
            done.push(bio_done);
        }
        let mut touched = Vec::new();
        while let Some(entry) = agenda.first_entry().filter(|e| e.key().0 <= now) {
            again.push(entry.remove());
        }
        for bio in again {
            let process = bio.context.process;
            match layer.submit(bio, now) {
                Submitted::Accepted => touched.push(process),
                Submitted::MustWait => asleep.entry(process).or_default().push_back(bio),
            }
            most_allocated = most_allocated.max(layer.allocated());
        }
        touched.dedup();
        touched.iter().for_each(|process| layer.unplug(*process, now));
    }
    assert!(asleep.values().all(VecDeque::is_empty), "a task sleeps for ever");
    let commands = layer.device().log.clone();
    let log = commands.iter().map(|(at, r)| (at.0 / 1000, r.start.0)).collect();
    Run { done, log, commands, layer, most_allocated }
}

/// As [`drive`], when no task follows up.
pub fn play(config: &Config, device: Box<Logger>, arrivals: &[(Nanos, Bio)]) -> Run {
    drive(config, device, arrivals, |_| Vec::new())
}
