//! An array: a controller in front of drives, with or without a battery-backed write cache.

mod drives;
mod layout;
mod parity;
mod read;
mod read_cache;
mod write_cache;

pub use layout::{Layout, Level, Piece};
pub use read::ReadPolicy;
pub use read_cache::{AheadPolicy, ReadCache};
pub use write_cache::{Destage, WriteBack};

use crate::spec_error::SpecError;
use crate::{Completion, Device, Op, Path, Request, View};
use read_cache::CachedRows;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Nanos, Sectors};
use write_cache::WriteCache;

/// A controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ArraySpec {
    /// How data is spread.
    pub level: Level,
    /// Sectors of a stripe unit.
    pub stripe_unit: u64,
    /// Requests the controller takes from the host at once.
    pub depth: u32,
    /// Requests it gives each drive at once.
    pub drive_depth: u32,
    /// The controller's own time for a request, ns.
    pub overhead_ns: u32,
    /// A sector between host and controller, ns.
    pub sector_ns: u32,
    /// Which copy to read.
    pub read_policy: ReadPolicy,
    /// The read cache, if it has one.
    pub read_cache: Option<ReadCache>,
    /// The write cache; None is write-through.
    pub write_back: Option<WriteBack>,
    /// A drive that has failed.
    pub failed: Option<usize>,
}

/// What a request to a drive is part of.
#[derive(Clone, Copy, Debug)]
struct Child {
    parent: usize,
    request: Request,
}

/// A host's request, a run of dirty data on its way to the drives, or a row that is read ahead.
#[derive(Clone, Debug, Default)]
struct Parent {
    /// The host's request; None for writing back and reading ahead.
    host: Option<(Request, u64)>,
    began: u64,
    sequence: u64,
    /// Requests to drives that are not yet complete.
    remaining: u32,
    /// What is done when those are: the writes after a small write's reads.
    then: Vec<(usize, Request)>,
    /// Rows of parity that it holds against others, first and last.
    rows: Option<(u64, u64)>,
    /// What it writes back: start, count.
    run: (u64, u64),
    /// The row of stripe units that it reads for the read cache.
    cached_row: Option<u64>,
    cached: bool,
}

/// An array of drives of any kind.
#[derive(Debug)]
pub struct Array {
    spec: ArraySpec,
    layout: Layout,
    capacity: u64,
    drives: Vec<Box<dyn Device>>,
    /// When each drive next does something.
    next: Vec<u64>,
    /// Requests that wait for a place at the drive.
    queued: Vec<VecDeque<usize>>,
    at_drive: Vec<u32>,
    /// Where each drive's last request ended.
    last: Vec<u64>,
    turn: usize,
    parents: Vec<Parent>,
    free_parents: Vec<usize>,
    children: Vec<Child>,
    free_children: Vec<usize>,
    /// Small writes that wait for a row of parity, in order.
    blocked: VecDeque<usize>,
    waiting: VecDeque<(Request, u64)>,
    cached_rows: Option<CachedRows>,
    cache: Option<WriteCache>,
    /// Writes that wait for room in the cache.
    stalled: VecDeque<(Request, u64)>,
    ahead: BinaryHeap<Reverse<(u64, u64, Due)>>,
    done: Vec<Completion>,
    scratch: Vec<Completion>,
    inside: u32,
    /// Requests of the host that wait for drives.
    host_running: u32,
    sequence: u64,
    drive_operations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    id: u64,
    submitted: u64,
    began: u64,
    cached: bool,
}

impl Array {
    /// An array of `drives`, which must be fresh.
    pub fn new(spec: ArraySpec, drives: Vec<Box<dyn Device>>) -> Result<Self, SpecError> {
        let n = drives.len();
        let wrong = |what: String| Err(SpecError::new("array", what));
        let (enough, wanted) = match spec.level {
            Level::Stripe => (n >= 1, "at least 1"),
            Level::Mirror => (n >= 2, "at least 2"),
            Level::StripedMirrors => (n >= 2 && n.is_multiple_of(2), "an even number, at least 2"),
            Level::Parity => (n >= 3, "at least 3"),
        };
        if !enough {
            return wrong(format!("{n} drives: {:?} needs {wanted}", spec.level));
        }
        if spec.stripe_unit == 0 || spec.depth == 0 || spec.drive_depth == 0 {
            return wrong("a stripe unit, a depth and a drive depth of at least 1".to_owned());
        }
        match spec.failed {
            Some(drive) if drive >= n => {
                return wrong(format!("drive {drive} has failed, and there are {n}"));
            }
            Some(_) if spec.level == Level::Stripe => {
                return wrong("a stripe with a failed drive holds no data".to_owned());
            }
            _ => (),
        }
        let layout = Layout { level: spec.level, drives: n, unit: spec.stripe_unit };
        let smallest = drives.iter().map(|drive| drive.capacity().0).min().unwrap_or(0);
        let capacity = layout.capacity(smallest);
        if capacity == 0 {
            return wrong("drives smaller than a stripe unit".to_owned());
        }
        let cache = spec.write_back.map(WriteCache::new).transpose()?;
        let row = layout.unit * layout.columns();
        let cached_rows = spec.read_cache.map(|it| CachedRows::new(it, row)).transpose()?;
        Ok(Array {
            layout,
            capacity,
            next: vec![u64::MAX; n],
            queued: vec![VecDeque::new(); n],
            at_drive: vec![0; n],
            last: vec![0; n],
            turn: 0,
            parents: Vec::new(),
            free_parents: Vec::new(),
            children: Vec::new(),
            free_children: Vec::new(),
            blocked: VecDeque::new(),
            waiting: VecDeque::new(),
            cached_rows,
            cache,
            stalled: VecDeque::new(),
            ahead: BinaryHeap::new(),
            done: Vec::new(),
            scratch: Vec::new(),
            inside: 0,
            host_running: 0,
            sequence: 0,
            drive_operations: 0,
            drives,
            spec,
        })
    }

    /// How data is spread.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// Reads go by this policy from now on.
    pub fn set_read_policy(&mut self, policy: ReadPolicy) {
        self.spec.read_policy = policy;
    }
    /// Requests given to drives since the beginning.
    pub fn drive_operations(&self) -> u64 {
        self.drive_operations
    }
    /// The drives, for looking at.
    pub fn drives(&self) -> impl Iterator<Item = &dyn Device> {
        self.drives.iter().map(Box::as_ref)
    }

    fn works(&self, drive: usize) -> bool {
        self.spec.failed != Some(drive)
    }

    fn earliest(&self) -> Option<(u64, usize)> {
        let drive = (0..self.next.len()).min_by_key(|drive| self.next[*drive])?;
        (self.next[drive] != u64::MAX).then(|| (self.next[drive], drive))
    }

    /// Runs what happens before `now`, and what happens at `now` until a completion comes of it.
    fn run(&mut self, now: u64, include_now: bool) {
        loop {
            let due = self.ahead.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
            let (at, drive) = self.earliest().unwrap_or((u64::MAX, 0));
            let first = due.min(at);
            if first > now || (first == now && (!include_now || !self.done.is_empty())) {
                return;
            }
            if due <= at {
                self.deliver();
            } else {
                self.step(drive, at);
            }
        }
    }

    fn deliver(&mut self) {
        let Some(Reverse((at, _, due))) = self.ahead.pop() else { return };
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
        self.destage(at);
    }

    fn admit(&mut self, request: Request, submitted: u64, now: u64) {
        self.inside += 1;
        self.forget_rows(&request);
        match (request.op, &mut self.cache) {
            (Op::Flush, Some(_)) => self.answer(request, submitted, now, 0, true),
            (Op::Flush, None) => {
                let host = Some((request, submitted));
                let parent = self.new_parent(Parent { host, began: now, ..Parent::default() });
                let flushes = (0..self.drives.len())
                    .filter(|drive| self.works(*drive))
                    .map(|drive| (drive, Request::flush(0)))
                    .collect();
                self.issue(parent, flushes, now);
            }
            (Op::Write, Some(_)) => {
                self.stalled.push_back((request, submitted));
                self.take_stalled(now);
            }
            (Op::Read, Some(cache)) if cache.holds(request.start.0, request.count.0) => {
                self.answer(request, submitted, now, request.count.0, true);
            }
            (Op::Discard, cache) => {
                if let Some(cache) = cache {
                    cache.forget(request.start.0, request.count.0);
                    self.take_stalled(now);
                }
                self.start(request, submitted, now);
            }
            (Op::Read, cache) => {
                // What the write cache has of it is newer than what the drives have.
                let (start, count) = (request.start.0, request.count.0);
                let newer = cache.as_ref().is_some_and(|it| it.touches(start, count));
                if newer || !self.read_by_row(request, submitted, now) {
                    self.start(request, submitted, now);
                }
            }
            _ => self.start(request, submitted, now),
        }
        self.destage(now);
    }

    /// Completes a request from the controller's memory; `cached`: without the drives.
    fn answer(&mut self, request: Request, submitted: u64, now: u64, sectors: u64, cached: bool) {
        self.sequence += 1;
        let at = now + u64::from(self.spec.overhead_ns) + sectors * u64::from(self.spec.sector_ns);
        let due = Due { id: request.id, submitted, began: now, cached };
        self.ahead.push(Reverse((at, self.sequence, due)));
    }

    /// Writes that the cache has room for go in, in order; one larger than the cache goes through.
    fn take_stalled(&mut self, now: u64) {
        while let Some((request, submitted)) = self.stalled.front().copied() {
            let (start, count) = (request.start.0, request.count.0);
            let Some(cache) = &mut self.cache else { return };
            if cache.fits_ever(count) {
                if !cache.take(start, count) {
                    return;
                }
                self.stalled.pop_front();
                self.answer(request, submitted, now, count, true);
            } else {
                if cache.is_flying(start, count) {
                    return;
                }
                cache.forget(start, count);
                self.stalled.pop_front();
                self.start(request, submitted, now);
            }
        }
    }

    /// Sends a host's request to the drives.
    fn start(&mut self, request: Request, submitted: u64, now: u64) {
        let host = Some((request, submitted));
        let parent = self.new_parent(Parent { host, began: now, ..Parent::default() });
        self.begin(parent, request, now);
    }

    fn begin(&mut self, parent: usize, request: Request, now: u64) {
        match (request.op, self.spec.level) {
            (Op::Read, _) => {
                let requests = self.reads(request);
                self.issue(parent, requests, now);
            }
            (Op::Write, Level::Parity) => self.write_parity(parent, request, now),
            (Op::Discard, Level::Parity) => self.parent_done(parent, now),
            _ => {
                let copies: Vec<_> = self
                    .layout
                    .pieces(request.start.0, request.count.0)
                    .flat_map(|piece| {
                        self.layout.copies(piece.drive).map(move |drive| (drive, piece))
                    })
                    .filter(|(drive, _)| self.works(*drive))
                    .map(|(drive, piece)| (drive, on_drive(&request, piece.start, piece.count)))
                    .collect();
                self.issue(parent, copies, now);
            }
        }
    }

    /// Sends dirty data to the drives, as the cache's policy says.
    fn destage(&mut self, now: u64) {
        loop {
            let Some(cache) = &mut self.cache else { return };
            let busy = self.host_running > 0;
            let pressed = !self.stalled.is_empty();
            let Some((start, count)) = cache.next_run(&self.layout, busy, pressed) else { return };
            let run = (start, count);
            let parent = self.new_parent(Parent { began: now, run, ..Parent::default() });
            self.begin(parent, Request::write(0, start, count).with_fua(), now);
        }
    }
}

/// The part of a host's request that goes to a drive.
fn on_drive(request: &Request, start: u64, count: u64) -> Request {
    Request { id: 0, start: Sectors(start), count: Sectors(count), ..*request }
}

impl Device for Array {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.run(now.0, false);
        let beyond = request.end() > self.capacity || request.count.0 == 0;
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
        if let Some(done) = self.done.first() {
            return Some(done.at);
        }
        let due = self.ahead.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        let drive = self.earliest().map_or(u64::MAX, |(at, _)| at);
        let first = due.min(drive);
        (first != u64::MAX).then_some(Nanos(first))
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now.0, true);
        done.append(&mut self.done);
    }

    fn queue_depth(&self) -> u32 {
        self.spec.depth
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    fn view(&self) -> View {
        let dirty = self.cache.as_ref().map_or(0, WriteCache::sectors);
        let mut view = View {
            outstanding: self.inside + self.waiting.len() as u32,
            dirty: Sectors(dirty),
            ..View::default()
        };
        for drive in &self.drives {
            let inner = drive.view();
            view.busy += inner.busy;
            view.units += inner.units;
            view.cylinder = view.cylinder.or(inner.cylinder);
        }
        view
    }

    fn heads(&self) -> Vec<u32> {
        self.drives.iter().flat_map(|drive| drive.heads()).collect()
    }
}
