//! A disk drive: one arm, one spindle, a buffer, a queue.
//!
//! The drive does two things at once: its electronics answer what the buffer can answer, and its
//! arm serves one request (or writes back one run of dirty data) at a time.

mod cache;
mod electronics;
mod geometry;
mod mechanics;
mod media;
mod queue;
mod seek;
mod spec;

pub use geometry::{
    ChildSpec, Extent, Geometry, GeometrySpec, HeadOrder, IndexSpec, PatternSpec, Place, RemapSpec,
    RunSpec, Sparing, ZoneSpec,
};
pub use mechanics::Mechanics;
pub use seek::{SeekCurve, SeekTable};
pub use spec::{
    Access, After, Bus, CacheSpec, DiskSpec, ExtraDisconnect, Overheads, Policy, ReadAhead,
    WriteCache,
};

use crate::dirty::{Dirty, DirtyMap};
use crate::spec_error::SpecError;
use crate::{Completion, Device, Op, Path, Request, View};
use cache::Cache;
use mechanics::{Arm, from_ns};
use queue::{Pending, Queue};
use random::Stream;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::{Nanos, Sectors};

/// A write that reached the medium, for tests of what survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaWrite {
    /// First sector.
    pub start: u64,
    /// Sectors.
    pub count: u64,
    /// The id of the request whose data it is.
    pub writer: u64,
    /// When its last sector was on the medium.
    pub at: Nanos,
}

/// What the arm is doing.
#[derive(Clone, Debug)]
enum Work {
    /// A host's request; its completion is known already.
    Host(Pending),
    /// Writing back the runs in `Disk::flying`.
    WriteBack,
}

/// A disk drive.
#[derive(Clone, Debug)]
pub struct Disk {
    spec: DiskSpec,
    mechanics: Mechanics,
    cache: Cache,
    queue: Queue,
    arm: Arm,
    /// What the arm does, and until when.
    work: Option<(Work, Nanos)>,
    /// The arm has been free since.
    free_since: Nanos,
    electronics_free: Nanos,
    bus_free: Nanos,
    last_was_write: bool,
    /// The block behind the last write to the medium, and when it ended.
    write_ended: Option<(u64, Nanos)>,
    served_host_last: bool,
    /// Requests beyond the drive's depth, in arrival order.
    waiting: VecDeque<(Request, Nanos)>,
    /// Writes for which the write cache has no room yet.
    stalled: VecDeque<Pending>,
    flushes: VecDeque<Pending>,
    dirty: DirtyMap,
    flying: Vec<Dirty>,
    /// Completions that are known and lie ahead: (time, order, ...).
    ahead: BinaryHeap<Reverse<(Nanos, u64, Due)>>,
    done: Vec<Completion>,
    in_drive: u32,
    sequence: u64,
    journal: Option<Vec<MediaWrite>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    id: u64,
    submitted: Nanos,
    began: Nanos,
    cached: bool,
}

impl Disk {
    /// Builds the drive of `spec`: arm at cylinder 0, head 0, platter at angle 0 at time 0, buffer
    /// empty.
    pub fn new(spec: DiskSpec) -> Result<Self, SpecError> {
        let geometry = Geometry::new(&spec.geometry)?;
        // Where nothing moves, no position is nearer than another.
        let still = matches!(spec.access, Access::Constant(_));
        let cylinders = geometry.cylinders();
        let seek = match still {
            true => SeekTable::new(&SeekCurve::Constant(0.0), cylinders)?,
            false => SeekTable::new(&spec.seek, cylinders)?,
        };
        let write_seek = match &spec.write_seek {
            Some(curve) if !still => Some(SeekTable::new(curve, cylinders)?),
            _ => None,
        };
        if spec.depth == 0 {
            return Err(SpecError::new("queue", "a depth of 0: expected at least 1"));
        }
        if let WriteCache::Full { high_water, runs, .. } = spec.write_cache
            && (!(0.0..=1.0).contains(&high_water) || runs == 0)
        {
            let what = format!(
                "a high-water mark of {high_water} and {runs} runs: expected 0 to 1, at least 1"
            );
            return Err(SpecError::new("write cache", what));
        }
        if spec.cache.segments > 0 && spec.cache.segment_sectors == 0 {
            return Err(SpecError::new("cache", "segments of no size"));
        }
        let jog_ns = match spec.read_after_write_jog && geometry.cylinders() > 1 {
            true => seek.time_ns(1),
            false => 0,
        };
        let mechanics = Mechanics {
            geometry,
            seek,
            write_seek,
            head_switch_ns: if still { 0 } else { spec.head_switch_ns },
            write_settle_ns: if still { 0 } else { spec.write_settle_ns },
            jog_ns,
            read_on_arrival: spec.cache.read_on_arrival,
            access: spec.access,
            turned_ns: 0,
        };
        Ok(Disk {
            mechanics,
            cache: Cache::new(spec.cache),
            queue: Queue::new(spec.policy),
            arm: Arm::default(),
            work: None,
            free_since: Nanos::ZERO,
            electronics_free: Nanos::ZERO,
            bus_free: Nanos::ZERO,
            last_was_write: false,
            write_ended: None,
            served_host_last: false,
            waiting: VecDeque::new(),
            stalled: VecDeque::new(),
            flushes: VecDeque::new(),
            dirty: DirtyMap::default(),
            flying: Vec::new(),
            ahead: BinaryHeap::new(),
            done: Vec::new(),
            in_drive: 0,
            sequence: 0,
            journal: None,
            spec,
        })
    }

    /// The same with its platter at a random angle at time 0, drawn from `seed`. Some streams of requests
    /// keep for as long as they last the rotational latency that they met first; and the drives of an array
    /// are not in step.
    pub fn at_any_angle(mut self, seed: u64) -> Self {
        let turn = self.mechanics.geometry.turn_ns();
        self.mechanics.turned_ns = Stream::new(seed, "platter").below(turn);
        self
    }

    /// The same without rotational latency, to show what that does: transfers take as long as ever.
    pub fn without_rotation(mut self) -> Self {
        if !matches!(self.spec.access, Access::Constant(_)) {
            self.spec.access = Access::NoRotation;
            self.mechanics.access = Access::NoRotation;
        }
        self
    }

    /// Its description.
    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }
    /// Its layout.
    pub fn geometry(&self) -> &Geometry {
        &self.mechanics.geometry
    }
    /// Keeps a record of what reaches the medium, for tests. It grows with the run.
    pub fn keep_journal(&mut self) {
        self.journal = Some(Vec::new());
    }
    /// What has reached the medium since [`keep_journal`](Self::keep_journal).
    pub fn journal(&self) -> &[MediaWrite] {
        self.journal.as_deref().unwrap_or_default()
    }

    /// The shortest time in which a request of `count` sectors can complete, ns: the smallest overhead,
    /// and the bus.
    pub fn minimum_service_ns(&self, op: Op, count: u64) -> u64 {
        let o = &self.spec.overheads;
        let least = |a: After, b: After| {
            u64::from(a.read_ns.min(a.write_ns).min(b.read_ns).min(b.write_ns))
        };
        match op {
            Op::Read => {
                least(o.read_hit, o.read_miss) + count * u64::from(self.spec.bus.read_sector_ns)
            }
            Op::Write => {
                let command = least(o.write_hit, o.write_miss);
                let command =
                    o.extra_disconnect.map_or(command, |e| command.min(u64::from(e.command_ns)));
                command + count * u64::from(self.spec.bus.write_sector_ns)
            }
            Op::Flush | Op::Discard => 0,
        }
    }

    fn overhead(&self, after: After) -> Nanos {
        from_ns(if self.last_was_write { after.write_ns } else { after.read_ns })
    }

    /// When the next thing happens: the arm is done, a completion is due, or the arm is free and
    /// has something to decide.
    fn next(&self) -> Option<Nanos> {
        let due = self.ahead.peek().map(|Reverse((at, ..))| *at);
        let arm = match &self.work {
            Some((_, until)) => Some(*until),
            None if self.has_work() => Some(self.free_since),
            None => None,
        };
        match (due, arm) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn has_work(&self) -> bool {
        !self.queue.is_empty() || !self.dirty.is_empty()
    }

    /// Runs until `now`. A decision due exactly then is left open unless `decide`, so that requests
    /// submitted at the same instant still count.
    fn run(&mut self, now: Nanos, decide: bool) {
        loop {
            let due = self.ahead.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
            let work_ends = self.work.as_ref().map_or(Nanos::MAX, |(_, until)| *until);
            if work_ends <= due && work_ends <= now {
                self.end_work();
            } else if due <= now {
                // A decision before the completion comes first.
                if self.work.is_none() && self.free_since < due && self.has_work() {
                    self.decide(self.free_since);
                    continue;
                }
                self.deliver();
            } else if self.work.is_none() && self.has_work() {
                let at = self.free_since;
                if at > now || (at == now && !decide) {
                    return;
                }
                self.decide(at);
            } else {
                return;
            }
        }
    }

    /// Hands out the earliest completion; its place in the drive goes to who waits.
    fn deliver(&mut self) {
        let Some(Reverse((at, _, due))) = self.ahead.pop() else { return };
        let path = if due.cached { Path::Cache } else { Path::Medium };
        self.done.push(Completion {
            id: due.id,
            submitted: due.submitted,
            began: due.began,
            at,
            path,
        });
        self.in_drive -= 1;
        if let Some((request, submitted)) = self.waiting.pop_front() {
            self.admit(request, submitted, at);
        }
    }

    fn complete(&mut self, pending: &Pending, began: Nanos, at: Nanos, cached: bool) {
        let due = Due { id: pending.request.id, submitted: pending.submitted, began, cached };
        self.ahead.push(Reverse((at, pending.sequence, due)));
    }

    /// Takes a request into the drive at `now`: the electronics answer it, or it queues for the arm.
    fn admit(&mut self, request: Request, submitted: Nanos, now: Nanos) {
        self.in_drive += 1;
        self.sequence += 1;
        let sequence = self.sequence;
        let mut pending = Pending { request, submitted, sequence, oldest: sequence };
        match request.op {
            Op::Read => match self.read_hits(&request, now) {
                true => self.serve_hit(&pending, now),
                false => self.enqueue(pending, now),
            },
            Op::Write => match self.write_cache_takes(&request) {
                Some(true) => self.accept_write(&pending, now),
                Some(false) => self.stalled.push_back(pending),
                None => {
                    let start = request.start.0;
                    if let Some(oldest) = self.dirty.remove(start, request.count.0) {
                        pending.oldest = oldest;
                    }
                    self.enqueue(pending, now);
                }
            },
            Op::Flush => {
                self.flushes.push_back(pending);
                self.check_flushes(now);
            }
            Op::Discard => {
                self.dirty.remove(request.start.0, request.count.0);
                self.cache.forget(request.start.0, request.end());
                let began = now.max(self.electronics_free);
                let at = began + from_ns(self.spec.overheads.write_hit.read_ns);
                self.electronics_free = at;
                self.complete(&pending, began, at, true);
                // A dropped segment may have blocked another request.
                self.take_stalled(now);
                self.check_flushes(now);
            }
        }
        self.wake(now);
    }

    /// A free arm with new work decides no earlier than the work came.
    fn wake(&mut self, now: Nanos) {
        if self.work.is_none() && self.free_since < now {
            self.free_since = now;
        }
    }

    fn enqueue(&mut self, pending: Pending, now: Nanos) {
        if self.work.is_none() && !self.has_work() {
            self.free_since = self.free_since.max(now);
        }
        self.queue.push(&self.mechanics, pending);
    }

    /// The arm is free at `at`: what does it do next?
    fn decide(&mut self, at: Nanos) {
        let pressed = match self.spec.write_cache {
            WriteCache::Off => false,
            WriteCache::Appending { .. } => !self.dirty.is_empty(),
            WriteCache::Full { size, high_water, .. } => {
                !self.flushes.is_empty()
                    || !self.stalled.is_empty()
                    || self.dirty.sectors() as f64 > size as f64 * high_water
            }
        };
        // Under pressure writing back and reads take turns.
        let appending = matches!(self.spec.write_cache, WriteCache::Appending { .. });
        let back = !self.dirty.is_empty()
            && (self.queue.is_empty() || (pressed && (appending || self.served_host_last)));
        self.run_read_ahead(at);
        if back {
            self.served_host_last = false;
            self.write_back(at);
            return;
        }
        let o = &self.spec.overheads;
        let overheads = (self.overhead(o.read_miss).0 as u32, self.overhead(o.write_miss).0 as u32);
        let stream = self.cache.stream().and_then(|stream| self.queue.take_stream(stream));
        let next = stream.or_else(|| self.queue.take(&self.mechanics, self.arm, at, overheads));
        if let Some(pending) = next {
            self.served_host_last = true;
            match pending.request.op {
                Op::Write => self.write_media(pending, at),
                _ => self.read_media(pending, at),
            }
        }
    }

    fn end_work(&mut self) {
        let Some((work, at)) = self.work.take() else { return };
        self.free_since = at;
        match work {
            Work::Host(pending) => {
                if let (Op::Write, Some(journal)) = (pending.request.op, &mut self.journal) {
                    let request = pending.request;
                    journal.push(MediaWrite {
                        start: request.start.0,
                        count: request.count.0,
                        writer: request.id,
                        at,
                    });
                }
            }
            Work::WriteBack => {
                if let Some(journal) = &mut self.journal {
                    journal.extend(self.flying.iter().map(|dirty| MediaWrite {
                        start: dirty.start,
                        count: dirty.count,
                        writer: dirty.writer,
                        at,
                    }));
                }
                self.flying.clear();
            }
        }
        self.take_stalled(at);
        self.check_flushes(at);
    }

    /// Room came free: writes that waited for it go in, in order.
    fn take_stalled(&mut self, at: Nanos) {
        let mut stalled = std::mem::take(&mut self.stalled);
        while let Some(pending) = stalled.front().copied() {
            if self.write_cache_takes(&pending.request) != Some(true) {
                break;
            }
            stalled.pop_front();
            self.accept_write(&pending, at);
        }
        self.stalled = stalled;
    }

    /// Completes each flush whose earlier writes are all on the medium.
    fn check_flushes(&mut self, at: Nanos) {
        while let Some(flush) = self.flushes.front().copied() {
            let barrier = flush.sequence;
            let queued = |p: &Pending| p.request.op == Op::Write && p.oldest < barrier;
            let working = match &self.work {
                Some((Work::Host(pending), _)) => queued(pending),
                _ => false,
            };
            if working
                || self.queue.pending().iter().any(queued)
                || self.stalled.iter().any(queued)
                || self.flying.iter().any(|dirty| dirty.oldest < barrier)
                || self.dirty.older_than(barrier)
            {
                return;
            }
            self.flushes.pop_front();
            let began = at.max(self.electronics_free);
            let done = began + from_ns(self.spec.overheads.write_hit.write_ns);
            self.complete(&flush, began, done, true);
        }
    }
}

impl Device for Disk {
    fn submit(&mut self, request: Request, now: Nanos) {
        self.run(now, false);
        let no_data = matches!(request.op, Op::Flush);
        let beyond = request.end() > self.mechanics.geometry.capacity() || request.count.0 == 0;
        if beyond && !no_data {
            self.done.push(Completion {
                id: request.id,
                submitted: now,
                began: now,
                at: now,
                path: Path::OutOfRange,
            });
            return;
        }
        match self.in_drive < self.spec.depth {
            true => self.admit(request, now, now),
            false => self.waiting.push_back((request, now)),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        match self.done.first() {
            Some(done) => Some(done.at),
            None => self.next(),
        }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run(now, false);
        if self.done.is_empty() {
            self.run(now, true);
        }
        done.append(&mut self.done);
    }

    fn queue_depth(&self) -> u32 {
        self.spec.depth
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.mechanics.geometry.capacity())
    }

    fn view(&self) -> View {
        let flying: u64 = self.flying.iter().map(|dirty| dirty.count).sum();
        View {
            outstanding: self.in_drive + self.waiting.len() as u32,
            busy: u32::from(self.work.is_some()),
            units: 1,
            cylinder: Some(self.arm.cylinder),
            dirty: Sectors(self.dirty.sectors() + flying),
        }
    }
}
