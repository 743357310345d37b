//! Direct I/O, and system calls that make data durable.

use super::write_back::{Mode, WriteOut};
use super::{BY_SYNC, Frame, Machine, Step, TaskId};
use device::{Device, Op};
use units::Nanos;

/// A read through the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadCall {
    pub file: u16,
    /// The next page.
    pub page: u32,
    /// The first page after the requested ones.
    pub end: u32,
    /// The page was looked up already; it is in memory once its run ends.
    pub counted: bool,
}

/// A write through the page cache, in bytes of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteCall {
    pub file: u16,
    pub from: u64,
    pub to: u64,
    pub stage: WriteStage,
}

/// The stage of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WriteStage {
    #[default]
    Lock,
    Pages,
    Balance,
    Unlock,
}

impl WriteCall {
    pub fn new(file: u16, from: u64, to: u64) -> Self {
        WriteCall { file, from, to, stage: WriteStage::Lock }
    }
}

/// A direct read or write, in sectors of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectCall {
    pub op: Op,
    pub file: u16,
    pub start: u64,
    pub end: u64,
    pub fua: bool,
    pub stage: DirectStage,
}

/// The stage of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DirectStage {
    #[default]
    Lock,
    HandOver,
    Unlock,
}

/// fsync or fdatasync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncCall {
    pub file: u16,
    /// fdatasync: new timestamps need not be durable.
    pub data_only: bool,
    pub began: Nanos,
    pub stage: SyncStage,
}

/// The stage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncStage {
    Begin,
    Written,
    Waited,
    Committed,
    Flushed,
}

impl SyncCall {
    pub fn new(file: u16, data_only: bool) -> Self {
        SyncCall { file, data_only, began: Nanos::ZERO, stage: SyncStage::Begin }
    }
}

impl<D: Device + ?Sized> Machine<D> {
    pub(super) fn direct(&mut self, id: TaskId, mut call: DirectCall) -> Step {
        let locks = call.op == Op::Write && self.rules.direct_is_exclusive;
        match call.stage {
            DirectStage::Lock => {
                call.stage = DirectStage::HandOver;
                if locks && !self.files[call.file as usize].lock.take(id) {
                    return Step::Wait(Frame::Direct(call));
                }
                Step::Again(Frame::Direct(call))
            }
            DirectStage::HandOver if call.start < call.end => {
                let file = &self.files[call.file as usize];
                let start = file.sector(call.start);
                let max = self.volume.room(start).min(file.together(call.start));
                let count = (call.end - call.start).min(max);
                call.start += count;
                self.submit_own(id, call.op, start, count, call.fua);
                Step::Again(Frame::Direct(call))
            }
            DirectStage::HandOver => {
                call.stage = DirectStage::Unlock;
                Step::Io(Frame::Direct(call))
            }
            DirectStage::Unlock => {
                if locks {
                    self.unlock(call.file);
                }
                Step::Done
            }
        }
    }

    pub(super) fn unlock(&mut self, file: u16) {
        if let Some(next) = self.files[file as usize].lock.release() {
            self.wake_task(next);
        }
    }

    /// Writes dirty pages, waits for all pages under write-back, and then for the journal or a flush of the
    /// device.
    pub(super) fn sync(&mut self, id: TaskId, mut call: SyncCall) -> Step {
        match call.stage {
            SyncStage::Begin => {
                call.began = self.now;
                call.stage = SyncStage::Written;
                let out = WriteOut::all_of(call.file, Mode::Sync(BY_SYNC));
                Step::Call(Frame::Sync(call), Frame::WriteOut(out))
            }
            SyncStage::Written => {
                for run in self.runs.writes_of(call.file) {
                    self.wait_for_run(id, run);
                }
                call.stage = SyncStage::Waited;
                Step::Io(Frame::Sync(call))
            }
            SyncStage::Waited => {
                if self.rules.journal.is_some() && !call.data_only {
                    // Its commit flushes the device, if barriers are on.
                    call.stage = SyncStage::Flushed;
                    self.ask_for_commit(id);
                    return Step::Wait(Frame::Sync(call));
                }
                call.stage = SyncStage::Committed;
                Step::Again(Frame::Sync(call))
            }
            SyncStage::Committed => {
                call.stage = SyncStage::Flushed;
                if self.rules.barrier {
                    self.submit_flush(id);
                }
                Step::Io(Frame::Sync(call))
            }
            SyncStage::Flushed => {
                self.synced.push((id, self.now - call.began));
                Step::Done
            }
        }
    }
}
