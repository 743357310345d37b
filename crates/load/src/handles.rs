//! The clients of one job: started, awaited, joined. Each is a thread, or a process of its
//! own, which has an I/O context of its own, so that cfq and bfq tell it apart.

use crate::board::{Board, Page};
use crate::client_main::{JobSpec, client_main};
use crate::client_program::ClientProgram;
use crate::clock::{Clock, Monotonic};
use crate::cost::Cpu;
use crate::error::{Failure, LoadError, Stage};
use crate::process;
use crate::spec::LoadSpec;
use record::JobRole;
use std::{
    io,
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::Child,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread::JoinHandle,
};
use units::{Bytes, Nanos};
use workload::{ClientKind, Job};

/// A client's stack: it recurses nowhere and holds nothing large.
const STACK_BYTES: usize = 128 << 10;

/// How often to look for processes that died: a system call for each.
const LOOK_EVERY: Nanos = Nanos::from_millis(250);

/// A device that completes nothing for so long though it could hangs. Devices give up a request and
/// report an error after 30 s (the kernel's default for SCSI), so this is well above.
pub(crate) const HUNG_AFTER: Nanos = Nanos::from_secs(90);

/// The clients of one job.
pub(crate) struct ClientHandles {
    pub job: Job,
    /// Latency counts from the intended times, too.
    pub open: bool,
    /// A trace is replayed in the job's place.
    pub replays: bool,
    pub board: Arc<Board>,
    tasks: Tasks,
    pub path: PathBuf,
    /// When processes were last looked at.
    looked: Nanos,
    /// The first that died, and how.
    dead: Option<(usize, String)>,
}

enum Tasks {
    Threads(Vec<JoinHandle<()>>),
    /// None once waited for.
    Processes(Vec<Option<Child>>),
}

impl ClientHandles {
    /// Starts the clients; they prepare, then wait for the start.
    pub fn start(load: &LoadSpec, role: JobRole, job: &Job) -> Result<Self, LoadError> {
        let cannot = |client, error: io::Error| LoadError::Client {
            client,
            stage: Stage::Start,
            errno: error.raw_os_error().unwrap_or(libc::EAGAIN),
        };
        let board = Arc::new(Board::new(job.clients as usize).map_err(|error| cannot(0, error))?);
        let replay = load.replay.filter(|_| role == JobRole::Measured).cloned();
        let spec = Arc::new(JobSpec {
            role,
            job: job.clone(),
            target: load.target.opening().map_err(|error| cannot(0, error))?,
            blocks: load.target.size.0 / job.block_size.0,
            engine: load.engine,
            seed: load.seed,
            replay: replay.clone(),
        });
        let open = job.rate.is_some() || replay.as_ref().is_some_and(|it| it.is_open());
        let tasks = match job.client_kind {
            ClientKind::Threads => Tasks::Threads(Vec::new()),
            ClientKind::Processes => Tasks::Processes(Vec::new()),
        };
        let mut clients = ClientHandles {
            job: job.clone(),
            open,
            replays: replay.is_some(),
            board,
            tasks,
            path: load.target.path.clone(),
            looked: Nanos::ZERO,
            dead: None,
        };
        for client in 0..job.clients as usize {
            if let Err(error) = clients.spawn(client, &spec, load.client_program) {
                clients.cancel();
                return Err(cannot(client, error));
            }
        }
        Ok(clients)
    }

    fn spawn(
        &mut self,
        client: usize,
        spec: &Arc<JobSpec>,
        program: &ClientProgram,
    ) -> io::Result<()> {
        match &mut self.tasks {
            Tasks::Threads(threads) => {
                let (spec, board) = (Arc::clone(spec), Arc::clone(&self.board));
                let thread = std::thread::Builder::new()
                    .name(format!("{}-{client}", &spec.role.name()[..4]))
                    .stack_size(STACK_BYTES)
                    .spawn(move || client_main(&spec, &board, client, Cpu::of_thread))?;
                threads.push(thread);
            }
            Tasks::Processes(children) => {
                children.push(Some(process::spawn(program, spec, &self.board, client)?));
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
        let Tasks::Processes(children) = &mut self.tasks else {
            return;
        };
        let now = Monotonic.now();
        if now.saturating_sub(self.looked) < LOOK_EVERY {
            return;
        }
        self.looked = now;
        for (client, child) in children.iter_mut().enumerate() {
            let Some(Ok(Some(status))) = child.as_mut().map(Child::try_wait) else { continue };
            *child = None;
            if self.board.page(client).done.swap(1, Relaxed) == 0 {
                let how = match status.signal() {
                    Some(signal) => format!("signal {signal}"),
                    None => format!("exit code {}", status.code().unwrap_or_default()),
                };
                self.dead.get_or_insert((client, how));
            }
        }
    }

    /// Whether every client has ended.
    pub fn all_done(&self) -> bool {
        self.board.pages().all(|page| page.done.load(Relaxed) != 0)
    }

    /// Bytes that were read and written so far, by so many operations. Those of a trace differ in length.
    pub fn moved(&self, reads: u64, writes: u64) -> [Bytes; 2] {
        if !self.replays {
            return [reads, writes].map(|operations| self.job.block_size * operations);
        }
        [self.sum(|page| &page.bytes_read), self.sum(|page| &page.bytes_written)].map(Bytes)
    }

    /// Requests of a trace that began and have not ended, and those that have.
    pub fn replayed(&self) -> (u64, u64) {
        let finished = self.sum(|page| &page.finished);
        (self.sum(|page| &page.begun).saturating_sub(finished), finished)
    }

    /// When the last client ended its work.
    pub fn ended(&self) -> Nanos {
        Nanos(self.board.pages().map(|page| page.ended.load(Relaxed)).max().unwrap_or(0))
    }

    fn sum(&self, cell: fn(&Page) -> &AtomicU64) -> u64 {
        self.board.pages().map(|page| cell(page).load(Relaxed)).sum()
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
            Tasks::Processes(children) => {
                for mut child in children.drain(..).flatten() {
                    // How it ended was told by its page.
                    let _ = child.wait();
                }
            }
        }
    }

    /// Leaves clients behind that hang in the kernel: threads keep their memory; processes are
    /// killed as soon as the kernel lets go of them.
    pub fn abandon(&mut self) {
        match &mut self.tasks {
            Tasks::Threads(threads) => threads.clear(),
            Tasks::Processes(children) => {
                for mut child in children.drain(..).flatten() {
                    // One that has ended needs no signal.
                    let _ = child.kill();
                }
            }
        }
    }
}
