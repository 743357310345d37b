//! The requests and bios that a layer holds, in slabs: a request is named by its index.

use crate::admission::Grant;
use crate::bio::{Bio, BioDone, Context};
use device::{Completion, Op};
use units::{Nanos, Sectors};

/// A request's index in [`RequestTable`].
pub type Rq = u32;

/// No request, no bio.
pub(crate) const NONE: u32 = u32::MAX;

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState {
    /// In a task's plug list.
    Plug,
    /// With the scheduler.
    Scheduler,
    /// Chosen by the scheduler; it does not merge any more.
    Dispatched,
    /// Sent past the scheduler (flushes, barriers, everything under `none`).
    Bypass,
}

/// One request: what goes to the device as one command.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What to do.
    pub op: Op,
    /// The first sector.
    pub start: u64,
    /// How many sectors.
    pub count: u64,
    /// A task waits for it (REQ_SYNC).
    pub sync: bool,
    /// Force unit access.
    pub fua: bool,
    /// The context of its first bio.
    pub context: Context,
    /// When it was queued, in the plug or the scheduler.
    pub queued: Nanos,
    /// When it went to the driver.
    pub dispatched: Nanos,
    /// The scheduler's own: by when it should start.
    pub deadline: Nanos,
    /// The scheduler's own: the index of its queue.
    pub queue_index: u32,
    pub(crate) state: RequestState,
    /// Its allocation; a flush needs none.
    pub(crate) grant: Option<Grant>,
    segments: u32,
    first_bio: u32,
    last_bio: u32,
}

impl Request {
    /// The first sector after it.
    #[inline]
    pub fn end(&self) -> u64 {
        self.start + self.count
    }

    fn mergeable(&self) -> bool {
        matches!(self.state, RequestState::Plug | RequestState::Scheduler)
            && matches!(self.op, Op::Read | Op::Write)
    }
}

#[derive(Clone, Copy, Debug)]
struct BioSlot {
    bio: Bio,
    queued: Nanos,
    merged: bool,
    next: u32,
}

/// How large a request may grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub sectors: u64,
    pub segments: u32,
}

/// All requests of one layer.
#[derive(Debug, Default)]
pub struct RequestTable {
    slots: Vec<Request>,
    free: Vec<Rq>,
    bios: Vec<BioSlot>,
    free_bios: Vec<u32>,
}

impl std::ops::Index<Rq> for RequestTable {
    type Output = Request;
    #[inline]
    fn index(&self, rq: Rq) -> &Request {
        &self.slots[rq as usize]
    }
}

impl std::ops::IndexMut<Rq> for RequestTable {
    #[inline]
    fn index_mut(&mut self, rq: Rq) -> &mut Request {
        &mut self.slots[rq as usize]
    }
}

/// A page of 4 KiB is one segment of a scatter list.
fn segments(bio: &Bio) -> u32 {
    bio.count.0.div_ceil(8) as u32
}

impl RequestTable {
    /// A new request that carries one bio.
    pub(crate) fn create(&mut self, bio: Bio, grant: Option<Grant>, now: Nanos) -> Rq {
        let first = self.keep(bio, now, false);
        let count = if bio.op == Op::Flush { 0 } else { bio.count.0 };
        self.place(Request {
            op: bio.op,
            start: bio.start.0,
            count,
            sync: bio.is_sync(),
            fua: bio.fua,
            context: bio.context,
            queued: now,
            dispatched: now,
            deadline: Nanos::MAX,
            queue_index: 0,
            state: RequestState::Plug,
            grant,
            segments: segments(&bio),
            first_bio: first,
            last_bio: first,
        })
    }

    /// A flush, which goes past the scheduler; [`chain`](Self::chain) adds those who asked for it.
    pub(crate) fn flush(&mut self, context: Context, now: Nanos) -> Rq {
        self.place(Request {
            op: Op::Flush,
            start: 0,
            count: 0,
            sync: true,
            fua: false,
            context,
            queued: now,
            dispatched: now,
            deadline: Nanos::MAX,
            queue_index: 0,
            state: RequestState::Bypass,
            grant: None,
            segments: 0,
            first_bio: NONE,
            last_bio: NONE,
        })
    }

    fn place(&mut self, request: Request) -> Rq {
        match self.free.pop() {
            Some(rq) => {
                self.slots[rq as usize] = request;
                rq
            }
            None => {
                self.slots.push(request);
                (self.slots.len() - 1) as Rq
            }
        }
    }

    fn keep(&mut self, bio: Bio, queued: Nanos, merged: bool) -> u32 {
        let slot = BioSlot { bio, queued, merged, next: NONE };
        match self.free_bios.pop() {
            Some(at) => {
                self.bios[at as usize] = slot;
                at
            }
            None => {
                self.bios.push(slot);
                (self.bios.len() - 1) as u32
            }
        }
    }

    /// Whether `bio` continues `rq` at its end and may.
    pub(crate) fn fits_behind(&self, rq: Rq, bio: &Bio, limits: &Limits) -> bool {
        let r = &self[rq];
        r.end() == bio.start.0 && self.fits(r, bio, limits)
    }

    /// Whether `bio` ends where `rq` starts and may join.
    pub(crate) fn fits_before(&self, rq: Rq, bio: &Bio, limits: &Limits) -> bool {
        let r = &self[rq];
        bio.end() == r.start && self.fits(r, bio, limits)
    }

    fn fits(&self, r: &Request, bio: &Bio, limits: &Limits) -> bool {
        r.mergeable()
            && r.op == bio.op
            && r.fua == bio.fua
            && r.count + bio.count.0 <= limits.sectors
            && r.segments + segments(bio) <= limits.segments
    }

    /// Whether `second` follows `first` without a gap and they may be one.
    pub(crate) fn join_fits(&self, first: Rq, second: Rq, limits: &Limits) -> bool {
        let (a, b) = (&self[first], &self[second]);
        a.end() == b.start
            && a.mergeable()
            && b.mergeable()
            && a.op == b.op
            && a.fua == b.fua
            && a.count + b.count <= limits.sectors
            && a.segments + b.segments <= limits.segments
    }

    /// Adds a bio at the end.
    pub(crate) fn append(&mut self, rq: Rq, bio: Bio, now: Nanos) {
        let at = self.chain(rq, bio, now);
        let r = &mut self[rq];
        r.count += bio.count.0;
        r.segments += at;
    }

    /// Adds a bio at the front.
    pub(crate) fn prepend(&mut self, rq: Rq, bio: Bio, now: Nanos) {
        let at = self.chain(rq, bio, now);
        let r = &mut self[rq];
        r.start = bio.start.0;
        r.count += bio.count.0;
        r.segments += at;
    }

    /// Chains a bio to a request without growing it (flushes that are answered together).
    pub(crate) fn chain(&mut self, rq: Rq, bio: Bio, now: Nanos) -> u32 {
        let last = self[rq].last_bio;
        let slot = self.keep(bio, now, last != NONE);
        match last {
            NONE => self[rq].first_bio = slot,
            last => self.bios[last as usize].next = slot,
        }
        self[rq].last_bio = slot;
        self[rq].sync |= bio.is_sync();
        segments(&bio)
    }

    /// Moves the bios of `gone` to `into` and frees `gone`. `into` then covers both.
    pub(crate) fn join(&mut self, into: Rq, gone: Rq) {
        let g = self[gone];
        let last = self[into].last_bio;
        self.bios[last as usize].next = g.first_bio;
        self.bios[g.first_bio as usize].merged = true;
        let r = &mut self[into];
        r.last_bio = g.last_bio;
        r.start = r.start.min(g.start);
        r.count += g.count;
        r.segments += g.segments;
        r.sync |= g.sync;
        r.queued = r.queued.min(g.queued);
        self.free.push(gone);
    }

    /// Frees a request that is done and adds its bios to `done`.
    pub(crate) fn finish(&mut self, rq: Rq, by: &Completion, done: &mut Vec<BioDone>) {
        let r = self[rq];
        let mut at = r.first_bio;
        while at != NONE {
            let slot = self.bios[at as usize];
            done.push(BioDone {
                id: slot.bio.id,
                op: slot.bio.op,
                start: slot.bio.start,
                count: slot.bio.count,
                process: slot.bio.context.process,
                queued: slot.queued,
                dispatched: r.dispatched,
                began: by.began,
                at: by.at,
                merged: slot.merged,
                request_count: Sectors(r.count),
                path: by.path,
            });
            self.free_bios.push(at);
            at = slot.next;
        }
        self.free.push(rq);
    }

    /// What the driver sends.
    #[inline]
    pub(crate) fn command(&self, rq: Rq) -> device::Request {
        let r = &self[rq];
        device::Request {
            id: u64::from(rq),
            op: r.op,
            start: Sectors(r.start),
            count: Sectors(r.count),
            fua: r.fua,
        }
    }
}
