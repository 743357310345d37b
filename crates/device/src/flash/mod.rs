//! A flash drive: channels with dies, a page map with garbage collection, a write buffer.
//!
//! Each die and the controller serve what comes in order of arrival, and channels and the link are
//! limited in rate, so a request's whole course is known when the drive takes it: there is nothing
//! to decide later, and the model is a handful of "free from then on" times.

mod translation;

pub use translation::{Translation, Work};

use crate::disk::MediaWrite;
use crate::spec_error::SpecError;
use crate::{Completion, Device, Op, Path, Request, View};
use random::Stream;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use units::{Nanos, Sectors};

/// Sectors of a mapped page: 4 KiB.
const PAGE: u64 = 8;
/// Logical pages the translation layer follows at most.
const SAMPLE: u64 = 1 << 18;
/// Pages of a block of the sample, at most: in large blocks garbage collection depends on
/// over-provisioning alone (Luojie and Kurkoski, arXiv:1110.4245).
const SAMPLE_BLOCK: u64 = 256;

/// The state in which a drive begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// Erased.
    Fresh,
    /// This share written once, in order.
    Sequential(f64),
    /// This share written in order, then overwritten at random until garbage collection is steady.
    Random(f64),
}

/// A flash drive. Times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashSpec {
    /// What the host sees, in sectors.
    pub capacity: u64,
    /// Flash beyond it, as a share of it.
    pub over_provisioning: f64,
    /// Channels.
    pub channels: u32,
    /// Dies on each.
    pub dies_per_channel: u32,
    /// Planes of a die, programmed together.
    pub planes: u32,
    /// Sectors of a flash page.
    pub page_sectors: u64,
    /// Flash pages of a block.
    pub pages_per_block: u64,
    /// Reading a page into the die's register: the kinds of pages there are, equally many of each.
    pub read_ns: Vec<u32>,
    /// Reads take up to so much more or less, uniformly.
    pub read_spread_ns: u32,
    /// Programming a page of every plane.
    pub program_ns: u32,
    /// Erasing a block.
    pub erase_ns: u32,
    /// A sector over a channel.
    pub channel_sector_ns: u32,
    /// A sector to the host.
    pub link_read_sector_ns: u32,
    /// A sector from the host.
    pub link_write_sector_ns: u32,
    /// What firmware adds to every request.
    pub firmware_ns: u32,
    /// What it cannot do for two requests at once.
    pub controller_ns: u32,
    /// Putting a write into the buffer.
    pub buffer_ns: u32,
    /// Sectors of the write buffer.
    pub buffer_sectors: u64,
    /// The buffer survives a power cut, so a flush has nothing to wait for.
    pub power_safe: bool,
    /// Requests taken at once.
    pub depth: u32,
    /// State at the beginning.
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    id: u64,
    submitted: u64,
    began: u64,
    cached: bool,
}

/// A flash drive.
#[derive(Clone, Debug)]
pub struct Flash {
    spec: FlashSpec,
    dies: u64,
    die_free: Vec<u64>,
    channel_free: Vec<u64>,
    controller_free: u64,
    link_read_free: u64,
    link_write_free: u64,
    buffered: u64,
    /// When room in the buffer comes free: (time, sectors).
    releases: BinaryHeap<Reverse<(u64, u64)>>,
    /// Sectors gathered for the next program, and what they are (kept for the journal only).
    open: u64,
    open_parts: Vec<(u64, u64, u64)>,
    next_die: usize,
    /// When everything programmed so far is on the medium.
    landed: u64,
    /// Shared by copies of the drive until one of them writes: it is a megabyte, and reads leave it as it is.
    translation: Arc<Translation>,
    /// One in so many logical pages is followed by the translation layer.
    scale: u64,
    /// Die time of a page's move, and of a block of the sample's erasing.
    move_ns: f64,
    erase_ns: f64,
    /// Die time that garbage collection still has to take, and over how many programs.
    debt_ns: f64,
    horizon: f64,
    stream: Stream,
    waiting: VecDeque<(Request, u64)>,
    ahead: BinaryHeap<Reverse<(u64, u64, Due)>>,
    done: Vec<Completion>,
    inside: u32,
    sequence: u64,
    clock: u64,
    journal: Option<Vec<MediaWrite>>,
}

impl Flash {
    /// Builds the drive and brings it into its first state. `seed` moves the spread of read times
    /// and the preconditioning.
    pub fn new(spec: FlashSpec, seed: u64) -> Result<Self, SpecError> {
        Flash::check(&spec)?;
        let pages = spec.capacity / PAGE;
        let scale = pages.div_ceil(SAMPLE).max(1);
        let logical = (pages / scale).max(1);
        let block_pages = spec.pages_per_block * spec.page_sectors / PAGE;
        // Small drives get small blocks, so that there are enough of them to choose from.
        let sample_block = block_pages.min(SAMPLE_BLOCK).min((logical / 64).max(4));
        let physical = (logical as f64 * (1.0 + spec.over_provisioning)).ceil() as u64;
        // The open block and the reserve come on top.
        let blocks = physical.div_ceil(sample_block) + 2;
        let mut translation = Translation::new(logical as u32, blocks as u32, sample_block as u32);
        let mut stream = Stream::new(seed, "flash");
        let share = |share: f64| (logical as f64 * share) as u32;
        let (moved, erased) = match spec.state {
            State::Fresh => (0.0, 0.0),
            State::Sequential(full) => translation.precondition(share(full), 0, &mut stream),
            State::Random(full) => translation.precondition(share(full), 4, &mut stream),
        };
        let dies = u64::from(spec.channels) * u64::from(spec.dies_per_channel);
        let program_pages = spec.page_sectors * u64::from(spec.planes) / PAGE;
        // A block of the sample is paid for while the host fills half of one.
        let horizon = (sample_block * scale / program_pages / 2).max(4 * dies) as f64;
        let erase_share = sample_block as f64 / block_pages as f64;
        let (move_ns, erase_ns) = collection_ns(&spec, erase_share);
        let steady = (moved * move_ns + erased * erase_ns) * program_pages as f64;
        Ok(Flash {
            dies,
            horizon,
            move_ns,
            erase_ns,
            debt_ns: steady * horizon,
            die_free: vec![0; dies as usize],
            channel_free: vec![0; spec.channels as usize],
            controller_free: 0,
            link_read_free: 0,
            link_write_free: 0,
            buffered: 0,
            releases: BinaryHeap::new(),
            open: 0,
            open_parts: Vec::new(),
            next_die: 0,
            landed: 0,
            translation: Arc::new(translation),
            scale,
            stream,
            waiting: VecDeque::new(),
            ahead: BinaryHeap::new(),
            done: Vec::new(),
            inside: 0,
            sequence: 0,
            clock: 0,
            journal: None,
            spec,
        })
    }

    /// Its description.
    pub fn spec(&self) -> &FlashSpec {
        &self.spec
    }
    /// Pages written to flash for each that the host wrote, since the beginning.
    pub fn write_amplification(&self) -> f64 {
        self.translation.write_amplification()
    }
    /// Keeps a record of what reaches the medium, for tests. It grows with the run.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }
    /// What has reached the medium (or will, at the time it says).
    pub fn journal(&self) -> &[MediaWrite] {
        self.journal.as_deref().unwrap_or_default()
    }
    /// The least time a read of `count` sectors can take, ns.
    pub fn minimum_read_ns(&self, count: u64) -> u64 {
        let page = self.spec.read_ns.iter().min().copied().unwrap_or(0);
        u64::from(self.spec.firmware_ns)
            + u64::from(page.saturating_sub(self.spec.read_spread_ns))
            + count * u64::from(self.spec.link_read_sector_ns)
    }

    fn program_sectors(&self) -> u64 {
        self.spec.page_sectors * u64::from(self.spec.planes)
    }

    /// Takes a request into the drive: all that will become of it follows from what is busy until
    /// when.
    fn admit(&mut self, request: Request, submitted: u64, now: u64) {
        self.inside += 1;
        self.sequence += 1;
        let began = now.max(self.controller_free);
        self.controller_free = began + u64::from(self.spec.controller_ns);
        let ready = began + u64::from(self.spec.firmware_ns);
        let (at, cached) = match request.op {
            Op::Read => (self.read(&request, ready), false),
            Op::Write => self.write(&request, ready),
            Op::Flush => (self.flush(ready), true),
            Op::Discard => {
                self.translate(&request, |translation, page| {
                    translation.discard(page);
                    Work::default()
                });
                (ready, true)
            }
        };
        let due = Due { id: request.id, submitted, began, cached };
        self.ahead.push(Reverse((at, self.sequence, due)));
    }

    /// Flash pages are spread over dies in turn.
    fn die_of(&self, flash_page: u64) -> usize {
        (flash_page % self.dies) as usize
    }

    fn read(&mut self, request: &Request, ready: u64) -> u64 {
        let mut last = ready;
        let (mut at, end) = (request.start.0, request.end());
        while at < end {
            let flash_page = at / self.spec.page_sectors;
            let sectors = (end - at).min(self.spec.page_sectors - at % self.spec.page_sectors);
            let die = self.die_of(flash_page);
            let channel = die % self.channel_free.len();
            let kinds = self.spec.read_ns.len() as u64;
            let mut page_ns =
                u64::from(self.spec.read_ns[(flash_page / self.dies % kinds) as usize]);
            if self.spec.read_spread_ns > 0 {
                let spread = u64::from(self.spec.read_spread_ns);
                page_ns = (page_ns + self.stream.below(2 * spread + 1)).saturating_sub(spread);
            }
            let sensed = ready.max(self.die_free[die]) + page_ns;
            let on_channel = sectors * u64::from(self.spec.channel_sector_ns);
            let sent = sensed.max(self.channel_free[channel]) + on_channel;
            self.die_free[die] = sent;
            self.channel_free[channel] = self.channel_free[channel].max(ready) + on_channel;
            let on_link = sectors * u64::from(self.spec.link_read_sector_ns);
            last = last.max(sent.max(self.link_read_free) + on_link);
            self.link_read_free = self.link_read_free.max(ready) + on_link;
            at += sectors;
        }
        last
    }

    fn write(&mut self, request: &Request, ready: u64) -> (u64, bool) {
        let (mut at, end) = (request.start.0, request.end());
        let mut time = ready.max(self.link_write_free);
        while at < end {
            let room = self.program_sectors() - self.open;
            let part = (end - at).min(room);
            time = self.wait_for_room(time, part);
            time += part * u64::from(self.spec.link_write_sector_ns);
            self.buffered += part;
            self.open += part;
            if self.journal.is_some() {
                self.open_parts.push((at, part, request.id));
            }
            if self.open == self.program_sectors() {
                self.program(time);
            }
            at += part;
        }
        self.link_write_free = time;
        let work = self.translate(request, Translation::write);
        self.owe(work);
        let buffered = time + u64::from(self.spec.buffer_ns);
        match request.fua && !self.spec.power_safe {
            true => {
                self.program(time);
                (buffered.max(self.landed), false)
            }
            false => (buffered, true),
        }
    }

    fn flush(&mut self, ready: u64) -> u64 {
        if self.spec.power_safe {
            return ready;
        }
        self.program(ready.max(self.link_write_free));
        ready.max(self.landed)
    }

    /// When `sectors` fit into the buffer, from `time` on.
    fn wait_for_room(&mut self, mut time: u64, sectors: u64) -> u64 {
        while let Some(Reverse((at, freed))) = self.releases.peek().copied() {
            if at > time && self.buffered + sectors <= self.spec.buffer_sectors {
                break;
            }
            self.releases.pop();
            self.buffered -= freed;
            time = time.max(at);
        }
        time
    }

    /// Programs what has been gathered, on the next die in turn.
    fn program(&mut self, time: u64) {
        if self.open == 0 {
            return;
        }
        let die = self.next_die;
        self.next_die = (self.next_die + 1) % self.die_free.len();
        let channel = die % self.channel_free.len();
        // The die's register takes the data while the die is still busy.
        let sent = time.max(self.channel_free[channel])
            + self.open * u64::from(self.spec.channel_sector_ns);
        self.channel_free[channel] = sent;
        let done = sent.max(self.die_free[die]) + u64::from(self.spec.program_ns);
        // Garbage collection takes its time of every die in turn, a little with each program, so
        // that a block of the sample is paid for while the next one fills.
        let share = self.debt_ns / self.horizon;
        self.debt_ns -= share;
        self.die_free[die] = done + share as u64;
        self.landed = self.landed.max(done);
        self.releases.push(Reverse((done, self.open)));
        self.open = 0;
        if let Some(journal) = &mut self.journal {
            journal.extend(self.open_parts.drain(..).map(|(start, count, writer)| MediaWrite {
                start,
                count,
                writer,
                at: Nanos(done),
            }));
        }
    }

    /// Does something with each of the request's pages that the sample follows.
    fn translate(
        &mut self,
        request: &Request,
        mut what: impl FnMut(&mut Translation, u32) -> Work,
    ) -> Work {
        let mut work = Work::default();
        let (first, last) = (request.start.0 / PAGE, (request.end() - 1) / PAGE);
        let mut page = first.div_ceil(self.scale);
        while page * self.scale <= last && page < u64::from(self.translation.pages()) {
            let done = what(Arc::make_mut(&mut self.translation), page as u32);
            work.moved += done.moved;
            work.erased += done.erased;
            page += 1;
        }
        work
    }

    /// Notes the die time of garbage collection.
    fn owe(&mut self, work: Work) {
        let scale = self.scale as f64;
        self.debt_ns += scale * work.moved as f64 * self.move_ns;
        self.debt_ns += scale * work.erased as f64 * self.erase_ns;
    }

    fn run(&mut self, now: u64) {
        self.clock = self.clock.max(now);
        while let Some(Reverse((at, _, due))) = self.ahead.peek().copied() {
            if at > now {
                return;
            }
            self.ahead.pop();
            self.done.push(Completion {
                id: due.id,
                submitted: Nanos(due.submitted),
                began: Nanos(due.began),
                at: Nanos(at),
                path: if due.cached { Path::Cache } else { Path::Medium },
            });
            self.inside -= 1;
            if let Some((request, submitted)) = self.waiting.pop_front() {
                self.admit(request, submitted, at);
            }
        }
    }
}

/// Die time of a page's move (a read and a share of a program) and of erasing a block of the
/// sample, which is a share of a real one.
fn collection_ns(spec: &FlashSpec, erase_share: f64) -> (f64, f64) {
    let kinds = spec.read_ns.len() as f64;
    let read: f64 = spec.read_ns.iter().map(|ns| f64::from(*ns)).sum::<f64>() / kinds;
    let planes = f64::from(spec.planes);
    let program = f64::from(spec.program_ns) * PAGE as f64 / (spec.page_sectors as f64 * planes);
    (read + program, erase_share * f64::from(spec.erase_ns) / planes)
}

impl Flash {
    /// Refuses what no drive can be built from.
    pub(crate) fn check(spec: &FlashSpec) -> Result<(), SpecError> {
        let wrong = |what: &str| Err(SpecError::new("flash", what));
        if spec.channels == 0 || spec.dies_per_channel == 0 || spec.planes == 0 {
            return wrong("expected at least one channel, one die on it and one plane");
        }
        if spec.page_sectors < PAGE
            || !spec.page_sectors.is_multiple_of(PAGE)
            || spec.pages_per_block == 0
        {
            return wrong("expected flash pages of a multiple of 4 KiB and blocks of at least one");
        }
        if spec.capacity < 64 * PAGE {
            return wrong("expected a capacity of at least 64 pages of 4 KiB");
        }
        if !(0.01..=10.0).contains(&spec.over_provisioning) {
            return wrong("expected over-provisioning from 0.01 to 10 of the capacity");
        }
        if spec.read_ns.is_empty() || spec.depth == 0 {
            return wrong("expected at least one read time and a depth of at least 1");
        }
        if spec.buffer_sectors < 2 * spec.page_sectors * u64::from(spec.planes) {
            return wrong("expected a write buffer of at least two programs");
        }
        match spec.state {
            State::Sequential(share) | State::Random(share) if !(0.0..=1.0).contains(&share) => {
                wrong("expected a share from 0 to 1 for the state at the beginning")
            }
            _ => Ok(()),
        }
    }
}

impl Device for Flash {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.run(now.0);
        let beyond = request.end() > self.spec.capacity || request.count.0 == 0;
        if beyond && request.op != Op::Flush {
            self.done.push(Completion {
                id: request.id,
                submitted: now,
                began: now,
                at: now,
                path: Path::OutOfRange,
            });
            return;
        }
        match self.inside < self.spec.depth {
            true => self.admit(request, now.0, now.0),
            false => self.waiting.push_back((request, now.0)),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        match self.done.first() {
            Some(done) => Some(done.at),
            None => self.ahead.peek().map(|Reverse((at, ..))| Nanos(*at)),
        }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now.0);
        done.append(&mut self.done);
    }

    fn queue_depth(&self) -> u32 {
        self.spec.depth
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.spec.capacity)
    }

    fn view(&self) -> View {
        let busy = self.die_free.iter().filter(|free| **free > self.clock).count();
        View {
            outstanding: self.inside + self.waiting.len() as u32,
            busy: busy as u32,
            units: self.dies as u32,
            cylinder: None,
            dirty: Sectors(self.buffered),
        }
    }
}
