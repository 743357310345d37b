//! Watches the clients of a trial second by second.

use crate::bank::Tally;
use crate::clock::{Clock, Monotonic};
use crate::cost::Workers;
use crate::error::LoadError;
use crate::handles::{ClientHandles, HUNG_AFTER};
use record::Second;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use units::{Bytes, Nanos};
use workload::{Live, TrialClock};

/// How often to look for a failure or the wish to stop.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);

/// What is noted while the load runs.
pub(crate) struct Watch {
    pub times: TrialClock,
    tick: Nanos,
    pub seconds: Vec<Second>,
    /// What io_uring's workers had done at the beginning and the end of the measured span.
    pub workers: [Workers; 2],
    pub stopped: bool,
    before: Snapshot,
    /// When a request of a trace was last seen to end, and how many had.
    progress: (Nanos, u64),
}

/// What the measured job's clients had counted at one moment.
struct Snapshot {
    at: Nanos,
    reads: u64,
    writes: u64,
    bytes: Bytes,
    latency: Tally,
}

impl Watch {
    pub fn new(times: TrialClock, tick: Nanos) -> Self {
        Watch {
            times,
            tick,
            seconds: Vec::new(),
            workers: [Workers::now(), Workers::default()],
            stopped: false,
            before: Snapshot {
                at: times.start,
                reads: 0,
                writes: 0,
                bytes: Bytes::ZERO,
                latency: Tally::new(),
            },
            progress: (times.start, 0),
        }
    }

    /// Watches until the end, or until something makes it end early.
    pub fn until_end(
        &mut self,
        handles: &mut [ClientHandles],
        stop: &AtomicBool,
        each_second: &mut dyn FnMut(&Live),
    ) -> Result<(), LoadError> {
        loop {
            let tick = self.times.next_tick_of(self.before.at, self.tick);
            while Monotonic.now() < tick {
                let failure = handles.iter_mut().find_map(ClientHandles::failure);
                self.stopped = stop.load(Relaxed);
                if failure.is_some() || self.stopped {
                    return self.end_early(handles, failure);
                }
                if handles[0].replays && handles[0].all_done() {
                    return self.end_with_trace(handles);
                }
                let left = tick.saturating_sub(Monotonic.now());
                std::thread::sleep(left.min(LOOK_EVERY).as_duration());
            }
            if tick == self.times.measure {
                self.workers[0] = Workers::now();
            }
            if tick == self.times.end {
                self.workers[1] = Workers::now();
                return Ok(());
            }
            self.second(self.moment(tick), handles, each_second);
            if let Some(waited) = self.hangs(&handles[0]) {
                let path = handles[0].path.clone();
                return self.end_early(handles, Some(LoadError::Hung { path, waited }));
            }
        }
    }

    /// A trial of a trace ends with its last request.
    fn end_with_trace(&mut self, handles: &[ClientHandles]) -> Result<(), LoadError> {
        self.workers[1] = Workers::now();
        self.times.end = handles[0].ended().clamp(self.times.measure + Nanos(1), self.times.end);
        // What runs in the background has nothing more to run beside.
        for clients in &handles[1..] {
            clients.board.control().end_now(self.times.end);
        }
        Ok(())
    }

    /// For how long nothing of a trace has ended though something is outstanding, if that is too long: a job
    /// is judged when its time is over, and a trace has no time.
    fn hangs(&mut self, clients: &ClientHandles) -> Option<Nanos> {
        let (outstanding, finished) = clients.replayed();
        let now = Monotonic.now();
        if outstanding == 0 || finished != self.progress.1 {
            self.progress = (now, finished);
        }
        let waited = now - self.progress.0;
        (waited > HUNG_AFTER).then_some(waited)
    }

    fn end_early(
        &mut self,
        handles: &[ClientHandles],
        failure: Option<LoadError>,
    ) -> Result<(), LoadError> {
        let now = Monotonic.now();
        for clients in handles {
            clients.board.control().end_now(now);
        }
        self.workers[1] = Workers::now();
        self.times.end = now.min(self.times.end);
        match failure {
            Some(failure) => Err(failure),
            None if now <= self.times.measure => Err(LoadError::Stopped),
            None => Ok(()),
        }
    }

    /// When a tick was really noticed; the end of warm-up is where it is, because what follows is
    /// counted apart.
    fn moment(&self, tick: Nanos) -> Nanos {
        let bound = if tick <= self.times.measure { self.times.measure } else { self.times.end };
        let now = Monotonic.now();
        if tick == self.times.measure || now >= bound { tick } else { now }
    }

    /// Notes what was done since the last tick, and tells the caller.
    fn second(&mut self, at: Nanos, handles: &[ClientHandles], each_second: &mut dyn FnMut(&Live)) {
        // A trace may have ended before its last tick was noticed.
        let at = at.max(self.before.at);
        let warming = at <= self.times.measure;
        let now = Snapshot::take(&handles[0], at, warming);
        let (reads, writes) = (now.reads - self.before.reads, now.writes - self.before.writes);
        let latency = now.latency.since(&self.before.latency);
        let bytes = Bytes(now.bytes.0 - self.before.bytes.0);
        let length = (at - self.before.at).as_secs_f64().max(1e-9);
        let second = Second {
            at: self.times.axis(at),
            reads,
            writes,
            bytes,
            transactions: 0,
            p50: latency.quantile(0.5),
            p99: latency.quantile(0.99),
            max: latency.quantile(1.0),
        };
        self.seconds.push(second);
        self.before = match at == self.times.measure {
            // What follows is counted in other banks, which begin at nothing.
            true => Snapshot { at, reads: 0, writes: 0, bytes: Bytes::ZERO, latency: Tally::new() },
            false => now,
        };
        each_second(&Live {
            at: second.at,
            phase: self.times.phase(at),
            operations_per_second: (reads + writes) as f64 / length,
            bytes_per_second: bytes.0 as f64 / length,
            p99: second.p99,
        });
    }

    /// The last second, once every client has counted all that it did by the end.
    pub fn last_second(&mut self, handles: &[ClientHandles], each_second: &mut dyn FnMut(&Live)) {
        self.second(self.times.end, handles, each_second);
    }
}

impl Snapshot {
    fn take(clients: &ClientHandles, at: Nanos, warming: bool) -> Self {
        let mut latency = Tally::new();
        let open = clients.open;
        let (mut reads, mut writes) = (0, 0);
        for page in clients.board.pages() {
            let (read, write) = match (warming, open) {
                (true, _) => (&page.warm_reads, &page.warm_writes),
                (false, true) => (&page.read_response, &page.write_response),
                (false, false) => (&page.read_service, &page.write_service),
            };
            let before = latency.count();
            latency.add(read);
            reads += latency.count() - before;
            let before = latency.count();
            latency.add(write);
            writes += latency.count() - before;
        }
        let [read, written] = clients.moved(reads, writes);
        Snapshot { at, reads, writes, bytes: read + written, latency }
    }
}
