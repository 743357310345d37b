//! One client: it issues what its pattern and its schedule say, stamps every time, and counts into
//! its page. The same code drives every engine, and in tests a clock that only they move.

use crate::bank::Bank;
use crate::board::{Control, ERRNOS, Page, SHORT, UNKNOWN, add};
use crate::buffer::Buffers;
use crate::clock::Clock;
use crate::cost::Cpu;
use crate::engines::{Action, Done, Engine, Operation};
use crate::error::{Failure, Stage};
use crate::source::{Source, Step};
use std::sync::atomic::Ordering::Relaxed;
use units::Nanos;
use workload::TrialClock;

/// Failures in a row after which a client gives up: the device will not come back.
const FAILURES_IN_A_ROW: u32 = 100;
/// A client that waits for a far arrival looks this often whether it is to end.
const LONGEST_NAP: Nanos = Nanos::from_millis(100);

/// What one outstanding operation is about.
#[derive(Clone, Copy)]
struct InFlight {
    step: Step,
    submitted: Nanos,
    doing: Doing,
}

/// How far an operation is.
#[derive(Clone, Copy)]
enum Doing {
    /// The flush before it.
    Preflush,
    /// Its bytes.
    Moving,
    /// A call that makes durable what was written, since when: after its bytes, or alone.
    Syncing(Nanos),
}

/// A client at work.
pub(crate) struct Client<'a, E, C, S> {
    engine: E,
    clock: C,
    control: &'a Control,
    page: &'a Page,
    source: S,
    /// Latency counts from the intended time, too.
    open: bool,
    buffers: Buffers,
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
pub(crate) struct Kit<'a, E, C, S> {
    pub engine: E,
    pub clock: C,
    pub control: &'a Control,
    pub page: &'a Page,
    pub source: S,
    pub buffers: Buffers,
    /// How the client's own CPU time, and its waiting for that, is read.
    pub cpu: fn() -> Cpu,
}

impl<'a, E: Engine, C: Clock, S: Source> Client<'a, E, C, S> {
    /// With at most `depth` operations outstanding.
    pub fn new(kit: Kit<'a, E, C, S>, depth: u32) -> Self {
        let step = Step {
            action: Action::Read,
            offset: 0,
            length: 0,
            preflush: false,
            intended: Nanos::ZERO,
            tag: 0,
        };
        let idle = InFlight { step, submitted: Nanos::ZERO, doing: Doing::Moving };
        Client {
            engine: kit.engine,
            clock: kit.clock,
            control: kit.control,
            page: kit.page,
            open: kit.source.is_open(),
            source: kit.source,
            buffers: kit.buffers,
            cpu: kit.cpu,
            slots: vec![idle; depth as usize],
            free: (0..depth).rev().collect(),
            done: Vec::with_capacity(depth as usize),
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
            if self.source.is_done() && self.free.len() == self.slots.len() {
                break;
            }
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
        self.page.ended.store(now.0, Relaxed);
        self.count_backlog();
        Ok(())
    }

    /// How long to wait for a completion: until the next arrival, if it could be served.
    fn patience(&mut self, now: Nanos) -> Option<Nanos> {
        let due = self.source.due()?;
        self.napping = !self.free.is_empty();
        self.napping.then(|| due.saturating_sub(now).min(LONGEST_NAP))
    }

    fn reap(&mut self, timeout: Option<Nanos>) -> Result<(), Failure> {
        self.engine.reap(timeout, &mut self.done).map_err(|error| Failure {
            stage: Stage::Wait,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
            offset: 0,
        })
    }

    /// Starts whatever may start: all free slots in a closed loop, what is due where time decides.
    #[inline]
    fn issue(&mut self, now: Nanos) {
        while let Some(&slot) = self.free.last() {
            let Some(step) = self.source.next(now) else { return };
            if self.napping {
                self.napping = false;
                self.awaited += 1;
                self.lateness += now - step.intended;
            }
            self.free.pop();
            let doing = match step.length {
                0 => Doing::Syncing(now),
                _ if step.preflush => Doing::Preflush,
                _ => Doing::Moving,
            };
            self.slots[slot as usize] = InFlight { step, submitted: now, doing };
            match doing {
                Doing::Moving => self.move_bytes(slot),
                Doing::Preflush => self.call(slot, Action::Fdatasync),
                Doing::Syncing(_) => self.call(slot, step.action),
            }
        }
    }

    /// Reads or writes what the slot's operation is about.
    #[inline]
    fn move_bytes(&mut self, slot: u32) {
        let Step { action, offset, length, .. } = self.slots[slot as usize].step;
        let buffer = match action {
            Action::Read => self.buffers.read_into(slot),
            _ => self.buffers.write_from(slot, length),
        };
        let operation = Operation { action, offset, buffer, length };
        // SAFETY: the slot has no operation in flight, so its buffer is in none; `work` keeps all buffers
        // until every operation has been reaped.
        unsafe { self.engine.submit(operation, slot) };
    }

    /// Makes durable what was written.
    fn call(&mut self, slot: u32, action: Action) {
        let operation = Operation { action, offset: 0, buffer: std::ptr::null_mut(), length: 0 };
        // SAFETY: such a call has no buffer.
        unsafe { self.engine.submit(operation, slot) };
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
        let whole =
            if matches!(flight.doing, Doing::Moving) { flight.step.length as i32 } else { 0 };
        if result != whole {
            self.free.push(slot);
            self.source.ended(&flight.step, false, now);
            return self.count_failure(flight, result);
        }
        self.failures_in_a_row = 0;
        match flight.doing {
            Doing::Preflush => {
                self.slots[slot as usize].doing = Doing::Moving;
                self.move_bytes(slot);
                return Ok(());
            }
            Doing::Syncing(since) if self.measuring => self.page.sync_service.record(now - since),
            Doing::Syncing(_) => {}
            Doing::Moving => {
                // The call that follows a write takes its slot.
                if let Some(action) = self.source.follows(flight.step.action) {
                    self.slots[slot as usize].doing = Doing::Syncing(now);
                    self.call(slot, action);
                    return Ok(());
                }
            }
        }
        self.free.push(slot);
        self.source.ended(&flight.step, true, now);
        if flight.step.length > 0 {
            self.count(flight, now);
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, flight: InFlight, now: Nanos) {
        let service = now - flight.submitted;
        let response = self.open.then(|| now - flight.step.intended);
        let page = self.page;
        if !self.measuring {
            let bank = if flight.step.action == Action::Read {
                &page.warm_reads
            } else {
                &page.warm_writes
            };
            bank.record(response.unwrap_or(service));
            return;
        }
        let banks = if flight.step.action == Action::Read {
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
            InFlight { doing: Doing::Preflush | Doing::Syncing(_), .. } => Stage::Sync,
            InFlight { step: Step { action: Action::Read, .. }, .. } => Stage::Read,
            InFlight { .. } => Stage::Write,
        };
        let errno = if errno == 0 { libc::EIO } else { errno };
        Err(Failure { stage, errno, offset: flight.step.offset })
    }

    /// What should have been done by the end and was not: it has no latency yet, and leaving it
    /// unsaid would hide a stall.
    fn count_backlog(&self) {
        add(&self.page.awaited, self.awaited);
        add(&self.page.lateness, self.lateness.0);
        if !self.open {
            return;
        }
        let end = self.control.end();
        let next = self.source.backlog(end);
        let outstanding = || {
            let busy = |slot: &u32| !self.free.contains(slot);
            (0..self.slots.len() as u32)
                .filter(busy)
                .map(|slot| self.slots[slot as usize].step.intended)
        };
        let waiting = next.map_or(0, |(waiting, _)| waiting);
        let first = outstanding().chain(next.map(|(_, first)| first)).min().unwrap_or(end);
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

#[cfg(test)]
mod tests;
