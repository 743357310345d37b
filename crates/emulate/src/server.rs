//! The server: a process of its own that holds a device's data and model and answers the kernel.
//!
//! It is a separate process because the process that uses the device may be killed while the kernel waits
//! for an answer: its threads end only after the answer, which must therefore come from another process.
//! For the same reason the server never opens anything on its own filesystem.

use crate::{
    clock,
    data::{Data, Storage},
    filesystem::{self, Buffers, FuseReply, OneFile, Rest},
    fuse::Entries,
    mailbox::{Answer, Mailbox, Message},
    pacer::{Deliver, Pacer, Waits},
    protocol::{Begin, Command, Connection, Endpoint, Reply, ServerStats},
    queue::Queue,
    server_error::{Resource, ServerError},
    softirq::Softirqs,
    ublk::Tags,
};
use device::{Device, Profile, profile};
use fuser::{Session, SessionACL};
use std::{
    fs::File,
    io,
    num::NonZeroUsize,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    sync::Arc,
    thread,
};
use units::Nanos;

/// The verb with which the program `spindle` is a server.
pub const SERVER_VERB: &str = "emulate-server";

/// Threads that read requests. A single one keeps the order in which the kernel sent them.
const READERS: usize = 1;

/// Serves one device until its filesystem is unmounted, or its ublk device stopped. `control` is the
/// controller's end.
pub fn serve(control: UnixStream) -> io::Result<()> {
    let mut connection = Connection::new(control)?;
    let Some(Command::Begin(begin)) = connection.receive()? else { return Ok(()) };
    clock::set_io_flusher();
    let served = match Served::of(&begin) {
        Ok(served) => served,
        Err(error) => return connection.send(&Reply::Failed { error }),
    };
    match begin.endpoint {
        Endpoint::Fuse { point } => match served.through_fuse(&point) {
            Ok((state, session)) => state.serve(connection, |_| session.run()),
            Err(error) => connection.send(&Reply::Failed { error }),
        },
        Endpoint::FuseUring { point, tags } => match served.through_fuse_uring(&point, tags) {
            Ok((state, queue)) => {
                let data = Arc::clone(&state.data);
                state.serve(connection, |pacer| queue.run(&pacer, &data))
            }
            Err(error) => connection.send(&Reply::Failed { error }),
        },
        Endpoint::Ublk { index, tags, encoded } => {
            match served.through_ublk(index, tags, encoded) {
                Ok((state, queue)) => {
                    let data = Arc::clone(&state.data);
                    state.serve(connection, |pacer| queue.run(&pacer, &data))
                }
                Err(error) => connection.send(&Reply::Failed { error }),
            }
        }
    }
}

/// What is served, through any transport.
struct Served {
    profile: Profile,
    device: Box<dyn Device>,
    data: Arc<Data>,
    pauses: bool,
}

/// What the controller asks about and changes; `T` identifies a request to the transport.
struct State<T: Send + 'static> {
    profile: Profile,
    data: Arc<Data>,
    pacer: Arc<Pacer<T>>,
}

impl Served {
    fn of(begin: &Begin) -> Result<Served, ServerError> {
        let profile = profile::load(&begin.profile).map_err(ServerError::model)?;
        let device = profile.build(begin.seed).map_err(ServerError::model)?;
        let data = Data::open(&begin.place, begin.size).map_err(|error| {
            let what = match &begin.place {
                Storage::Memory => Resource::Memory,
                Storage::File { path, .. } => Resource::DataFile { path: path.clone() },
            };
            what.failed(error)
        })?;
        Ok(Served { profile, device, data: Arc::new(data), pauses: begin.pauses })
    }

    /// With a pacer that has its own thread, or is run by the queue's.
    fn paced<T: Send + 'static>(
        self,
        own_thread: bool,
        deliver: Deliver<T>,
    ) -> Result<State<T>, ServerError> {
        let refused = |error| Resource::Pacer.failed(error);
        let Served { profile, device, data, pauses } = self;
        let waits = Waits { spins: may_spin(), pauses };
        let mut pacer = Pacer::new(device, waits, deliver).map_err(refused)?;
        if own_thread {
            pacer.begin_thread().map_err(refused)?;
        }
        Ok(State { profile, data, pacer: Arc::new(pacer) })
    }

    fn through_fuse(
        self,
        point: &Path,
    ) -> Result<(State<FuseReply>, Session<OneFile>), ServerError> {
        let buffers = Arc::new(Buffers::default());
        let its = Arc::clone(&buffers);
        let softirqs = Softirqs::new().map_err(|error| Resource::Socket.failed(error))?;
        let deliver = Box::new(move |answer, inside| {
            its.answer(answer, inside);
            softirqs.run();
        });
        let state = self.paced(true, deliver)?;
        let (data, pacer) = (Arc::clone(&state.data), Arc::clone(&state.pacer));
        let file = OneFile { data, pacer, buffers };
        let session = Session::new(file, point, &filesystem::config(READERS))
            .map_err(|error| Resource::Fuse { point: point.to_owned() }.failed(error))?;
        Ok((state, session))
    }

    fn through_ublk(
        self,
        index: u32,
        tags: u32,
        encoded: bool,
    ) -> Result<(State<Answer>, Queue<Tags>), ServerError> {
        let refused = |error| Resource::UblkQueue { index }.failed(error);
        let (state, mailbox) = self.with_mailbox()?;
        let tags = Tags::open(index, tags, encoded).map_err(refused)?;
        let queue = Queue::open(tags, mailbox).map_err(refused)?;
        Ok((state, queue))
    }

    fn through_fuse_uring(
        self,
        point: &Path,
        tags: u32,
    ) -> Result<(State<Answer>, Queue<Entries>), ServerError> {
        let refused = |error| Resource::Fuse { point: point.to_owned() }.failed(error);
        let device = File::options().read(true).write(true).open("/dev/fuse").map_err(refused)?;
        let device = OwnedFd::from(device);
        filesystem::mount(point, device.as_fd()).map_err(refused)?;
        let same = || device.try_clone().map_err(refused);
        let config = filesystem::config(READERS);
        let rest = Session::from_fd(Rest, same()?, SessionACL::Owner, config).map_err(refused)?;
        let (state, mailbox) = self.with_mailbox()?;
        let entries = Entries::new(same()?, tags, state.data.size()).map_err(refused)?;
        let queue = Queue::open(entries, mailbox).map_err(refused)?;
        thread::Builder::new()
            .name("rest".to_owned())
            .spawn(move || rest.run())
            .map_err(refused)?;
        Ok((state, queue))
    }

    /// With a pacer that the queue's thread runs, which other threads reach through a mailbox.
    fn with_mailbox(self) -> Result<(State<Answer>, Arc<Mailbox>), ServerError> {
        let mailbox = Arc::new(Mailbox::new().map_err(|error| Resource::Eventfd.failed(error))?);
        let its = Arc::clone(&mailbox);
        let deliver = Box::new(move |answer: Answer, inside| {
            its.put(Message::Answer(answer.with_result(inside)))
        });
        Ok((self.paced(false, deliver)?, mailbox))
    }
}

/// Whether there is a processor to spare for spinning.
fn may_spin() -> bool {
    thread::available_parallelism().map_or(1, NonZeroUsize::get) > 1
}

impl<T: Send + 'static> State<T> {
    /// Serves, by `run`, and carries out commands meanwhile.
    fn serve(
        self,
        mut connection: Connection,
        run: impl FnOnce(Arc<Pacer<T>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let pacer = Arc::clone(&self.pacer);
        connection.send(&Reply::Serving { spins: may_spin() })?;
        thread::Builder::new().name("control".to_owned()).spawn(move || {
            // The server outlives its controller: it holds the device's data.
            let _ = self.handle_commands(connection);
        })?;
        // The threads that read requests take this one's scheduling.
        clock::set_realtime_with_children();
        run(pacer)
    }

    fn handle_commands(&self, mut connection: Connection) -> io::Result<()> {
        while let Some(command) = connection.receive()? {
            let reply = match command {
                Command::Begin(_) => Reply::Failed { error: ServerError::ServesAlready },
                Command::Stats => Reply::Stats(Box::new(self.stats())),
                Command::ResetStats => {
                    self.pacer.reset_stats();
                    Reply::Done
                }
                Command::Reset { seed } => match self.profile.build(seed) {
                    Ok(device) => {
                        self.pacer.reset(device);
                        Reply::Done
                    }
                    Err(error) => Reply::Failed { error: ServerError::model(error) },
                },
                Command::Bypass { on } => {
                    self.pacer.bypass(on);
                    Reply::Done
                }
                Command::LetPowerFail => {
                    self.data.let_power_fail();
                    Reply::Done
                }
                Command::FailPower => match self.data.fail_power() {
                    Ok(()) => Reply::Done,
                    Err(error) => Reply::Failed { error: ServerError::model(error) },
                },
                Command::RestorePower => {
                    self.data.restore_power();
                    Reply::Done
                }
            };
            connection.send(&reply)?;
        }
        Ok(())
    }

    fn stats(&self) -> ServerStats {
        let stats = self.pacer.stats();
        ServerStats {
            requests: stats.tally.requests,
            lateness: stats.tally.lateness(),
            outstanding: stats.outstanding,
            max_outstanding: stats.max_outstanding,
            busy: stats.view.busy,
            units: stats.view.units,
            cylinder: stats.view.cylinder,
            dirty: stats.view.dirty.bytes(),
            stored: self.data.stored(),
            spun: stats.tally.spun,
            spun_preempted: stats.tally.spun_preempted,
            processor: clock::processor_time(),
            real_time: stats.tally.scheduling == Some(clock::Scheduling::RealTime),
        }
    }
}

/// The share of its spinning time in which the pacing thread was preempted.
pub fn preempted_share(stats: &ServerStats) -> f64 {
    stats.spun_preempted.0 as f64 / (stats.spun.0.max(1)) as f64
}

/// The processor time that a server used between two reports, as a share of `span`.
pub fn processor_share(before: &ServerStats, after: &ServerStats, span: Nanos) -> f64 {
    after.processor.saturating_sub(before.processor).0 as f64 / (span.0.max(1)) as f64
}
