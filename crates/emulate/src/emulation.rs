//! The controller's side: bringing an emulated device up, asking its server, taking it down. All that
//! is made on the host is announced in the change journal first.

use crate::{
    data::Storage,
    error::{DataFileError, EmulateError, Lost},
    filesystem::{FILE_NAME, MAX_REQUEST, SOURCE},
    protocol::{Begin, Command, Connection, Endpoint, Reply, ServerStats},
    transport::Transport,
};
use device::{Profile, profile};
use host::{
    Changes, DeviceNumber, Host, LoopOptions, Setting, UblkDevice, UblkOptions, ublk_loadable,
};
use scheduler::SchedulerKind;
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::ErrorKind,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use units::Bytes;

/// A device to emulate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The program that is started as the server.
    pub program: PathBuf,
    /// The arguments with which it calls [`crate::serve`] on its standard input.
    pub arguments: Vec<String>,
    /// A profile's name, or its file.
    pub profile: String,
    /// Seed of what is random in the model.
    pub seed: u64,
    /// Length; by default the profile's capacity.
    pub size: Option<Bytes>,
    /// Where the data go.
    pub data: DataPlace,
    /// How the kernel's requests reach the server; by default the best transport this host has.
    pub transport: Option<Transport>,
    /// Whether idle processors may halt now and then; by default for disks only.
    pub pauses: Option<bool>,
}

/// Where an emulated device's data go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataPlace {
    /// Into memory; gone with the device.
    Memory,
    /// Into a sparse scratch file in this folder, removed with the device.
    Scratch(PathBuf),
    /// Into this file, which is the user's: made if it is not there, and kept.
    File(PathBuf),
}

type Result<T> = std::result::Result<T, EmulateError>;

/// An emulated block device. Ending the [`Changes`] that it was started with takes it down.
#[derive(Debug)]
pub struct Emulation {
    /// `/dev/loop7`.
    pub node: PathBuf,
    /// Its number.
    pub number: DeviceNumber,
    /// The emulated device.
    pub profile: Profile,
    /// Its length.
    pub size: Bytes,
    /// What the guards confirm it by: a loop device's file, below the server's mount point; a ublk
    /// device's size.
    pub confirmation: String,
    /// How requests reach the server.
    pub transport: Transport,
    /// ublk would have been used if its module were loaded.
    ublk_loadable: bool,
    /// How many commands the device takes at once: the model's queue depth, limited by the transport.
    pub depth: u32,
    /// The model's queue depth.
    pub model_depth: u32,
    /// The pacing thread wakes ahead of each event and spins until it.
    pub spins: bool,
    /// The server's process.
    pub server: u32,
    connection: Connection,
    /// [`Emulation::stats_within`] has asked, and has no answer yet.
    stats_asked: bool,
}

/// The kernel's default wbt_lat_usec of rotational devices. Documented: sysfs-block.
const WBT_ROTATIONAL_US: &str = "75000";

/// How long a server may take to build its model and mount.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// The length of a device: the requested size in whole 4 KiB blocks, or the profile's capacity.
pub fn size_of(profile: &Profile, capacity: Bytes, asked: Option<Bytes>) -> Result<Bytes> {
    let whole = |size: Bytes| Bytes(size.0 / 4096 * 4096);
    match asked {
        None => Ok(whole(capacity)),
        Some(asked) if asked > capacity => {
            Err(EmulateError::TooLarge { profile: profile.name.clone(), capacity, asked })
        }
        Some(asked) if whole(asked) == Bytes::ZERO => Err(EmulateError::TooSmall { asked }),
        Some(size) => Ok(whole(size)),
    }
}

impl Emulation {
    /// Brings a device up. On an error everything is taken down when `changes` ends.
    pub fn start(changes: &mut Changes, wanted: &Wanted) -> Result<Emulation> {
        let transport = Transport::choose(wanted.transport)?;
        let profile = profile::load(&wanted.profile)?;
        let model = profile.build(wanted.seed)?;
        let (model_depth, capacity) = (model.queue_depth(), model.capacity().bytes());
        drop(model);
        let size = size_of(&profile, capacity, wanted.size)?;
        let place = place(changes, &wanted.data, size)?;
        let depth = transport.tags(model_depth);
        let (mut connection, server) = begin_server(wanted)?;
        let name = format!("server of emulated {}", profile.name);
        let options = UblkOptions {
            tags: depth,
            size,
            request_max: MAX_REQUEST,
            rotational: profile.rotates(),
        };
        let prepared = match transport {
            Transport::Ublk => Prepared::Ublk(changes.add_ublk(server, &name, options)?),
            Transport::FuseUring | Transport::Fuse => {
                let folder = changes.mount_point()?;
                changes.started_server(server, &name, &folder, SOURCE)?;
                Prepared::Fuse { point: folder.path, over_uring: transport == Transport::FuseUring }
            }
        };
        let begin = Begin {
            profile: wanted.profile.clone(),
            seed: wanted.seed,
            size,
            place,
            endpoint: prepared.endpoint(depth),
            pauses: wanted.pauses.unwrap_or(profile.rotates()),
        };
        let begin = Command::Begin(begin);
        let begun = match transport {
            Transport::FuseUring => changes.with_fuse_uring(|_| ask(&mut connection, &begin))?,
            Transport::Ublk | Transport::Fuse => ask(&mut connection, &begin),
        };
        let spins = match begun? {
            Reply::Serving { spins } => spins,
            other => return Err(unexpected(&other)),
        };
        let (node, number, confirmation) = prepared.finish(changes, size)?;
        let ublk_loadable = wanted.transport.is_none()
            && transport != Transport::Ublk
            && ublk_loadable(&Host::here());
        let mut emulation = Emulation {
            node,
            number,
            profile,
            size,
            confirmation,
            transport,
            ublk_loadable,
            depth,
            model_depth,
            spins,
            server,
            connection,
            stats_asked: false,
        };
        emulation.configure_queue(changes)?;
        emulation.reset_stats()?;
        Ok(emulation)
    }

    /// Sets the queue as the kernel would for a device of this kind.
    fn configure_queue(&self, changes: &mut Changes) -> Result<()> {
        if self.transport != Transport::Ublk {
            let rotates = self.profile.rotates();
            changes.set(self.number, &Setting::Rotational, if rotates { "1" } else { "0" })?;
            // FUSE would split a larger request into several commands of the model.
            let max = (MAX_REQUEST.0 / 1024).to_string();
            changes.set(self.number, &Setting::MaxSectorsKb, &max)?;
            if rotates {
                // Some kernels are built without write-back throttling.
                let _ = changes.set(self.number, &Setting::WbtLatUsec, WBT_ROTATIONAL_US);
            }
            self.use_own_tags(changes)?;
        }
        self.set_default_scheduler(changes)
    }

    /// Makes the device use as many tags as the model has, under any scheduler: a loop device has more,
    /// and an earlier `nr_requests` may have left it with fewer.
    ///
    /// Without a scheduler, nr_requests is the number of tags in use, which a scheduler that is set
    /// afterwards does not change.
    pub fn use_own_tags(&self, changes: &mut Changes) -> Result<()> {
        changes.set(self.number, &Setting::Scheduler, SchedulerKind::None.name())?;
        changes.set(self.number, &Setting::NrRequests, &self.depth.to_string())?;
        Ok(())
    }

    /// Sets the scheduler that the kernel gives a device like this one: loop devices start without one.
    fn set_default_scheduler(&self, changes: &mut Changes) -> Result<()> {
        let scheduler = default_scheduler(self.model_depth);
        match changes.set(self.number, &Setting::Scheduler, scheduler.name()) {
            Ok(_) if scheduler != SchedulerKind::None => {
                // The kernel's default counts all tags of a loop device; a disk's counts those in use.
                let default = default_nr_requests(self.depth).to_string();
                changes.set(self.number, &Setting::NrRequests, &default)?;
                Ok(())
            }
            // Without mq-deadline in the kernel, a disk would have none, too.
            Err(host::Error::Refused(_)) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What the server counted since its counters were reset.
    pub fn stats(&mut self) -> Result<ServerStats> {
        match ask(&mut self.connection, &Command::Stats)? {
            Reply::Stats(stats) => Ok(*stats),
            other => Err(unexpected(&other)),
        }
    }

    /// The same for who only looks on: `None` when the server has not answered for `patience`, which
    /// one that is stopped does not. The next call goes on waiting for the same answer; until it is
    /// there, no other command may be given.
    pub fn stats_within(&mut self, patience: Duration) -> Result<Option<ServerStats>> {
        if !self.stats_asked {
            send(&mut self.connection, &Command::Stats)?;
            self.stats_asked = true;
        }
        let reply = receive_within(&mut self.connection, patience)?;
        self.stats_asked = reply.is_none();
        match reply {
            None => Ok(None),
            Some(Reply::Stats(stats)) => Ok(Some(*stats)),
            Some(other) => Err(unexpected(&other)),
        }
    }

    /// Resets the counters.
    pub fn reset_stats(&mut self) -> Result<()> {
        self.command(&Command::ResetStats)
    }

    /// Replaces the model by a new one, with cold caches. Data stay.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        self.command(&Command::Reset { seed })
    }

    /// Whether requests complete at once (for laying out data), or when the model says.
    pub fn bypass(&mut self, on: bool) -> Result<()> {
        self.command(&Command::Bypass { on })
    }

    /// From now on the device can lose its power: it keeps what it would lose.
    pub fn let_power_fail(&mut self) -> Result<()> {
        self.command(&Command::LetPowerFail)
    }

    /// Its power fails: what was written since the last flush is gone, and so is what is written from now on, though the
    /// device goes on saying that it was.
    pub fn fail_power(&mut self) -> Result<()> {
        self.command(&Command::FailPower)
    }

    /// Its power is back. What the kernel still has of it in memory is as before the failure.
    pub fn restore_power(&mut self) -> Result<()> {
        self.command(&Command::RestorePower)
    }

    fn command(&mut self, command: &Command) -> Result<()> {
        match ask(&mut self.connection, command)? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// The transport and what it implies, in a sentence.
    pub fn describe_transport(&self) -> String {
        let name = &self.profile.name;
        let tags = self.depth;
        if self.transport == Transport::Ublk {
            return format!(
                "{name} over ublk, one hardware queue of {tags} tags, flushes and FUA as they are sent"
            );
        }
        let hint = match self.ublk_loadable {
            true => " (ublk has neither limit, and its module is not loaded: modprobe ublk_drv)",
            false => "",
        };
        format!(
            "{name} over {} with direct I/O, {tags} tags in use, FUA sent as a write and a flush{hint}",
            self.transport.title()
        )
    }
}

/// What was prepared on the host for a server, before it serves.
enum Prepared {
    /// The folder on which it mounts.
    Fuse {
        /// Where that is.
        point: PathBuf,
        /// RequestCounts come over io_uring.
        over_uring: bool,
    },
    /// The device whose requests it answers.
    Ublk(UblkDevice),
}

impl Prepared {
    /// The server's endpoint.
    fn endpoint(&self, tags: u32) -> Endpoint {
        match self {
            Prepared::Fuse { point, over_uring: false } => Endpoint::Fuse { point: point.clone() },
            Prepared::Fuse { point, over_uring: true } => {
                Endpoint::FuseUring { point: point.clone(), tags }
            }
            Prepared::Ublk(device) => {
                Endpoint::Ublk { index: device.index, tags, encoded: device.encoded }
            }
        }
    }

    /// Makes the block device of a server that serves; gives its node, its number, and what confirms
    /// it to the guards.
    fn finish(
        &self,
        changes: &mut Changes,
        size: Bytes,
    ) -> Result<(PathBuf, DeviceNumber, String)> {
        match self {
            Prepared::Fuse { point, .. } => {
                let options = LoopOptions { added: true, ..LoopOptions::default() };
                let attached = changes.attach(&point.join(FILE_NAME), options)?;
                let file = attached.file.to_string_lossy().into_owned();
                Ok((attached.node, attached.number, file))
            }
            Prepared::Ublk(device) => {
                let (node, number) = changes.start_ublk(device)?;
                Ok((node, number, size.0.to_string()))
            }
        }
    }
}

/// What the kernel would choose for a device of so many tags: one with more than SCSI and SATA devices
/// have several hardware queues.
pub fn default_scheduler(model_depth: u32) -> SchedulerKind {
    if model_depth > 256 { SchedulerKind::None } else { SchedulerKind::MqDeadline }
}

/// The `nr_requests` that a scheduler begins with on a device of so many tags: twice them, or twice 128
/// (BLKDEV_DEFAULT_RQ) where it has more.
pub fn default_nr_requests(depth: u32) -> u32 {
    2 * depth.min(128)
}

fn place(changes: &mut Changes, data: &DataPlace, size: Bytes) -> Result<Storage> {
    Ok(match data {
        DataPlace::Memory => Storage::Memory,
        DataPlace::Scratch(folder) => {
            let made = changes.sparse_file(folder, size)?;
            let held = made.held.try_clone().map(File::from);
            held.and_then(|held| Storage::of(made.path.clone(), &held)).map_err(|error| {
                EmulateError::DataFile { path: made.path, source: DataFileError::Open(error) }
            })?
        }
        DataPlace::File(path) => users_file(path, size)
            .map_err(|source| EmulateError::DataFile { path: path.clone(), source })?,
    })
}

/// The user's own file: created if missing; its content is the device's.
fn users_file(path: &Path, size: Bytes) -> std::result::Result<Storage, DataFileError> {
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(DataFileError::NotAFile);
    }
    match meta.len() {
        0 => file.set_len(size.0).map_err(|source| DataFileError::Extend { size, source })?,
        length if length == size.0 => {}
        length => return Err(DataFileError::Length { length: Bytes(length), size }),
    }
    Ok(Storage::of(std::path::absolute(path)?, &file)?)
}

/// Starts a server process, which waits for [`Command::Begin`] and until then ends with this process.
fn begin_server(wanted: &Wanted) -> Result<(Connection, u32)> {
    let (ours, its) = UnixStream::pair().map_err(EmulateError::Start)?;
    let child = host::own_group_command(&wanted.program)
        .args(&wanted.arguments)
        .stdin(OwnedFd::from(its))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(EmulateError::Start)?;
    let pid = child.id();
    reap(child);
    Ok((Connection::new(ours).map_err(EmulateError::Start)?, pid))
}

/// Waits for the server's end in the background, so that it leaves no zombie.
fn reap(mut child: std::process::Child) {
    // Without a thread it is reaped when this process ends.
    let _ = std::thread::Builder::new().name("reaper".to_owned()).spawn(move || child.wait());
}

fn ask(connection: &mut Connection, command: &Command) -> Result<Reply> {
    send(connection, command)?;
    let silent = || Lost::Receive(ErrorKind::TimedOut.into());
    receive_within(connection, REPLY_TIMEOUT)?.ok_or_else(|| EmulateError::Lost { lost: silent() })
}

fn send(connection: &mut Connection, command: &Command) -> Result<()> {
    connection.send(command).map_err(|error| EmulateError::Lost { lost: Lost::Send(error) })
}

/// The reply; `None` when there is none within `patience`.
fn receive_within(connection: &mut Connection, patience: Duration) -> Result<Option<Reply>> {
    let lost = |lost| EmulateError::Lost { lost };
    match connection.receive_within(patience) {
        Ok(Some(Reply::Failed { error })) => Err(error.into()),
        Ok(Some(reply)) => Ok(Some(reply)),
        Ok(None) => Err(lost(Lost::Ended)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(lost(Lost::Receive(error))),
    }
}

fn unexpected(reply: &Reply) -> EmulateError {
    EmulateError::Unexpected { reply: format!("{reply:?}") }
}
