//! What goes into a block layer and what comes out.

use device::{Op, Path};
use units::{Nanos, Sectors};

/// An I/O scheduling class (`ionice -c`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IoClass {
    /// Before all others.
    RealTime,
    /// The default.
    #[default]
    BestEffort,
    /// Served only when the device is otherwise idle.
    Idle,
}

/// An I/O context and its priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The I/O context, usually one task; any number.
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
    /// The caller's id for it, returned in [`BioDone`].
    pub id: u64,
    /// What to do.
    pub op: Op,
    /// The first sector.
    pub start: Sectors,
    /// How many; ignored for a flush.
    pub count: Sectors,
    /// A task waits for it (REQ_SYNC): reads that are not read-ahead, O_DIRECT and O_SYNC writes.
    /// Schedulers count every read as sync whatever this says; it matters to plugging in 2.6.
    pub sync: bool,
    /// Force unit access. In 2.6 this makes the write a barrier.
    pub fua: bool,
    /// Its context.
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

/// The result of submitting a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a bio that must wait has to be submitted again"]
pub enum Submitted {
    /// The layer has it.
    Accepted,
    /// There is no free request. The task sleeps (its plug is flushed already); when [`AdvanceOutput::woken`]
    /// contains its process, it submits the same bio again. There is one entry for each `MustWait`.
    MustWait,
}

/// A completed bio, with the times of its stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BioDone {
    /// The bio's id.
    pub id: u64,
    /// Its operation.
    pub op: Op,
    /// Its first sector.
    pub start: Sectors,
    /// Its size.
    pub count: Sectors,
    /// Its process.
    pub process: u32,
    /// When it was accepted; excludes the time slept for a request before.
    pub queued: Nanos,
    /// When its request went to the device.
    pub dispatched: Nanos,
    /// When the device began to work on it: [`device::Completion::began`].
    pub began: Nanos,
    /// When it completed.
    pub at: Nanos,
    /// It was merged into an existing request.
    pub merged: bool,
    /// The size of the request it was part of, in sectors.
    pub request_count: Sectors,
    /// How the device served it.
    pub path: Path,
}

/// What happened during [`advance`](crate::BlockLayer::advance), in order of time.
#[derive(Clone, Debug, Default)]
pub struct AdvanceOutput {
    /// Completed bios.
    pub done: Vec<BioDone>,
    /// Processes that slept for a request and may submit their bio again; one entry for each sleep.
    pub woken: Vec<u32>,
}

impl AdvanceOutput {
    /// Empties it, keeping the memory.
    pub fn clear(&mut self) {
        self.done.clear();
        self.woken.clear();
    }
}
