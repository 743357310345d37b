//! The clients of one job: started, awaited, joined. Each is a thread, or a process of its
//! own forked from us, which has an I/O context of its own, so that cfq and bfq tell it apart.

use crate::board::{Board, Control, Page};
use crate::buffer::Buffers;
use crate::client::{Client, Kit};
use crate::clock::{Clock, Monotonic};
use crate::cost::Cpu;
use crate::engines::{Engine, io_uring::Ring, null::Null, sync::Sync};
use crate::error::{Failure, LoadError, Stage};
use crate::priority;
use crate::spec::LoadSpec;
use random::Stream;
use std::{
    io,
    os::fd::RawFd,
    path::PathBuf,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::JoinHandle,
};
use units::Nanos;
use workload::{ClientKind, EngineKind, Job, Offsets, Schedule, TrialClock};

/// A client's stack: it recurses nowhere and holds nothing large.
const STACK_BYTES: usize = 128 << 10;

/// How often to look for processes that died: a system call for each.
const LOOK_EVERY: Nanos = Nanos::from_millis(250);

/// What every client of a job is started with.
struct JobSpec {
    role: &'static str,
    job: Job,
    target: crate::target::Opening,
    blocks: u64,
    engine: EngineKind,
    seed: u64,
}

/// The clients of one job.
pub(crate) struct ClientHandles {
    pub job: Job,
    pub board: Arc<Board>,
    tasks: Tasks,
    path: PathBuf,
    /// When processes were last looked at.
    looked: Nanos,
    /// The first that died, and how.
    dead: Option<(usize, String)>,
}

enum Tasks {
    Threads(Vec<JoinHandle<()>>),
    /// Process ids; zero once waited for.
    Processes(Vec<libc::pid_t>),
}

impl ClientHandles {
    /// Starts the clients; they prepare, then wait for the start.
    pub fn start(load: &LoadSpec, role: &'static str, job: &Job) -> Result<Self, LoadError> {
        let cannot = |client, error: io::Error| LoadError::Client {
            client,
            stage: Stage::Start,
            errno: error.raw_os_error().unwrap_or(libc::EAGAIN),
        };
        let board = Arc::new(Board::new(job.clients as usize).map_err(|error| cannot(0, error))?);
        let spec = Arc::new(JobSpec {
            role,
            job: job.clone(),
            target: load.target.opening(),
            blocks: load.target.size.0 / job.block_size.0,
            engine: load.engine,
            seed: load.seed,
        });
        let tasks = match job.client_kind {
            ClientKind::Threads => Tasks::Threads(Vec::new()),
            ClientKind::Processes => Tasks::Processes(Vec::new()),
        };
        let mut clients = ClientHandles {
            job: job.clone(),
            board,
            tasks,
            path: load.target.path.clone(),
            looked: Nanos::ZERO,
            dead: None,
        };
        for client in 0..job.clients as usize {
            if let Err(error) = clients.spawn(client, &spec) {
                clients.cancel();
                return Err(cannot(client, error));
            }
        }
        Ok(clients)
    }

    fn spawn(&mut self, client: usize, spec: &Arc<JobSpec>) -> io::Result<()> {
        match &mut self.tasks {
            Tasks::Threads(threads) => {
                let (spec, board) = (Arc::clone(spec), Arc::clone(&self.board));
                let thread = std::thread::Builder::new()
                    .name(format!("{}-{client}", &spec.role[..4]))
                    .stack_size(STACK_BYTES)
                    .spawn(move || client_main(&spec, &board, client, Cpu::of_thread))?;
                threads.push(thread);
            }
            Tasks::Processes(pids) => {
                let board = &self.board;
                let keep = spec.target.held();
                pids.push(fork(|| {
                    close_all_but(keep);
                    client_main(spec, board, client, Cpu::of_process);
                })?);
            }
        }
        Ok(())
    }

    /// Whether every client gave up or is ready to begin.
    pub fn ready(&self) -> bool {
        let control = self.board.control();
        control.ready.load(Relaxed) + control.failed.load(Relaxed) >= self.job.clients
    }

    /// Why a client gave up, if one did.
    pub fn failure(&mut self) -> Option<LoadError> {
        self.look_for_dead();
        if let Some((client, how)) = self.dead.clone() {
            return Some(LoadError::Died { client, how });
        }
        if self.board.control().failed.load(Relaxed) == 0 {
            return None;
        }
        let (client, Failure { stage, errno, offset }) = self
            .board
            .pages()
            .enumerate()
            .find_map(|(client, page)| page.failure().map(|failure| (client, failure)))?;
        Some(if stage.is_operation() {
            let offset = units::Bytes(offset);
            LoadError::Operation { path: self.path.clone(), stage, offset, errno }
        } else {
            LoadError::Client { client, stage, errno }
        })
    }

    /// Notes a client process that ended without saying that it was done.
    fn look_for_dead(&mut self) {
        let Tasks::Processes(pids) = &mut self.tasks else {
            return;
        };
        let now = Monotonic.now();
        if now.saturating_sub(self.looked) < LOOK_EVERY {
            return;
        }
        self.looked = now;
        for (client, pid) in pids.iter_mut().enumerate().filter(|(_, pid)| **pid != 0) {
            let mut status = 0;
            // SAFETY: waits for a child of ours, without blocking.
            if unsafe { libc::waitpid(*pid, &mut status, libc::WNOHANG) } != *pid {
                continue;
            }
            *pid = 0;
            if self.board.page(client).done.swap(1, Relaxed) == 0 {
                let how = match libc::WIFSIGNALED(status) {
                    true => format!("signal {}", libc::WTERMSIG(status)),
                    false => format!("exit code {}", libc::WEXITSTATUS(status)),
                };
                self.dead.get_or_insert((client, how));
            }
        }
    }

    /// Whether every client has ended.
    pub fn all_done(&self) -> bool {
        self.board.pages().all(|page| page.done.load(Relaxed) != 0)
    }

    /// Completions after the end: as long as they grow, the device works.
    pub fn drained(&self) -> u64 {
        self.board.pages().map(|page| page.drained.load(Relaxed)).sum()
    }

    /// Ends clients that wait for the start, and joins them.
    pub fn cancel(&mut self) {
        self.board.control().cancel();
        self.join();
    }

    /// Waits for threads and processes that are done. Call only when all are, or about to be.
    pub fn join(&mut self) {
        match &mut self.tasks {
            Tasks::Threads(threads) => {
                for thread in threads.drain(..) {
                    // A panic was a failure of that client, which its page tells.
                    let _ = thread.join();
                }
            }
            Tasks::Processes(pids) => {
                for pid in pids.drain(..).filter(|pid| *pid != 0) {
                    // SAFETY: waits for a child of ours.
                    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
                }
            }
        }
    }

    /// Leaves clients behind that hang in the kernel: threads keep their memory; processes are
    /// killed as soon as the kernel lets go of them.
    pub fn abandon(&mut self) {
        match &mut self.tasks {
            Tasks::Threads(threads) => threads.clear(),
            Tasks::Processes(pids) => {
                for pid in pids.drain(..).filter(|pid| *pid != 0) {
                    // SAFETY: a child of ours that was not waited for, so the id is still its own.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
            }
        }
    }
}

/// Forks a child that does `work` and ends. It dies with us and leaves Ctrl-C to us.
fn fork(work: impl FnOnce()) -> io::Result<libc::pid_t> {
    // SAFETY: the child allocates (which glibc and musl allow after fork) and calls the kernel; it
    // uses no lock of this program, runs no destructor of ours and leaves by _exit.
    unsafe {
        let parent = libc::getpid();
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::signal(libc::SIGINT, libc::SIG_IGN);
                libc::signal(libc::SIGTERM, libc::SIG_DFL);
                let orphan = libc::getppid() != parent;
                let worked =
                    !orphan && std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
                libc::_exit(if worked { 0 } else { 1 })
            }
            pid => Ok(pid),
        }
    }
}

/// Closes what a forked child inherited, so that it holds no file, device or filesystem of ours busy;
/// standard streams and what it needs stay.
fn close_all_but(keep: Option<RawFd>) {
    let close = |from: u32, to: u32| {
        if from <= to {
            // SAFETY: the child uses none of these. Before Linux 5.9 they stay open, which harms
            // only somebody who wants to unmount meanwhile.
            unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
        }
    };
    match keep {
        Some(keep) if keep > 2 => {
            close(3, keep as u32 - 1);
            close(keep as u32 + 1, u32::MAX);
        }
        _ => close(3, u32::MAX),
    }
}

/// A client from beginning to end: prepare, wait, work, report.
fn client_main(spec: &JobSpec, board: &Board, client: usize, cpu: fn() -> Cpu) {
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
    let stream = |what| Stream::new(*seed, &format!("{role} client {client} {what}"));
    let kinds = (job.pattern.reads(), job.pattern.writes());
    let buffers = Buffers::new(job.block_size.0, job.depth, kinds, &mut stream("data"))
        .map_err(failed(Stage::Allocate))?;
    let begin = Begin { spec, control, page, client, cpu };
    let open = || spec.target.open(job).map_err(failed(Stage::Open));
    match engine {
        EngineKind::Null => begin.work(Null::new(job.depth), buffers),
        EngineKind::Sync => begin.work(Sync::new(open()?), buffers),
        EngineKind::IoUring => {
            // SAFETY: the client takes both, and drops the buffers after the ring or never.
            let ring = unsafe { Ring::new(open()?, job.depth, &buffers, number) }
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
        let stream = |what| Stream::new(*seed, &format!("{role} client {} {what}", self.client));
        let offsets = Offsets::new(job.pattern, client, *blocks, stream("offsets"));
        let Some(times) = self.control.wait() else {
            return Ok(());
        };
        let TrialClock { start, .. } = times;
        let schedule = job.rate.map(|rate| Schedule::new(rate, client, start, stream("arrivals")));
        let kit = Kit {
            engine,
            clock: Monotonic,
            control: self.control,
            page: self.page,
            offsets,
            schedule,
            buffers,
            cpu: self.cpu,
        };
        Client::new(kit, job).work(times)
    }
}
