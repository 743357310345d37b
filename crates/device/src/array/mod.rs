//! An array: a controller in front of drives, with or without a battery-backed write cache.

mod layout;
mod write_cache;

pub use layout::{Layout, Level, Piece};
pub use write_cache::{Destage, WriteBack};

use crate::spec_error::SpecError;
use crate::{Completion, Device, Op, Path, Request, View};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Nanos, Sectors};
use write_cache::WriteCache;

/// Which copy of a mirror a read goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPolicy {
    /// Always the first that works.
    First,
    /// In turn.
    RoundRobin,
    /// The one with the fewest requests; of equals, the one whose last request was nearest.
    ShortestQueue,
    /// The one whose last request was nearest.
    NearestHead,
}

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

/// A host's request, or a run of dirty data on its way to the drives.
#[derive(Clone, Debug, Default)]
struct Parent {
    /// The host's request; None for writing back.
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

    /// Lets a drive run to `at`, and follows up what it completed.
    fn step(&mut self, drive: usize, at: u64) {
        let mut done = std::mem::take(&mut self.scratch);
        self.drives[drive].advance(Nanos(at), &mut done);
        self.refresh(drive);
        for completion in done.drain(..) {
            self.at_drive[drive] -= 1;
            self.child_done(completion.id as usize, at);
        }
        self.scratch = done;
        self.feed(drive, at);
        self.destage(at);
    }

    fn refresh(&mut self, drive: usize) {
        self.next[drive] = self.drives[drive].next_event().map_or(u64::MAX, |at| at.0);
    }

    /// Gives a drive what waits for it, up to its share.
    fn feed(&mut self, drive: usize, at: u64) {
        while self.at_drive[drive] < self.spec.drive_depth {
            let Some(child) = self.queued[drive].pop_front() else { return };
            self.at_drive[drive] += 1;
            self.drive_operations += 1;
            let request = self.children[child].request;
            self.last[drive] = request.end();
            self.drives[drive].submit(request, Nanos(at));
            self.refresh(drive);
        }
    }

    fn child_done(&mut self, child: usize, at: u64) {
        let parent = self.children[child].parent;
        self.free_children.push(child);
        self.parents[parent].remaining -= 1;
        if self.parents[parent].remaining > 0 {
            return;
        }
        let then = std::mem::take(&mut self.parents[parent].then);
        if then.is_empty() {
            self.parent_done(parent, at);
        } else {
            self.issue(parent, then, at);
        }
    }

    /// Sends requests to drives on behalf of `parent`.
    fn issue(&mut self, parent: usize, requests: Vec<(usize, Request)>, at: u64) {
        self.parents[parent].remaining = requests.len() as u32;
        for (drive, request) in requests {
            let child = Child { parent, request };
            let number = match self.free_children.pop() {
                Some(number) => {
                    self.children[number] = child;
                    number
                }
                None => {
                    self.children.push(child);
                    self.children.len() - 1
                }
            };
            self.children[number].request.id = number as u64;
            self.queued[drive].push_back(number);
        }
        for drive in 0..self.drives.len() {
            self.feed(drive, at);
        }
    }

    fn parent_done(&mut self, number: usize, at: u64) {
        let parent = std::mem::take(&mut self.parents[number]);
        self.free_parents.push(number);
        match parent.host {
            Some((request, submitted)) => {
                self.host_running -= 1;
                // The controller's own time was paid at the start by writes, and is paid now by
                // reads, with the transfer to the host.
                let transfer = match request.op {
                    Op::Read => request.count.0 * u64::from(self.spec.sector_ns),
                    _ => 0,
                };
                let due =
                    Due { id: request.id, submitted, began: parent.began, cached: parent.cached };
                let at = at + u64::from(self.spec.overhead_ns) + transfer;
                self.ahead.push(Reverse((at, parent.sequence, due)));
            }
            None => {
                if let Some(cache) = &mut self.cache {
                    cache.landed(parent.run);
                }
                self.take_stalled(at);
            }
        }
        if parent.rows.is_some() {
            self.unblock(at);
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

    fn new_parent(&mut self, parent: Parent) -> usize {
        self.sequence += 1;
        self.host_running += u32::from(parent.host.is_some());
        let parent = Parent { sequence: self.sequence, ..parent };
        match self.free_parents.pop() {
            Some(number) => {
                self.parents[number] = parent;
                number
            }
            None => {
                self.parents.push(parent);
                self.parents.len() - 1
            }
        }
    }

    fn admit(&mut self, request: Request, submitted: u64, now: u64) {
        self.inside += 1;
        match (request.op, &mut self.cache) {
            (Op::Flush, Some(_)) => self.answer(request, submitted, now, 0),
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
                self.answer(request, submitted, now, request.count.0);
            }
            (Op::Discard, cache) => {
                if let Some(cache) = cache {
                    cache.forget(request.start.0, request.count.0);
                    self.take_stalled(now);
                }
                self.start(request, submitted, now);
            }
            _ => self.start(request, submitted, now),
        }
        self.destage(now);
    }

    /// Completes a request without the drives.
    fn answer(&mut self, request: Request, submitted: u64, now: u64, sectors: u64) {
        self.sequence += 1;
        let at = now + u64::from(self.spec.overhead_ns) + sectors * u64::from(self.spec.sector_ns);
        let due = Due { id: request.id, submitted, began: now, cached: true };
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
                self.answer(request, submitted, now, count);
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
            (Op::Write, Level::Parity) => {
                let pieces = self.layout.pieces(request.start.0, request.count.0);
                let (mut first, mut last) = (u64::MAX, 0);
                for piece in pieces {
                    first = first.min(piece.row);
                    last = last.max(piece.row);
                }
                self.parents[parent].rows = Some((first, last));
                if self.row_is_held(parent, first, last) {
                    self.blocked.push_back(parent);
                    self.parents[parent].run = (request.start.0, request.count.0);
                    return;
                }
                self.write_rows(parent, request, now);
            }
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

    /// Reads of each piece: from the copy that the policy names, or from all the others of a row
    /// whose drive has failed.
    fn reads(&mut self, request: Request) -> Vec<(usize, Request)> {
        let mut reads = Vec::new();
        for piece in self.layout.pieces(request.start.0, request.count.0) {
            let read = on_drive(&request, piece.start, piece.count);
            match self.spec.level {
                Level::Parity if !self.works(piece.drive) => {
                    let others = (0..self.drives.len()).filter(|drive| *drive != piece.drive);
                    reads.extend(others.map(|drive| (drive, read)));
                }
                _ => reads.push((self.copy_to_read(&piece), read)),
            }
        }
        reads
    }

    fn copy_to_read(&mut self, piece: &Piece) -> usize {
        self.turn += usize::from(self.spec.read_policy == ReadPolicy::RoundRobin);
        let copies = self.layout.copies(piece.drive);
        let working = copies.filter(|drive| self.works(*drive));
        let distance = |drive: &usize| self.last[*drive].abs_diff(piece.start);
        let load = |drive: &usize| self.at_drive[*drive] as usize + self.queued[*drive].len();
        let chosen = match self.spec.read_policy {
            ReadPolicy::First => working.clone().next(),
            ReadPolicy::RoundRobin => {
                let count = working.clone().count().max(1);
                working.clone().nth(self.turn % count)
            }
            ReadPolicy::ShortestQueue => working.clone().min_by_key(|d| (load(d), distance(d))),
            ReadPolicy::NearestHead => working.clone().min_by_key(|d| (distance(d), *d)),
        };
        chosen.unwrap_or(piece.drive)
    }

    fn row_is_held(&self, parent: usize, first: u64, last: u64) -> bool {
        let held =
            |other: &Parent| other.rows.is_some_and(|(from, to)| from <= last && first <= to);
        // Those that wait before it count too, or it would overtake them.
        self.parents.iter().enumerate().any(|(number, other)| {
            number != parent && other.sequence < self.parents[parent].sequence && held(other)
        })
    }

    fn unblock(&mut self, now: u64) {
        let mut blocked = std::mem::take(&mut self.blocked);
        let mut still = VecDeque::new();
        while let Some(parent) = blocked.pop_front() {
            let Some((first, last)) = self.parents[parent].rows else { continue };
            if self.row_is_held(parent, first, last) {
                still.push_back(parent);
                continue;
            }
            let (start, count) = self.parents[parent].run;
            let fua = self.parents[parent].host.is_none_or(|(request, _)| request.fua);
            let request = Request { fua, ..Request::write(0, start, count) };
            self.write_rows(parent, request, now);
        }
        still.append(&mut self.blocked);
        self.blocked = still;
    }

    /// A write under parity: of each row that is written whole, data and parity; else old data and
    /// old parity are read first (read-modify-write), so a small write is four operations.
    fn write_rows(&mut self, parent: usize, request: Request, now: u64) {
        let mut reads: Vec<(usize, Request)> = Vec::new();
        let mut writes: Vec<(usize, Request)> = Vec::new();
        let pieces: Vec<Piece> = self.layout.pieces(request.start.0, request.count.0).collect();
        for row in pieces.chunk_by(|a, b| a.row == b.row) {
            self.write_row(&request, row, &mut reads, &mut writes);
        }
        if reads.is_empty() {
            self.issue(parent, writes, now);
        } else {
            self.parents[parent].then = writes;
            self.issue(parent, reads, now);
        }
    }

    fn write_row(
        &self,
        request: &Request,
        row: &[Piece],
        reads: &mut Vec<(usize, Request)>,
        writes: &mut Vec<(usize, Request)>,
    ) {
        let parity = self.layout.parity_drive(row[0].row);
        let from = row.iter().map(|piece| piece.start).min().unwrap_or(0);
        let to = row.iter().map(|piece| piece.start + piece.count).max().unwrap_or(0);
        let write = |piece: &Piece| (piece.drive, on_drive(request, piece.start, piece.count));
        let read = |drive: usize, start: u64, count: u64| (drive, Request::read(0, start, count));
        writes.extend(row.iter().filter(|piece| self.works(piece.drive)).map(write));
        if !self.works(parity) {
            return; // data alone; the row has no parity now
        }
        writes.push((parity, on_drive(request, from, to - from)));
        let whole = row.len() as u64 == self.layout.columns()
            && row.iter().all(|piece| piece.count == self.layout.unit);
        if whole {
            return;
        }
        match row.iter().any(|piece| !self.works(piece.drive)) {
            // The lost drive's new data goes into the parity, made from all the others' data.
            true => {
                let others = (0..self.drives.len()).filter(|d| *d != parity && self.works(*d));
                reads.extend(others.map(|drive| read(drive, from, to - from)));
            }
            false => {
                reads.extend(row.iter().map(|p| read(p.drive, p.start, p.count)));
                reads.push(read(parity, from, to - from));
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
