//! The controller's side: bringing an emulated device up, asking its server, taking it down. All that
//! is made on the host is announced in the change journal first.

use crate::{
    data::Place,
    filesystem::{FILE_NAME, REQUEST_MAX, SOURCE},
    protocol::{Answer, Begin, Order, Sight, Talk, Way},
    transport::Transport,
};
use device::{Profile, profile};
use host::{
    Changes, DeviceNumber, Host, LoopOptions, Setting, UblkDevice, UblkOptions, ublk_loadable,
};
use scheduler::SchedulerKind;
use serde::{Deserialize, Serialize};
use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use units::Bytes;

/// What is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The program, whose words [`Wanted::words`] make it a server.
    pub program: PathBuf,
    /// The words that make it call [`crate::serve`] with its standard input.
    pub words: Vec<String>,
    /// A profile's name, or its file.
    pub profile: String,
    /// Seed of what is random in the model.
    pub seed: u64,
    /// Length; the profile's capacity when not said.
    pub size: Option<Bytes>,
    /// Where the data go.
    pub data: DataPlace,
    /// How the kernel's requests reach the server; the best that this host has when not said.
    pub transport: Option<Transport>,
    /// Whether idle processors may halt now and then; before disks, when not said.
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

/// What cannot be, or went wrong.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The words make no sense: no such profile, a size that does not fit.
    #[error("{0}")]
    Usage(String),
    /// This host cannot, as it is.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The server would not, or ended.
    #[error("{0}")]
    Server(String),
}

type Result<T> = std::result::Result<T, EmulateError>;

/// An emulated block device. Taken down by ending the [`Changes`] that it was begun with.
#[derive(Debug)]
pub struct Emulation {
    /// `/dev/loop7`.
    pub node: PathBuf,
    /// Its number.
    pub number: DeviceNumber,
    /// What it is an emulation of.
    pub profile: Profile,
    /// Its length.
    pub size: Bytes,
    /// What tells it from other devices, for the guards: a loop device's file, below the server's mount
    /// point; a ublk device's size.
    pub confirmation: String,
    /// How requests reach the server.
    pub transport: Transport,
    /// ublk would have been taken, were its module loaded.
    ublk_loadable: bool,
    /// Commands that the device has at once: the model's queue, as far as the transport carries it.
    pub depth: u32,
    /// The model's own queue.
    pub model_depth: u32,
    /// The server wakes ahead of each event and spins for the rest.
    pub spins: bool,
    /// The server's process.
    pub server: u32,
    talk: Talk,
}

/// The kernel's own write-back throttling of a device with a head, µs.
const WBT_ROTATING_US: &str = "75000";

/// How long a server may take to build its model and mount.
const PATIENCE: Duration = Duration::from_secs(60);

/// The length that a device gets: what was asked for, in whole 4 KiB blocks, or the profile's
/// capacity.
pub fn size_of(profile: &Profile, capacity: Bytes, asked: Option<Bytes>) -> Result<Bytes> {
    let whole = |size: Bytes| Bytes(size.0 / 4096 * 4096);
    match asked {
        None => Ok(whole(capacity)),
        Some(size) if size > capacity => Err(EmulateError::Usage(format!(
            "{} has {capacity}, and {size} were asked for: a model has no times for what lies beyond \
             its end",
            profile.name
        ))),
        Some(size) if whole(size) == Bytes::ZERO => {
            Err(EmulateError::Usage(format!("a device of {size} is none: take 4 KiB or more")))
        }
        Some(size) => Ok(whole(size)),
    }
}

impl Emulation {
    /// Brings a device up. On an error everything is taken down when `changes` ends.
    pub fn start(changes: &mut Changes, wanted: &Wanted) -> Result<Emulation> {
        let transport = Transport::choose(wanted.transport)?;
        let usage = |error: &dyn std::fmt::Display| EmulateError::Usage(error.to_string());
        let profile = profile::load(&wanted.profile).map_err(|error| usage(&error))?;
        let model = profile.build(wanted.seed).map_err(|error| usage(&error))?;
        let (model_depth, capacity) = (model.queue_depth(), model.capacity().bytes());
        drop(model);
        let size = size_of(&profile, capacity, wanted.size)?;
        let place = place(changes, &wanted.data, size)?;
        let depth = transport.tags(model_depth);
        let (mut talk, server) = begin_server(wanted)?;
        let name = format!("server of emulated {}", profile.name);
        let options = UblkOptions {
            tags: depth,
            size,
            request_max: REQUEST_MAX,
            rotational: profile.rotates(),
        };
        let laid = match transport {
            Transport::Ublk => Laid::Ublk(changes.add_ublk(server, &name, options)?),
            Transport::FuseUring | Transport::Fuse => {
                let beside = changes.journal().parent().unwrap_or(Path::new("/")).to_owned();
                let folder = changes.scratch_folder(&beside)?;
                changes.started_server(server, &name, &folder, SOURCE)?;
                Laid::Fuse { point: folder.path, over_uring: transport == Transport::FuseUring }
            }
        };
        let begin = Begin {
            profile: wanted.profile.clone(),
            seed: wanted.seed,
            size,
            place,
            way: laid.way(depth),
            pauses: wanted.pauses.unwrap_or(profile.rotates()),
        };
        let begin = Order::Begin(begin);
        let begun = match transport {
            Transport::FuseUring => changes.with_fuse_uring(|_| ask(&mut talk, &begin))?,
            Transport::Ublk | Transport::Fuse => ask(&mut talk, &begin),
        };
        let spins = match begun? {
            Answer::Serving { spins } => spins,
            other => return Err(unexpected(&other)),
        };
        let (node, number, confirmation) = laid.finish(changes, size)?;
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
            talk,
        };
        emulation.dress(changes)?;
        emulation.forget()?;
        Ok(emulation)
    }

    /// Gives the queue what a device of this kind would have, and does not have yet.
    fn dress(&self, changes: &mut Changes) -> Result<()> {
        if self.transport != Transport::Ublk {
            let rotates = self.profile.rotates();
            changes.set(self.number, &Setting::Rotational, if rotates { "1" } else { "0" })?;
            // One request is then one command at the model: FUSE would split a larger one.
            let most = (REQUEST_MAX.0 / 1024).to_string();
            changes.set(self.number, &Setting::MaxSectorsKb, &most)?;
            if rotates {
                // Some kernels are built without write-back throttling.
                let _ = changes.set(self.number, &Setting::WbtLatUsec, WBT_ROTATING_US);
            }
            self.use_own_tags(changes)?;
        }
        self.begin_scheduler(changes)
    }

    /// Makes the device use as many tags as it has from the model, whatever scheduler comes after: a
    /// loop device has more, and an earlier `nr_requests` may have left it with fewer.
    ///
    /// Without a scheduler, nr_requests is the number of tags in use, and a scheduler chosen later
    /// leaves that as it is.
    pub fn use_own_tags(&self, changes: &mut Changes) -> Result<()> {
        changes.set(self.number, &Setting::Scheduler, SchedulerKind::None.name())?;
        changes.set(self.number, &Setting::NrRequests, &self.depth.to_string())?;
        Ok(())
    }

    /// The scheduler that the kernel gives a device like this one: loop devices begin without.
    fn begin_scheduler(&self, changes: &mut Changes) -> Result<()> {
        let scheduler = default_scheduler(self.model_depth);
        match changes.set(self.number, &Setting::Scheduler, scheduler.name()) {
            Ok(_) if scheduler != SchedulerKind::None => {
                // The kernel goes by all tags of a loop device; a disk has those that are in use.
                let default = default_nr_requests(self.depth).to_string();
                changes.set(self.number, &Setting::NrRequests, &default)?;
                Ok(())
            }
            // Where mq-deadline is not built in, none is what a disk would get, too.
            Err(host::Error::Refused(_)) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What the server saw since it was last told to forget.
    pub fn look(&mut self) -> Result<Sight> {
        match ask(&mut self.talk, &Order::Look)? {
            Answer::Seen(sight) => Ok(*sight),
            other => Err(unexpected(&other)),
        }
    }

    /// Counts from zero again.
    pub fn forget(&mut self) -> Result<()> {
        self.order(&Order::Forget)
    }

    /// A model as new: what was in its caches is nothing to the next trial. Data stay.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        self.order(&Order::Reset { seed })
    }

    /// Answers at once (for laying out), or when the model says.
    pub fn bypass(&mut self, on: bool) -> Result<()> {
        self.order(&Order::Bypass { on })
    }

    fn order(&mut self, order: &Order) -> Result<()> {
        match ask(&mut self.talk, order)? {
            Answer::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// How the device is reached, and what that means, in a sentence.
    pub fn way(&self) -> String {
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

/// What was made on the host for a server, before it begins.
enum Laid {
    /// The folder on which it mounts.
    Fuse {
        /// Where that is.
        point: PathBuf,
        /// Requests come over io_uring.
        over_uring: bool,
    },
    /// The device whose requests it answers.
    Ublk(UblkDevice),
}

impl Laid {
    /// What the server is told of it.
    fn way(&self, tags: u32) -> Way {
        match self {
            Laid::Fuse { point, over_uring: false } => Way::Fuse { point: point.clone() },
            Laid::Fuse { point, over_uring: true } => Way::FuseUring { point: point.clone(), tags },
            Laid::Ublk(device) => Way::Ublk { index: device.index, tags, encoded: device.encoded },
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
            Laid::Fuse { point, .. } => {
                let options = LoopOptions { added: true, ..LoopOptions::default() };
                let attached = changes.attach(&point.join(FILE_NAME), options)?;
                let file = attached.file.to_string_lossy().into_owned();
                Ok((attached.node, attached.number, file))
            }
            Laid::Ublk(device) => {
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

fn place(changes: &mut Changes, data: &DataPlace, size: Bytes) -> Result<Place> {
    Ok(match data {
        DataPlace::Memory => Place::Memory,
        DataPlace::Scratch(folder) => Place::File(changes.sparse_file(folder, size)?.path),
        DataPlace::File(path) => {
            users_file(path, size)?;
            Place::File(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
        }
    })
}

/// The user's own file: made if it is not there; what is in it is the device's content.
fn users_file(path: &Path, size: Bytes) -> Result<()> {
    let wrong = |why: String| EmulateError::Usage(format!("--data {}: {why}", path.display()));
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| wrong(error.to_string()))?;
    let meta = file.metadata().map_err(|error| wrong(error.to_string()))?;
    if !meta.is_file() {
        return Err(wrong("it is no regular file; a folder gets a scratch file in it".to_owned()));
    }
    match meta.len() {
        0 => file.set_len(size.0).map_err(|error| {
            wrong(format!(
                "cannot make it {size} long: {error}; its filesystem may have no files that large"
            ))
        }),
        length if length == size.0 => Ok(()),
        length => Err(wrong(format!(
            "it is {} long and the device would be {size}: give --size {0}, or another file",
            Bytes(length)
        ))),
    }
}

/// Starts a server, which serves nothing before it is told to begin, and ends with us until then.
fn begin_server(wanted: &Wanted) -> Result<(Talk, u32)> {
    let cannot = |error: io::Error| EmulateError::Server(format!("cannot start a server: {error}"));
    let (ours, its) = UnixStream::pair().map_err(cannot)?;
    ours.set_read_timeout(Some(PATIENCE)).map_err(cannot)?;
    // A group of its own: a Ctrl-C at the terminal is for us, and we take it down in order.
    let child = Command::new(&wanted.program)
        .args(&wanted.words)
        .stdin(OwnedFd::from(its))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let pid = child.id();
    reap(child);
    Ok((Talk::over(ours).map_err(cannot)?, pid))
}

/// Lets the server's end be noticed, so that no zombie is left while we go on.
fn reap(mut child: std::process::Child) {
    // Without a thread it is reaped when we end.
    let _ = std::thread::Builder::new().name("reaper".to_owned()).spawn(move || child.wait());
}

fn ask(talk: &mut Talk, order: &Order) -> Result<Answer> {
    let gone = |why: String| {
        EmulateError::Server(format!(
            "the server of the emulated device {why}: was it killed? (`spindle undo` clears what is \
             left of the device)"
        ))
    };
    talk.say(order).map_err(|error| gone(format!("does not listen ({error})")))?;
    match talk.hear() {
        Ok(Some(Answer::Refused { why })) => Err(EmulateError::Server(why)),
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(gone("has ended".to_owned())),
        Err(error) => Err(gone(format!("does not answer ({error})"))),
    }
}

fn unexpected(answer: &Answer) -> EmulateError {
    EmulateError::Server(format!("the server gave an answer to another question: {answer:?}"))
}
