//! A client from beginning to end, the same in a thread and in a process.

use crate::board::{Board, Control, Page};
use crate::buffer::Buffers;
use crate::client::{Client, Kit};
use crate::clock::Monotonic;
use crate::cost::Cpu;
use crate::engines::{self, Engine, io_uring::Ring, null::Null};
use crate::error::{Failure, Stage};
use crate::priority;
use crate::replay::{Recorded, ReplayLoad};
use crate::source::{Endless, Source};
use crate::target::{Opening, operation_flags};
use random::Stream;
use record::JobRole;
use serde::{Deserialize, Serialize};
use std::{
    io,
    sync::{Arc, atomic::Ordering::Relaxed},
};
use workload::{EngineKind, Job, Offsets, Schedule, TrialClock};

/// What every client of a job is started with.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct JobSpec {
    pub role: JobRole,
    pub job: Job,
    pub target: Opening,
    pub blocks: u64,
    pub engine: EngineKind,
    pub seed: u64,
    /// What is replayed in the job's place: by threads.
    #[serde(skip)]
    pub replay: Option<Arc<ReplayLoad>>,
}

/// Prepares, waits for the start, works, reports.
pub(crate) fn client_main(spec: &JobSpec, board: &Board, client: usize, cpu: fn() -> Cpu) {
    let (control, page) = (board.control(), board.page(client));
    // Reported as done also when it panics, so that the observer does not wait forever.
    let _done = Done { control, page };
    if let Err(failure) = prepare_and_work(spec, control, page, client as u32, cpu) {
        page.fail(failure);
        control.failed.fetch_add(1, Relaxed);
    }
}

struct Done<'a> {
    control: &'a Control,
    page: &'a Page,
}

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.page.fail(Failure { stage: Stage::Engine, errno: libc::EFAULT, offset: 0 });
            self.control.failed.fetch_add(1, Relaxed);
        }
        self.page.done.store(1, Relaxed);
    }
}

fn prepare_and_work(
    spec: &JobSpec,
    control: &Control,
    page: &Page,
    client: u32,
    cpu: fn() -> Cpu,
) -> Result<(), Failure> {
    let JobSpec { role, job, engine, seed, .. } = spec;
    let failed = |stage| {
        move |error: io::Error| Failure {
            stage,
            errno: error.raw_os_error().unwrap_or(libc::EIO),
            offset: 0,
        }
    };
    // Without this, the kernel lets a sleeper oversleep by 50 µs to save power.
    // SAFETY: integers only; concerns this thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    let mut number = 0;
    if let Some(wanted) = job.io_priority {
        priority::set(wanted).map_err(failed(Stage::Priority))?;
        number = priority::kernel_number(wanted);
    }
    let stream = |what| Stream::new(*seed, &format!("{} client {client} {what}", role.name()));
    let kinds = (job.pattern.reads(), job.pattern.writes());
    let buffers = Buffers::new(job.block_size.0, job.depth, kinds, &mut stream("data"))
        .map_err(failed(Stage::Allocate))?;
    let begin = Begin { spec, control, page, client, cpu };
    let open = || spec.target.open(job).map_err(failed(Stage::Open));
    let flags = operation_flags(job.sync);
    match engine {
        EngineKind::Null => begin.work(Null::new(job.depth), buffers),
        EngineKind::Sync => begin.work(engines::sync::Sync::new(open()?, flags), buffers),
        EngineKind::IoUring => {
            // SAFETY: the client takes both, and drops the buffers after the ring or never.
            let ring = unsafe { Ring::new(open()?, job.depth, &buffers, (number, flags)) }
                .map_err(failed(Stage::Engine))?;
            begin.work(ring, buffers)
        }
        // Runs as a child of its own, never as a client of ours.
        EngineKind::Fio => {
            Err(Failure { stage: Stage::Engine, errno: libc::EOPNOTSUPP, offset: 0 })
        }
    }
}

struct Begin<'a> {
    spec: &'a JobSpec,
    control: &'a Control,
    page: &'a Page,
    client: u32,
    cpu: fn() -> Cpu,
}

impl Begin<'_> {
    fn work(self, engine: impl Engine, buffers: Buffers) -> Result<(), Failure> {
        let JobSpec { role, job, blocks, seed, .. } = self.spec;
        let client = (self.client, job.clients);
        let stream =
            |what| Stream::new(*seed, &format!("{} client {} {what}", role.name(), self.client));
        let offsets = Offsets::new(job.pattern, client, *blocks, stream("offsets"));
        let Some(times) = self.control.wait() else {
            return Ok(());
        };
        let TrialClock { start, .. } = times;
        if let Some(replay) = &self.spec.replay {
            let source = Recorded::new(replay, (self.control, self.page), self.client, start);
            return self.work_at(source, engine, buffers, times);
        }
        let schedule = job.rate.map(|rate| Schedule::new(rate, client, start, stream("arrivals")));
        self.work_at(Endless::new(job, offsets, schedule), engine, buffers, times)
    }

    fn work_at(
        &self,
        source: impl Source,
        engine: impl Engine,
        buffers: Buffers,
        times: TrialClock,
    ) -> Result<(), Failure> {
        let kit = Kit {
            engine,
            clock: Monotonic,
            control: self.control,
            page: self.page,
            source,
            buffers,
            cpu: self.cpu,
        };
        Client::new(kit, self.spec.job.depth).work(times)
    }
}
