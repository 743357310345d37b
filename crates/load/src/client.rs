//! One client: it issues what its pattern and its schedule say, stamps every time, and counts into
//! its page. The same code drives every engine, and in tests a clock that only they move.

use crate::bank::Bank;
use crate::board::{Control, ERRNOS, Page, SHORT, UNKNOWN};
use crate::buffer::Buffers;
use crate::clock::Clock;
use crate::cost::Cpu;
use crate::engines::{Action, Done, Engine, Operation};
use crate::error::{Failure, Stage};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use units::Nanos;
use workload::{AfterWrite, Job, Offsets, Schedule, TrialClock};

/// Failures in a row after which a client gives up: the device will not come back.
const FAILURES_IN_A_ROW: u32 = 100;
/// A client that waits for a far arrival looks this often whether it is to end.
const LONGEST_NAP: Nanos = Nanos::from_millis(100);

/// What one outstanding operation is about.
#[derive(Clone, Copy)]
struct InFlight {
    intended: Nanos,
    submitted: Nanos,
    offset: u64,
    reads: bool,
    /// Since when the call that follows the write goes on.
    syncing: Option<Nanos>,
}

/// A client at work.
pub(crate) struct Client<'a, E, C> {
    engine: E,
    clock: C,
    control: &'a Control,
    page: &'a Page,
    offsets: Offsets,
    /// Where a rate is offered.
    schedule: Option<Schedule>,
    buffers: Buffers,
    block_size: u32,
    after: Option<(Action, u32)>,
    writes_since_sync: u32,
    cpu: fn() -> Cpu,
    slots: Vec<InFlight>,
    free: Vec<u32>,
    done: Vec<Done>,
    measuring: bool,
    failures_in_a_row: u32,
    /// Slept until an arrival with slots free: what it is late by then is our own doing.
    napping: bool,
    lateness: Nanos,
    awaited: u64,
}

/// What a client works with.
pub(crate) struct Kit<'a, E, C> {
    pub engine: E,
    pub clock: C,
    pub control: &'a Control,
    pub page: &'a Page,
    pub offsets: Offsets,
    pub schedule: Option<Schedule>,
    pub buffers: Buffers,
    /// How the client's own CPU time, and its waiting for that, is read.
    pub cpu: fn() -> Cpu,
}

impl<'a, E: Engine, C: Clock> Client<'a, E, C> {
    pub fn new(kit: Kit<'a, E, C>, job: &Job) -> Self {
        let idle = InFlight {
            intended: Nanos::ZERO,
            submitted: Nanos::ZERO,
            offset: 0,
            reads: true,
            syncing: None,
        };
        let after = match job.sync.after {
            AfterWrite::None => None,
            AfterWrite::Fsync => Some((Action::Fsync, job.sync.every)),
            AfterWrite::Fdatasync => Some((Action::Fdatasync, job.sync.every)),
        };
        Client {
            engine: kit.engine,
            clock: kit.clock,
            control: kit.control,
            page: kit.page,
            offsets: kit.offsets,
            schedule: kit.schedule,
            buffers: kit.buffers,
            block_size: job.block_size.0 as u32,
            after,
            writes_since_sync: 0,
            cpu: kit.cpu,
            slots: vec![idle; job.depth as usize],
            free: (0..job.depth).rev().collect(),
            done: Vec::with_capacity(job.depth as usize),
            measuring: false,
            failures_in_a_row: 0,
            napping: false,
            lateness: Nanos::ZERO,
            awaited: 0,
        }
    }

    /// Works from start to end, then waits for what is outstanding.
    pub fn work(mut self, times: TrialClock) -> Result<(), Failure> {
        let result = self.run(times);
        // Buffers must outlive what is in flight, also after an operation failed.
        let drained = match result {
            Err(failure) if !failure.stage.is_operation() => Err(failure),
            _ => self.drain(),
        };
        if drained.is_err() {
            // The engine cannot tell what is still in flight: leave it its memory.
            std::mem::forget(self.buffers);
        }
        result.and(drained)
    }

    fn run(&mut self, times: TrialClock) -> Result<(), Failure> {
        let mut now = self.clock.now();
        while now < times.start {
            self.reap(Some(times.start - now))?;
            now = self.clock.now();
        }
        let mut cpu_before = Cpu::default();
        loop {
            self.issue(now);
            let patience = self.patience(now);
            self.reap(patience)?;
            now = self.clock.now();
            if !self.measuring && now >= times.measure {
                self.measuring = true;
                cpu_before = (self.cpu)();
            }
            if now >= self.control.end() {
                break;
            }
            self.account(now)?;
        }
        if self.measuring {
            let cpu = (self.cpu)().since(cpu_before);
            self.page.user.store(cpu.user.0, Relaxed);
            self.page.system.store(cpu.system.0, Relaxed);
            self.page.cpu_wait.store(cpu.wait.map_or(UNKNOWN, |wait| wait.0), Relaxed);
        }
        self.count_backlog();
        Ok(())
    }

    /// How long to wait for a completion: until the next arrival, if it could be served.
    fn patience(&mut self, now: Nanos) -> Option<Nanos> {
        let schedule = self.schedule.as_ref()?;
        self.napping = !self.free.is_empty();
        self.napping.then(|| schedule.next().saturating_sub(now).min(LONGEST_NAP))
    }

    fn reap(&mut self, timeout: Option<Nanos>) -> Result<(), Failure> {
        self.engine.reap(timeout, &mut self.done).map_err(|error| Failure {
            stage: Stage::Wait,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
            offset: 0,
        })
    }

    /// Starts whatever may start: all free slots in a closed loop, what is due where a rate is
    /// offered.
    #[inline]
    fn issue(&mut self, now: Nanos) {
        while let Some(&slot) = self.free.last() {
            let intended = match &mut self.schedule {
                None => now,
                Some(schedule) => {
                    let intended = schedule.next();
                    if intended > now {
                        return;
                    }
                    schedule.take();
                    if self.napping {
                        self.napping = false;
                        self.awaited += 1;
                        self.lateness += now - intended;
                    }
                    intended
                }
            };
            self.free.pop();
            let (block, reads) = self.offsets.next();
            let offset = block * u64::from(self.block_size);
            self.slots[slot as usize] =
                InFlight { intended, submitted: now, offset, reads, syncing: None };
            let (action, buffer) = if reads {
                (Action::Read, self.buffers.read_into(slot))
            } else {
                (Action::Write, self.buffers.write_from(slot))
            };
            let operation = Operation { action, offset, buffer, length: self.block_size };
            // SAFETY: the slot was free, so its buffer is in no operation; `work` keeps all buffers
            // until every operation has been reaped.
            unsafe { self.engine.submit(operation, slot) };
        }
    }

    /// Counts what was done by `now`.
    #[inline]
    fn account(&mut self, now: Nanos) -> Result<(), Failure> {
        // Taken out, so that counting may use all of `self`; put back, to keep its memory.
        let mut done = std::mem::take(&mut self.done);
        let mut result = Ok(());
        for one in done.drain(..) {
            // All are accounted for after a failure too, or their slots would never be free again.
            result = result.and(self.account_one(one, now));
        }
        self.done = done;
        result
    }

    #[inline]
    fn account_one(&mut self, Done { slot, result }: Done, now: Nanos) -> Result<(), Failure> {
        let flight = self.slots[slot as usize];
        let whole = if flight.syncing.is_some() { 0 } else { self.block_size as i32 };
        if result != whole {
            self.free.push(slot);
            return self.count_failure(flight, result);
        }
        self.failures_in_a_row = 0;
        match flight.syncing {
            Some(since) if self.measuring => self.page.sync_service.record(now - since),
            Some(_) => {}
            None if !flight.reads && self.begins_sync(slot, now) => return Ok(()),
            None => {}
        }
        self.free.push(slot);
        self.count(flight, now);
        Ok(())
    }

    /// After every so many writes, the call that makes them durable takes the write's slot.
    fn begins_sync(&mut self, slot: u32, now: Nanos) -> bool {
        let Some((action, every)) = self.after else {
            return false;
        };
        self.writes_since_sync += 1;
        if self.writes_since_sync < every {
            return false;
        }
        self.writes_since_sync = 0;
        self.slots[slot as usize].syncing = Some(now);
        let nothing = std::ptr::null_mut();
        let operation = Operation { action, offset: 0, buffer: nothing, length: 0 };
        // SAFETY: such a call has no buffer.
        unsafe { self.engine.submit(operation, slot) };
        true
    }

    #[inline]
    fn count(&mut self, flight: InFlight, now: Nanos) {
        let service = now - flight.submitted;
        let response = self.schedule.is_some().then(|| now - flight.intended);
        let page = self.page;
        if !self.measuring {
            let bank = if flight.reads { &page.warm_reads } else { &page.warm_writes };
            bank.record(response.unwrap_or(service));
            return;
        }
        let banks = if flight.reads {
            (&page.read_service, &page.read_response)
        } else {
            (&page.write_service, &page.write_response)
        };
        let (services, responses): (&Bank, &Bank) = banks;
        services.record(service);
        if let Some(response) = response {
            responses.record(response);
        }
    }

    #[cold]
    fn count_failure(&mut self, flight: InFlight, result: i32) -> Result<(), Failure> {
        let errno = (-result).max(0);
        let index = if result >= 0 { SHORT } else { (errno as usize).min(ERRNOS - 1) };
        if self.measuring {
            add(&self.page.errors[index], 1);
        }
        self.failures_in_a_row += 1;
        let hopeless = matches!(
            errno,
            libc::EINVAL
                | libc::ENODEV
                | libc::ENXIO
                | libc::ENOMEDIUM
                | libc::ESHUTDOWN
                | libc::ENOSPC
                | libc::EROFS
                | libc::EBADF
                | libc::EPERM
                | libc::EOPNOTSUPP
        );
        if !hopeless && self.failures_in_a_row < FAILURES_IN_A_ROW {
            return Ok(());
        }
        let stage = match flight {
            InFlight { syncing: Some(_), .. } => Stage::Sync,
            InFlight { reads: true, .. } => Stage::Read,
            InFlight { .. } => Stage::Write,
        };
        let errno = if errno == 0 { libc::EIO } else { errno };
        Err(Failure { stage, errno, offset: flight.offset })
    }

    /// What should have been done by the end and was not: it has no latency yet, and leaving it
    /// unsaid would hide a stall.
    fn count_backlog(&self) {
        add(&self.page.awaited, self.awaited);
        add(&self.page.lateness, self.lateness.0);
        let (Some(schedule), end) = (&self.schedule, self.control.end()) else {
            return;
        };
        let outstanding = || {
            let busy = |slot: &u32| !self.free.contains(slot);
            (0..self.slots.len() as u32).filter(busy).map(|slot| self.slots[slot as usize].intended)
        };
        let waiting = schedule.due_before(end);
        let first = outstanding().chain([schedule.next()]).min().unwrap_or(end);
        add(&self.page.backlog, waiting + outstanding().count() as u64);
        add(&self.page.oldest, end.saturating_sub(first).0);
    }

    /// Waits for what is outstanding. It counts for nothing, but its longest latency is noted.
    fn drain(&mut self) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            for Done { slot, .. } in self.done.drain(..) {
                self.free.push(slot);
                let latency = now.saturating_sub(self.slots[slot as usize].submitted);
                self.page.longest_drained.fetch_max(latency.0, Relaxed);
                add(&self.page.drained, 1);
            }
            if self.free.len() == self.slots.len() {
                return Ok(());
            }
            self.reap(None)?;
        }
    }
}

/// Adds to a cell of which the caller is the one writer.
fn add(cell: &AtomicU64, more: u64) {
    cell.store(cell.load(Relaxed) + more, Relaxed);
}

#[cfg(test)]
mod tests;
