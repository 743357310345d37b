//! What goes into a block layer and what comes out.

use device::{Op, Path};
use units::{Nanos, Sectors};

/// The scheduling class of who asks (`ionice -c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoClass {
    /// Before all others.
    RealTime,
    /// The default.
    #[default]
    BestEffort,
    /// Only when nobody else wants the device.
    Idle,
}

/// Who asks: an I/O context and its priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The I/O context, usually one task. Its number is a name: it may be any.
    pub process: u32,
    /// Its class.
    pub class: IoClass,
    /// Its level within the class, 0 (first) to 7; 4 is what a task of nice 0 has.
    pub level: u8,
}

impl Context {
    /// A task of nice 0: best effort, level 4.
    pub fn of(process: u32) -> Self {
        Context { process, class: IoClass::BestEffort, level: 4 }
    }
}

/// What a task hands over: one contiguous piece of I/O.
///
/// It should not be larger than [`max_sectors`](crate::BlockLayer::max_sectors): the layers above
/// split, as filesystems do. A larger one is passed on whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// The caller's name for it, which comes back in [`BioDone`].
    pub id: u64,
    /// What to do.
    pub op: Op,
    /// The first sector.
    pub start: Sectors,
    /// How many; ignored for a flush.
    pub count: Sectors,
    /// Somebody waits for it (REQ_SYNC): reads that are not read-ahead, O_DIRECT and O_SYNC writes.
    /// Schedulers count every read as sync whatever this says; it matters to plugging in 2.6.
    pub sync: bool,
    /// Force unit access. In 2.6 this makes the write a barrier.
    pub fua: bool,
    /// Who asks.
    pub context: Context,
}

impl Bio {
    /// The first sector after it.
    pub fn end(&self) -> u64 {
        self.start.0 + self.count.0
    }
    /// Whether schedulers count it as sync.
    pub fn is_sync(&self) -> bool {
        self.sync || self.op == Op::Read
    }
}

/// What became of a bio that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a bio that must wait has to be submitted again"]
pub enum Submitted {
    /// The layer has it.
    Accepted,
    /// There is no free request. The task sleeps (its plug is flushed already); when its process is
    /// named in [`Outcome::woken`] it submits the same bio again. There is one entry for each
    /// `MustWait`.
    MustWait,
}

/// A bio that is done, with the stations of its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioDone {
    /// The bio's id.
    pub id: u64,
    /// What it asked.
    pub op: Op,
    /// Its first sector.
    pub start: Sectors,
    /// Its size.
    pub count: Sectors,
    /// Whose it was.
    pub process: u32,
    /// When it was accepted. Time slept for a request before that is the caller's to know.
    pub queued: Nanos,
    /// When its request went to the device.
    pub dispatched: Nanos,
    /// When the device began to work on it: [`device::Completion::began`].
    pub began: Nanos,
    /// When it was done.
    pub at: Nanos,
    /// It joined a request that was already there.
    pub merged: bool,
    /// The size of the request it was part of, in sectors.
    pub request_count: Sectors,
    /// What served it.
    pub path: Path,
}

/// What happened during [`advance`](crate::BlockLayer::advance), in order of time.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Bios that are done.
    pub done: Vec<BioDone>,
    /// Processes that slept for a request and may submit the same bio again; one entry for each
    /// sleep.
    pub woken: Vec<u32>,
}

impl Outcome {
    /// Empties it, keeping the memory.
    pub fn clear(&mut self) {
        self.done.clear();
        self.woken.clear();
    }
}
