//! The interface of a device model: requests, completions, and the trait.

use units::{Nanos, Sectors};

/// What a request asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Bring data from the device.
    Read,
    /// Bring data to the device; see [`Request::fua`] for when it counts as done.
    Write,
    /// Put all acknowledged writes on the medium. `start` and `count` are ignored.
    Flush,
    /// The data is no longer needed (TRIM, UNMAP).
    Discard,
}

/// One request, in 512-byte sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's id for it, returned in the completion. Unique among outstanding requests.
    pub id: u64,
    /// The operation.
    pub op: Op,
    /// The first sector.
    pub start: Sectors,
    /// How many sectors; at least one, unless it is a flush.
    pub count: Sectors,
    /// Force unit access: a write that is complete only when it is on the medium.
    pub fua: bool,
}

impl Request {
    /// A read of `count` sectors from `start`.
    pub fn read(id: u64, start: u64, count: u64) -> Self {
        Request { id, op: Op::Read, start: Sectors(start), count: Sectors(count), fua: false }
    }
    /// A write of `count` sectors from `start`.
    pub fn write(id: u64, start: u64, count: u64) -> Self {
        Request { id, op: Op::Write, start: Sectors(start), count: Sectors(count), fua: false }
    }
    /// A flush of the device's cache.
    pub fn flush(id: u64) -> Self {
        Request { id, op: Op::Flush, start: Sectors(0), count: Sectors(0), fua: false }
    }
    /// The same request with force unit access.
    pub fn with_fua(self) -> Self {
        Request { fua: true, ..self }
    }
    /// The first sector after it.
    pub fn end(&self) -> u64 {
        self.start.0 + self.count.0
    }
}

/// What served a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Served by the cache or the electronics alone.
    Cache,
    /// The medium had to be accessed first.
    Medium,
    /// The request reached beyond the device's end: nothing was done. The caller shows an I/O error.
    OutOfRange,
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's id.
    pub id: u64,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When the device began to work on it alone: the command's overhead, then seek and transfer.
    pub began: Nanos,
    /// When it completed, in the model's time, independent of when the caller advanced it.
    pub at: Nanos,
    /// What served it.
    pub path: Path,
}

/// A device's externally visible state, for reports and pictures. Cheap to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Requests submitted and not yet complete.
    pub outstanding: u32,
    /// Drives (or flash dies) that work on their medium.
    pub busy: u32,
    /// Drives (or dies) there are.
    pub units: u32,
    /// The head's cylinder; of an array, its first drive's. None where there is no head.
    pub cylinder: Option<u32>,
    /// Data acknowledged that is not yet on the medium, in sectors.
    pub dirty: Sectors,
}

/// A storage device as a pure state machine. The caller holds the clock.
///
/// Times given to `submit` and `advance` never go back. The usual loop is: ask [`next_event`],
/// move the clock there (or to the next arrival, if that is earlier), [`advance`], then `submit`
/// what the completions set free. A decision that the model makes at time t considers exactly the
/// requests that were submitted with a time ≤ t, whenever the caller gets round to calling.
///
/// [`next_event`]: Device::next_event
/// [`advance`]: Device::advance
pub trait Device: std::fmt::Debug + Send {
    /// Hands a request to the device at `now`. The device may hold more than its queue depth; what
    /// is beyond waits in arrival order, unseen by the device's own scheduling.
    fn submit(&mut self, request: Request, now: Nanos);
    /// When something next happens inside; None when it is idle with nothing to do.
    fn next_event(&self) -> Option<Nanos>;
    /// Runs the model until `now`, and adds completed requests to `done`, in the order of completion.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);
    /// How many requests the device itself sees at once (tags).
    fn queue_depth(&self) -> u32;
    /// Its capacity.
    fn capacity(&self) -> Sectors;
    /// Its externally visible state.
    fn view(&self) -> View;
    /// The cylinder of each head arm, drive by drive; empty where nothing moves.
    fn heads(&self) -> Vec<u32> {
        self.view().cylinder.into_iter().collect()
    }
}
