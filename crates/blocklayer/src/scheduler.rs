//! What a scheduler is: policy only. The layer does the rest.

use crate::bio::{Bio, Context};
use crate::requests::{RequestTable, Rq};
use device::Op;
use units::Nanos;

/// What a scheduler answers when the driver has room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issue {
    /// Send this request. The scheduler will see it again only when it completes.
    Send(Rq),
    /// It idles; ask again then, or when a request arrives or completes.
    WaitUntil(Nanos),
    /// It has nothing to send before a request arrives or completes.
    Nothing,
}

/// What a scheduler answers when a full pool is asked for another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayQueue {
    /// The pool's own rules decide.
    Normal,
    /// Allocate it although the pool is full.
    Must,
}

/// Which neighbour of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What comes before it.
    Former,
    /// What comes after it.
    Latter,
}

/// A scheduler: it is given requests, and chooses which goes next.
///
/// It may be asked to dispatch only when the driver has room. RequestTable are named by [`Rq`];
/// `deadline` and `queue_index` of a [`Request`](crate::requests::Request) are its own to use.
pub trait Scheduler: std::fmt::Debug + Send {
    /// A request comes in.
    fn insert(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos);
    /// The driver has room: chooses the next request.
    fn dispatch(&mut self, requests: &mut RequestTable, now: Nanos) -> Issue;
    /// A request that it issued is done.
    fn complete(&mut self, rq: Rq, requests: &mut RequestTable, now: Nanos);
    /// How many requests it holds.
    fn len(&self) -> usize;
    /// Whether it holds none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A request of this direction that starts at `end`, which a bio could join at its front.
    fn front(&self, _requests: &RequestTable, _bio: &Bio) -> Option<Rq> {
        None
    }
    /// The neighbour that a request which grew might now touch.
    fn neighbour(&self, requests: &RequestTable, rq: Rq, side: Side) -> Option<Rq>;
    /// Whether it lets `bio` join `rq`.
    fn allows_merge(&self, _requests: &RequestTable, _rq: Rq, _bio: &Bio) -> bool {
        true
    }
    /// Whether the core keeps a hash of request ends for it, to find back merges. A scheduler that
    /// is sorted by sector anyway may answer [`back`](Self::back) instead.
    fn wants_end_hash(&self) -> bool {
        true
    }
    /// A request of this direction that ends where the bio starts, without the core's hash.
    fn back(&self, _requests: &RequestTable, _bio: &Bio) -> Option<Rq> {
        None
    }
    /// A bio joined `rq` at the front: it started at `old_start` before.
    fn moved(&mut self, rq: Rq, old_start: u64, requests: &mut RequestTable);
    /// `gone` is about to be joined to the end of `into`; both are held here. Forget `gone`.
    fn absorbed(&mut self, into: Rq, gone: Rq, requests: &mut RequestTable);
    /// Whether a full pool should make an exception.
    fn may_queue(&self, _context: &Context, _op: Op, _sync: bool) -> MayQueue {
        MayQueue::Normal
    }
    /// From how many of the scheduler's tags (blk-mq) a task may choose that has `plugged` requests in its
    /// plug list.
    fn tag_limit(&self, _class: TagClass, _context: &Context, _plugged: u32) -> u32 {
        u32::MAX
    }
    /// Gives up everything it holds, in any order (a barrier drains it).
    fn drain(&mut self, requests: &mut RequestTable, out: &mut Vec<Rq>);
}

/// The kinds of requests that blk-mq's limits on scheduler tags distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagClass {
    /// Reads.
    Read = 0,
    /// Writes that a task waits for.
    SyncWrite = 1,
    /// Everything else.
    Async = 2,
}
