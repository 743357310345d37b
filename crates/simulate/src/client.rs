//! Clients: what each does next, and how its writes are made durable.

use crate::spec::Spec;
use blocklayer::{Context, IoClass, Kernel};
use device::Op;
use random::Stream;
use std::collections::VecDeque;
use units::{Bytes, Nanos};
use workload::{AfterWrite, Job, Offsets, OpenSync, Schedule};

/// What the clients of a job have in common.
pub(crate) struct Rules {
    /// Sectors per operation.
    pub sectors: u64,
    /// Writes carry FUA.
    pub fua: bool,
    /// A flush follows after this many writes.
    pub flush_every: Option<u32>,
    /// That flush is a call of its own (fsync), not part of the write (O_SYNC).
    pub flush_is_call: bool,
    /// Latency counts from the intended start.
    pub open: bool,
    /// Its operations are system calls of the machine, through page cache, filesystem or database.
    /// Otherwise they go directly to the block layer.
    pub calls: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// As a system call: fsync (or what O_SYNC does) after this many writes.
    pub sync_every: Option<u32>,
    /// That is fdatasync, or O_DSYNC.
    pub data_only: bool,
}

impl Rules {
    /// Whether an operation carries FUA.
    pub fn fua_of(&self, op: Op) -> bool {
        self.fua && op == Op::Write && self.sync_every.is_none()
    }

    /// Of a job on a kernel; `raw`: on a raw device.
    pub fn of(job: &Job, kernel: Kernel, raw: bool) -> Self {
        let durable = job.sync.open != OpenSync::None;
        // Since 4.18 an O_DSYNC overwrite past the page cache is one FUA write; before, a write
        // and a flush.
        let fua = durable && kernel >= Kernel::V4_19;
        let call = job.sync.after != AfterWrite::None;
        Rules {
            sectors: job.block_size.sectors().0,
            fua,
            flush_every: match (call, durable && !fua) {
                (_, true) => Some(1),
                (true, _) => Some(job.sync.every),
                _ => None,
            },
            flush_is_call: call,
            open: job.rate.is_some(),
            calls: !raw || !job.sync.direct,
            direct: job.sync.direct,
            sync_every: match (call, durable) {
                // With O_SYNC a call after the write has nothing left to do.
                (_, true) if !raw || !job.sync.direct || !fua => Some(1),
                (true, _) => Some(job.sync.every),
                _ => None,
            },
            data_only: match job.sync.open {
                OpenSync::None => job.sync.after == AfterWrite::Fdatasync,
                open => open == OpenSync::ODsync,
            },
        }
    }
}

/// How many io_uring workers may block at once: the default of four per processor, on two processors.
/// Documented: io_uring_register(2), IORING_REGISTER_IOWQ_MAX_WORKERS.
const RING_WORKERS: u32 = 8;

/// How a client of the direct path waits for a free request.
#[derive(Debug)]
pub(crate) enum TagWait {
    /// io_submit(2), read(2) or write(2): the client itself sleeps, and submits nothing meanwhile.
    Itself {
        /// It sleeps now.
        asleep: bool,
    },
    /// io_uring: the ring's workers sleep, each for one operation, and the client continues. Operations
    /// without a worker wait for one.
    Workers {
        /// Sleeping workers.
        asleep: u32,
        /// Operations without a worker, in order.
        waiting: VecDeque<u32>,
    },
}

impl TagWait {
    /// With the interface that gives a client of this kernel several outstanding operations.
    fn of(kernel: Kernel, depth: u32) -> Self {
        match kernel.multi_queue() && depth > 1 {
            true => TagWait::Workers { asleep: 0, waiting: VecDeque::new() },
            false => TagWait::Itself { asleep: false },
        }
    }

    /// Whether the client cannot begin another operation.
    pub fn blocks_client(&self) -> bool {
        matches!(self, TagWait::Itself { asleep: true })
    }

    /// Whether an operation is first submitted without sleeping.
    pub fn tries(&self) -> bool {
        matches!(self, TagWait::Workers { .. })
    }

    /// An operation found no free request: whether a worker takes it, and sleeps for it.
    pub fn worker_for(&mut self, slot: u32) -> bool {
        let TagWait::Workers { asleep, waiting } = self else { return true };
        let free = *asleep < RING_WORKERS;
        match free {
            true => *asleep += 1,
            false => waiting.push_back(slot),
        }
        free
    }

    /// The client, or a worker, begins to sleep for a request.
    pub fn begin(&mut self) {
        if let TagWait::Itself { asleep } = self {
            *asleep = true;
        }
    }

    /// An operation that slept was submitted: returns the next one for its worker.
    pub fn end(&mut self) -> Option<u32> {
        match self {
            TagWait::Itself { asleep } => {
                *asleep = false;
                None
            }
            TagWait::Workers { asleep, waiting } => {
                let next = waiting.pop_front();
                *asleep -= u32::from(next.is_none());
                next
            }
        }
    }
}

/// One client.
pub(crate) struct Client {
    /// 0: the measured job; 1: the background job.
    pub job: usize,
    pub context: Context,
    pub offsets: Offsets,
    /// Its arrivals, if it has a rate.
    pub schedule: Option<Schedule>,
    /// Slots for operations that may begin.
    pub free: Vec<u32>,
    /// How it waits for a free request.
    pub sleeping: TagWait,
    /// A wait for its next arrival is set.
    pub armed: bool,
    /// It is in the list of ready clients.
    pub ready: bool,
    /// Its first operations have been submitted.
    pub started: bool,
    pub writes_since_flush: u32,
}

/// A slot: an outstanding operation, or room for one.
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    pub client: u32,
    pub reads: bool,
    pub start: u64,
    /// Its sectors; none in a recorded flush.
    pub sectors: u64,
    /// A write of a trace before which the cache is flushed; false once it is.
    pub preflush: bool,
    /// A write of a trace that carries FUA.
    pub fua: bool,
    /// When it was issued in the trace and how long it took there, if it comes from one.
    pub recorded: Option<(Nanos, Option<Nanos>)>,
    pub intended: Nanos,
    pub submitted: Nanos,
    /// Sectors submitted so far.
    pub handed: u64,
    /// Its outstanding bios.
    pub pieces: u32,
    /// When it began to wait for a request.
    pub slept: Nanos,
    /// When the flush after the write was submitted.
    pub flushing: Option<Nanos>,
    pub failed: bool,
    pub busy: bool,
}

impl Operation {
    /// An operation of `client`, intended for `intended` and begun at `now`, without sectors yet.
    pub fn begun(client: u32, intended: Nanos, now: Nanos) -> Self {
        Operation {
            client,
            reads: true,
            start: 0,
            sectors: 0,
            preflush: false,
            fua: false,
            recorded: None,
            intended,
            submitted: now,
            handed: 0,
            pieces: 0,
            slept: Nanos::ZERO,
            flushing: None,
            failed: false,
            busy: true,
        }
    }
}

/// All clients of a spec, and the slots of their operations.
pub(crate) struct ClientTable {
    pub clients: Vec<Client>,
    pub operations: Vec<Operation>,
    pub rules: Vec<Rules>,
    /// How many I/O contexts there are, numbered from 0.
    pub contexts: u32,
}

impl ClientTable {
    pub fn of(spec: &Spec) -> Self {
        let jobs = [Some(&spec.workload.job), spec.workload.background.as_ref()];
        let mut table =
            ClientTable { clients: vec![], operations: vec![], rules: vec![], contexts: 0 };
        for (at, job) in jobs.into_iter().flatten().enumerate() {
            let role = if at == 0 { "measured" } else { "background" };
            // A database is on files, and so is a job beside it.
            let raw = spec.stack.filesystem.is_none() && spec.workload.database.is_none();
            let mut rules = Rules::of(job, spec.queue.kernel, raw);
            let (mut clients, mut rate) = (job.clients, job.rate);
            let mut depth = job.depth;
            if let Some(replay) = spec.replay.as_ref().filter(|_| at == 0) {
                (clients, rate, depth) = (replay.clients(), None, replay.slots());
                rules.calls = false;
                rules.flush_is_call = true;
                rules.open = replay.mode == workload::ReplayMode::Open;
            }
            if at == 0 && spec.workload.database.is_some() {
                rules.calls = true;
                (clients, rate) = (spec.workload.clients(), spec.workload.rate());
                rules.open = rate.is_some();
            }
            table.rules.push(rules);
            let job = Job { clients, rate, depth, ..job.clone() };
            table.join(at, role, &job, spec);
        }
        table
    }

    fn join(&mut self, at: usize, role: &str, job: &Job, spec: &Spec) {
        let beside = spec.workload.beside_size().filter(|_| at > 0);
        let span = beside.map_or(spec.span, Bytes::sectors);
        let blocks = (span.0 / job.block_size.sectors().0).max(1);
        for client in 0..job.clients {
            let stream = |what| Stream::new(spec.seed, &format!("{role} client {client} {what}"));
            // Threads too: pthread_create(3) does not use CLONE_IO, see clone(2).
            self.contexts += 1;
            let place = (client, job.clients);
            let first = self.operations.len() as u32;
            let idle = Operation {
                busy: false,
                ..Operation::begun(self.clients.len() as u32, Nanos::ZERO, Nanos::ZERO)
            };
            self.operations.extend(std::iter::repeat_n(idle, job.depth as usize));
            self.clients.push(Client {
                job: at,
                context: context(self.contexts - 1, job),
                offsets: Offsets::new(job.pattern, place, blocks, stream("offsets")),
                schedule: job
                    .rate
                    .map(|rate| Schedule::new(rate, place, Nanos::ZERO, stream("arrivals"))),
                free: (first..first + job.depth).rev().collect(),
                sleeping: TagWait::of(spec.queue.kernel, job.depth),
                armed: false,
                started: false,
                ready: false,
                writes_since_flush: 0,
            });
        }
    }
}

fn context(process: u32, job: &Job) -> Context {
    let Some(priority) = job.io_priority else { return Context::of(process) };
    let class = match priority.class {
        workload::IoClass::RealTime => IoClass::RealTime,
        workload::IoClass::BestEffort => IoClass::BestEffort,
        workload::IoClass::Idle => IoClass::Idle,
    };
    Context { process, class, level: priority.level }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(sync: &str, kernel: Kernel) -> (bool, Option<u32>) {
        let job = Job { sync: sync.parse().unwrap(), ..Job::default() };
        let rules = Rules::of(&job, kernel, true);
        (rules.fua, rules.flush_every)
    }

    #[test]
    fn durable_writes_are_fua_or_followed_by_a_flush() {
        assert_eq!(rules("direct", Kernel::V6_12), (false, None));
        assert_eq!(rules("direct+osync", Kernel::V6_12), (true, None));
        assert_eq!(rules("direct+odsync", Kernel::V3_10), (false, Some(1)));
        assert_eq!(rules("direct+fsync", Kernel::V2_6_18), (false, Some(1)));
        assert_eq!(rules("direct+fsync:16", Kernel::V6_12), (false, Some(16)));
        assert_eq!(rules("direct+osync+fsync:16", Kernel::V6_12), (true, Some(16)));
    }
}
