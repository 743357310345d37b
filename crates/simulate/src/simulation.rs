//! The event loop over clients, block layer and device.

mod beginning;
mod check;
mod ending;

use crate::client::ClientTable;
use crate::counters::Sampling;
use crate::events::EventKind;
use crate::log::Recorder;
use crate::machine::Machine;
use crate::replay::{Ended, ReplaySpec, Replaying};
use crate::spec::{SimulateError, Spec};
use crate::tally::{Finished, Tally};
use crate::volume::{Striping, Volume};
use blocklayer::{AdvanceOutput, Bio, BioDone};
use check::check;
use device::{Device, Op, Path};
use random::Stream;
use record::{Measurement, Second};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::atomic::{AtomicBool, Ordering},
};
use units::{Nanos, Sectors};
use workload::TrialClock;

/// Steps between two checks of the caller's stop flag.
const LOOK_EVERY: u64 = 1 << 14;
/// Clients start within this time, in random order. Observed: threads that wait for one signal start within
/// 0.03 to 1.5 ms on two processors.
const START_SPREAD: Nanos = Nanos::from_micros(500);

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// What was measured, under the same names as in the real world.
    pub measurement: Measurement,
    /// Completed operations, including those during warm-up.
    pub operations: u64,
}

impl Simulated {
    /// A hash over every event with its time: two runs with equal hashes were the same.
    pub fn event_hash(&self) -> u64 {
        self.measurement.events.as_ref().map_or(0, |log| log.hash)
    }
}

/// A virtual second of the measured job that has passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The second.
    pub second: Second,
    /// How long it was: the first and the last may be shorter, and those of a replay longer.
    pub length: Nanos,
}

/// Simulates one trial on `device`, which must be newly built. Clients start at time zero; operations in
/// flight at the end do not count.
pub fn run<D: Device + ?Sized>(
    spec: &Spec,
    device: Box<D>,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Progress),
) -> Result<Simulated, SimulateError> {
    run_striped(spec, vec![device], None, stop, each_second)
}

/// The same on several devices that the host stripes into one volume.
pub fn run_striped<D: Device + ?Sized>(
    spec: &Spec,
    devices: Vec<Box<D>>,
    striping: Option<Striping>,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Progress),
) -> Result<Simulated, SimulateError> {
    let capacity = devices.iter().map(|device| device.capacity().0).sum();
    let database = check(spec, Sectors(capacity))?;
    let volume = Volume::new(spec.queue, devices, striping)?;
    let mut simulation = Simulation::new(spec, volume);
    if let Some(database) = &database {
        let server = database.start(&mut simulation.machine, spec.seed);
        simulation.machine.server = Some(server);
        if let Some(size) = spec.workload.beside_size() {
            simulation.background_file = simulation.machine.lay_out(size);
        }
        let laid_out = Sectors(simulation.machine.free_space);
        if laid_out.0 > capacity {
            return Err(SimulateError::Span {
                span: laid_out.bytes(),
                capacity: Sectors(capacity).bytes(),
            });
        }
    }
    simulation.run_to_end(stop, each_second)?;
    Ok(simulation.result())
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wait {
    /// A client's next arrival.
    Arrival(u32),
    /// The turnaround of a slot.
    Turnaround(u32),
}

struct Simulation<'a, D: Device + ?Sized> {
    spec: &'a Spec<'a>,
    machine: Machine<D>,
    table: ClientTable,
    waits: BinaryHeap<Reverse<(Nanos, u64, Wait)>>,
    sequence: u64,
    /// Clients that may be able to begin something now.
    ready: Vec<u32>,
    /// Operations in a ring that are not submitted yet, of the client that is beginning operations.
    prepared: Vec<u32>,
    now: Nanos,
    measuring: bool,
    tallies: Vec<Tally>,
    first_client: Vec<u32>,
    /// The file of the background job: the measured job's, but beside a database.
    background_file: u16,
    sampling: Sampling,
    seconds: Vec<Second>,
    clock: TrialClock,
    last_tick: Nanos,
    /// In a replay: the time between two samples.
    step: Option<Nanos>,
    /// There was an event since the last sample.
    acted: bool,
    log: Recorder,
    replay: Option<Replaying<'a>>,
    operations: u64,
    /// Bytes submitted by rings' workers because there was no free request.
    punted: u64,
}

impl<'a, D: Device + ?Sized> Simulation<'a, D> {
    fn new(spec: &'a Spec<'a>, volume: Volume<D>) -> Self {
        let table = ClientTable::of(spec);
        let slots = table.operations.iter();
        let contexts: Vec<_> =
            slots.map(|slot| table.clients[slot.client as usize].context).collect();
        let mut machine = Machine::new(volume, spec, &contexts);
        if table.rules.iter().any(|rules| rules.calls) {
            machine.start_threads();
        }
        let jobs = [Some(&spec.workload.job), spec.workload.background.as_ref()];
        let mut tallies: Vec<Tally> = jobs
            .into_iter()
            .flatten()
            .map(|job| Tally::new(job.clients, job.rate.is_some()))
            .collect();
        if let Some(database) = &spec.workload.database {
            let (clients, open) = (spec.workload.clients(), spec.workload.rate().is_some());
            tallies[0] = Tally::of_transactions(database.kind, clients, open);
        }
        let mut clients = spec.workload.clients();
        if let Some(replay) = &spec.replay {
            clients = replay.clients();
            tallies[0] = Tally::new(clients, replay.mode == workload::ReplayMode::Open);
        }
        Simulation {
            tallies,
            first_client: vec![0, clients],
            background_file: 0,
            ready: Vec::with_capacity(table.clients.len()),
            table,
            prepared: Vec::new(),
            waits: BinaryHeap::new(),
            sequence: 0,
            now: Nanos::ZERO,
            measuring: false,
            sampling: Sampling::new(),
            seconds: Vec::new(),
            clock: TrialClock::new(Nanos::ZERO, spec.warmup, spec.measure),
            last_tick: Nanos::ZERO,
            step: spec.replay.as_ref().map(ReplaySpec::sampling_step),
            acted: true,
            log: Recorder::new(spec.log_requests, spec.warmup),
            replay: spec.replay.as_ref().map(|replay| Replaying::new(replay, spec.span)),
            operations: 0,
            punted: 0,
            machine,
            spec,
        }
    }

    fn end(&self) -> Nanos {
        self.clock.end
    }

    fn run_to_end(
        &mut self,
        stop: &AtomicBool,
        each_second: &mut dyn FnMut(&Progress),
    ) -> Result<(), SimulateError> {
        self.measuring = self.spec.warmup == Nanos::ZERO;
        self.start_clients();
        self.begin_what_may();
        self.settle();
        let mut outcome = AdvanceOutput::default();
        let mut steps = 0u64;
        while self.now < self.end() && !self.replay.as_ref().is_some_and(Replaying::is_done) {
            let event = self.next_event();
            let outstanding = self.machine.outstanding;
            let tick = self.next_tick(event, outstanding > 0);
            self.acted |= event.is_some_and(|event| event <= tick);
            if event.is_none() && outstanding > 0 {
                return Err(SimulateError::Stalled { at: self.now, outstanding });
            }
            let at = event.unwrap_or(tick).min(tick);
            self.sampling.pass(at, &self.machine.volume.view(), outstanding > 0);
            self.now = at;
            self.machine.now = at;
            self.machine.volume.advance(at, &mut outcome);
            for context in &outcome.woken {
                self.wake(*context);
            }
            if !outcome.done.is_empty() && self.log.wants_lives(at) {
                outcome.done.iter().for_each(|bio| self.log.bio(bio));
                self.log.heads(at, &self.machine.volume.heads());
            }
            for bio in &outcome.done {
                self.complete(bio);
            }
            outcome.clear();
            self.machine.end_timers();
            self.settle();
            self.end_waits();
            self.begin_what_may();
            self.settle();
            if at == tick {
                each_second(&self.close_second());
            }
            steps += 1;
            if steps.is_multiple_of(LOOK_EVERY) && stop.load(Ordering::Relaxed) {
                return Err(SimulateError::Stopped);
            }
        }
        if self.now > self.last_tick {
            each_second(&self.close_second());
        }
        Ok(())
    }

    fn start_clients(&mut self) {
        let clients = self.table.clients.len() as u32;
        let mut start = Stream::new(self.spec.seed, "start");
        for client in 0..clients {
            match clients > 1 && self.replay.is_none() {
                true => self.wait(Nanos(start.below(START_SPREAD.0)), Wait::Arrival(client)),
                false => self.make_ready(client),
            }
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let wait = self.waits.peek().map(|Reverse((at, ..))| *at);
        match (self.machine.next_event(), wait) {
            (Some(layer), Some(wait)) => Some(layer.min(wait)),
            (layer, wait) => layer.or(wait),
        }
        // The device's time may lag behind a tick without events.
        .map(|at| at.max(self.now))
    }

    /// When the next sample is due: see [`TrialClock`]. In a replay, steps in which nothing happens are
    /// one sample, so that samples follow requests, not recorded time.
    fn next_tick(&self, event: Option<Nanos>, occupied: bool) -> Nanos {
        let last = self.last_tick;
        let Some(step) = self.step.filter(|_| last >= self.clock.measure) else {
            return self.clock.next_tick(last);
        };
        let next = last + Nanos(step.0 - (last - self.clock.measure).0 % step.0);
        // Up to the step before the next event, if nothing is outstanding until then.
        let idle = match self.acted || occupied {
            true => Nanos::ZERO,
            false => event.unwrap_or(self.clock.end).saturating_sub(next + Nanos(1)),
        };
        (next + step * (idle.0 / step.0)).min(self.clock.end)
    }

    fn close_second(&mut self) -> Progress {
        let axis = self.clock.axis(self.now);
        self.sampling.slept(std::mem::take(&mut self.machine.slept));
        self.sampling.sample(axis, &self.machine.volume.counters(), self.machine.gauges());
        let second = self.tallies[0].take_second(axis);
        self.seconds.push(second);
        let length = self.now - self.last_tick;
        self.last_tick = self.now;
        self.acted = false;
        self.measuring = self.now >= self.spec.warmup;
        Progress { second, length }
    }

    #[inline]
    fn make_ready(&mut self, client: u32) {
        let ready = &mut self.table.clients[client as usize].ready;
        if !*ready {
            *ready = true;
            self.ready.push(client);
        }
    }

    /// Runs the machine's tasks, and finishes completed operations.
    #[inline]
    fn settle(&mut self) {
        self.machine.settle();
        while let Some(slot) = self.machine.finished.pop() {
            let Some(operation) = self.table.operations.get_mut(slot as usize) else { continue };
            operation.failed |= self.machine.failed(slot);
            self.finish(slot, self.now);
        }
        while let Some((slot, took)) = self.machine.synced.pop() {
            let Some(operation) = self.table.operations.get(slot as usize) else { continue };
            let job = self.table.clients[operation.client as usize].job;
            if self.measuring && self.table.rules[job].flush_is_call {
                self.tallies[job].count_sync(took);
            }
        }
    }

    fn wait(&mut self, until: Nanos, wait: Wait) {
        self.sequence += 1;
        self.waits.push(Reverse((until, self.sequence, wait)));
    }

    /// Ends all waits that have expired.
    #[inline]
    fn end_waits(&mut self) {
        while let Some(Reverse((at, _, wait))) = self.waits.peek().copied() {
            if at > self.now {
                return;
            }
            self.waits.pop();
            match wait {
                Wait::Arrival(client) => {
                    self.table.clients[client as usize].armed = false;
                    self.make_ready(client);
                }
                Wait::Turnaround(slot) => self.free(slot),
            }
        }
    }

    #[inline]
    fn free(&mut self, slot: u32) {
        let client = self.table.operations[slot as usize].client;
        self.table.clients[client as usize].free.push(slot);
        self.make_ready(client);
    }

    /// A waiting operation of a context continues where it stopped.
    fn wake(&mut self, context: u32) {
        let Some(mut slot) = self.machine.wake(context) else { return };
        let at = self.table.operations[slot as usize].client;
        while self.hand_over(slot, true) {
            let operation = &self.table.operations[slot as usize];
            self.sampling.slept(self.now - operation.slept);
            let sleeping = &mut self.table.clients[at as usize].sleeping;
            if sleeping.tries() && self.measuring {
                self.punted += operation.sectors * 512;
            }
            let Some(next) = sleeping.end() else { break };
            slot = next;
        }
        // It continues with other operations, and unplugs then or now.
        self.machine.volume.unplug(context, self.now);
        self.make_ready(at);
    }

    #[inline]
    fn complete(&mut self, bio: &BioDone) {
        self.sampling.bio(bio);
        if bio.op == Op::Read {
            self.machine.watch_read(bio.at - bio.queued);
        }
        let Some(slot) = self.machine.complete(bio) else { return };
        let operation = &mut self.table.operations[slot as usize];
        operation.failed |= bio.path == Path::OutOfRange;
        operation.pieces -= 1;
        if operation.preflush {
            if operation.pieces == 0 {
                self.write_after_flush(slot);
            }
            return;
        }
        let client = &mut self.table.clients[operation.client as usize];
        let rules = &self.table.rules[client.job];
        if operation.pieces > 0 || operation.handed < operation.sectors {
            return;
        }
        if let Some(since) = operation.flushing {
            if rules.flush_is_call && self.measuring {
                self.tallies[client.job].count_sync(bio.at - since);
            }
        } else if !operation.reads
            && let Some(every) = rules.flush_every
        {
            client.writes_since_flush += 1;
            if client.writes_since_flush >= every {
                client.writes_since_flush = 0;
                self.flush(slot, bio.at);
                return;
            }
        }
        self.finish(slot, bio.at);
    }

    fn flush(&mut self, slot: u32, since: Nanos) {
        let operation = &mut self.table.operations[slot as usize];
        let client = &self.table.clients[operation.client as usize];
        if !operation.preflush {
            operation.flushing = Some(since);
        }
        let bio = Bio {
            id: u64::from(slot),
            op: Op::Flush,
            start: Sectors(0),
            count: Sectors(0),
            sync: true,
            fua: false,
            context: client.context,
        };
        operation.pieces = self.machine.volume.flush(bio, self.now);
        self.machine.outstanding += u64::from(operation.pieces);
        self.machine.hash.add(self.now, EventKind::Submitted, u64::MAX);
        self.machine.volume.unplug(client.context.process, self.now);
    }

    #[inline]
    fn finish(&mut self, slot: u32, at: Nanos) {
        self.machine.hash.add(at, EventKind::Finished, u64::from(slot));
        self.operations += 1;
        self.sampling.operation();
        let operation = &mut self.table.operations[slot as usize];
        operation.busy = false;
        let job = self.table.clients[operation.client as usize].job;
        let tally = &mut self.tallies[job];
        if operation.failed {
            if self.measuring {
                tally.count_failure();
            }
        } else if operation.sectors > 0 {
            let done = Finished {
                client: (operation.client - self.first_client[job]) as usize,
                reads: operation.reads,
                bytes: operation.sectors * 512,
                service: at - operation.submitted,
                response: at - operation.intended,
            };
            tally.count(done, self.measuring);
        }
        if let (Some(replay), Some((recorded_at, recorded_service))) =
            (&mut self.replay, operation.recorded)
        {
            let client = operation.client;
            let turn = replay.done(client, &Ended { at, recorded_at, recorded_service });
            if let Some(turn) = turn {
                self.make_ready(turn);
            }
        }
        match self.spec.turnaround {
            Nanos::ZERO => self.free(slot),
            turnaround => self.wait((at + turnaround).max(self.now), Wait::Turnaround(slot)),
        }
    }
}
