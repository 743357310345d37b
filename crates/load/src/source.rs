//! Where a client's operations come from: a job's pattern and rate, or a trace (`replay`).

use crate::engines::Action;
use units::Nanos;
use workload::{AfterWrite, Job, Offsets, Schedule};

/// An operation that may begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub action: Action,
    pub offset: u64,
    /// None in a flush alone.
    pub length: u32,
    /// The device's cache is flushed first.
    pub preflush: bool,
    /// When it was to begin.
    pub intended: Nanos,
    /// What the source knows it by.
    pub tag: u32,
}

/// A client's operations, one after the other.
pub(crate) trait Source {
    /// The next operation, which then begins, if one may begin at `now`.
    fn next(&mut self, now: Nanos) -> Option<Step>;

    /// When the next may begin, where time decides that.
    fn due(&self) -> Option<Nanos>;

    /// Whether latency counts from the time at which an operation was to begin, too.
    fn is_open(&self) -> bool;

    /// The call that follows a write that is done.
    fn follows(&mut self, action: Action) -> Option<Action>;

    /// An operation ended, and did `well` or failed.
    fn ended(&mut self, step: &Step, well: bool, now: Nanos);

    /// Whether there are no more.
    fn is_done(&self) -> bool;

    /// How many were to begin before `end` and have not, and when the next was to: where latency counts from
    /// that.
    fn backlog(&self, end: Nanos) -> Option<(u64, Nanos)>;
}

/// Of a job: without end.
pub(crate) struct Endless {
    offsets: Offsets,
    /// Where a rate is offered.
    schedule: Option<Schedule>,
    block_size: u32,
    after: Option<(Action, u32)>,
    writes_since_sync: u32,
}

impl Endless {
    pub fn new(job: &Job, offsets: Offsets, schedule: Option<Schedule>) -> Self {
        let after = match job.sync.after {
            AfterWrite::None => None,
            AfterWrite::Fsync => Some((Action::Fsync, job.sync.every)),
            AfterWrite::Fdatasync => Some((Action::Fdatasync, job.sync.every)),
        };
        let block_size = job.block_size.0 as u32;
        Endless { offsets, schedule, block_size, after, writes_since_sync: 0 }
    }
}

impl Source for Endless {
    #[inline]
    fn next(&mut self, now: Nanos) -> Option<Step> {
        let intended = match &mut self.schedule {
            None => now,
            Some(schedule) => {
                let intended = schedule.next();
                if intended > now {
                    return None;
                }
                schedule.take();
                intended
            }
        };
        let (block, reads) = self.offsets.next();
        Some(Step {
            action: if reads { Action::Read } else { Action::Write },
            offset: block * u64::from(self.block_size),
            length: self.block_size,
            preflush: false,
            intended,
            tag: 0,
        })
    }

    #[inline]
    fn due(&self) -> Option<Nanos> {
        self.schedule.as_ref().map(Schedule::next)
    }

    fn is_open(&self) -> bool {
        self.schedule.is_some()
    }

    /// After every so many writes, the call that makes them durable.
    #[inline]
    fn follows(&mut self, action: Action) -> Option<Action> {
        let (call, every) = self.after?;
        if action == Action::Read {
            return None;
        }
        self.writes_since_sync += 1;
        let due = self.writes_since_sync >= every;
        if due {
            self.writes_since_sync = 0;
        }
        due.then_some(call)
    }

    #[inline]
    fn ended(&mut self, _: &Step, _: bool, _: Nanos) {}

    #[inline]
    fn is_done(&self) -> bool {
        false
    }

    fn backlog(&self, end: Nanos) -> Option<(u64, Nanos)> {
        let schedule = self.schedule.as_ref()?;
        Some((schedule.due_before(end), schedule.next()))
    }
}
