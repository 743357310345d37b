//! Things that were made on the host and must not stay: loop and ublk devices, mounts, scratch files
//! and folders, control groups, processes, instances of tracing, parameters of modules. What each is, and
//! how it is taken away again.

use crate::{
    DeviceNumber, FileId, Host, Outcome, Waiting, lasting_file,
    loop_ioctl::{self, node},
    mounts::mounts,
    parameter_value,
    process_identity::{end_process, is_zombie, process_runs, process_start},
    removal, server, trace_folder, ublk_removal,
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    io,
    os::fd::BorrowedFd,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// How long something busy is waited for: a process that was killed needs a moment to let go.
const PATIENCE: Duration = Duration::from_secs(3);

/// Something that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    /// A file was attached to a loop device.
    Loop {
        /// Which: 3 for `/dev/loop3`.
        index: u32,
        /// The file.
        file: PathBuf,
        /// What tells the file from another of its path.
        id: FileId,
        /// The device itself was made, too.
        #[serde(default)]
        added: bool,
    },
    /// A filesystem was mounted.
    Mount {
        /// Where.
        point: PathBuf,
        /// What, as in mountinfo.
        source: PathBuf,
    },
    /// A scratch file, whose name nobody else would give.
    File {
        /// Where.
        path: PathBuf,
    },
    /// A scratch folder, whose name nobody else would give.
    Folder {
        /// Where.
        path: PathBuf,
    },
    /// A control group.
    ControlGroup {
        /// Its folder.
        path: PathBuf,
    },
    /// A process that does not end with us.
    Process {
        /// Its number.
        pid: u32,
        /// When it began, in clock ticks since boot: numbers are handed out again.
        started_ticks: u64,
        /// What it is, for people.
        name: String,
    },
    /// A process that serves a filesystem, and ends once that is unmounted: while something stands on
    /// it, ending the process would lose what is not written yet.
    Server {
        /// Its number.
        pid: u32,
        /// When it began, in clock ticks since boot.
        started_ticks: u64,
        /// What it is, for people.
        name: String,
        /// Where its filesystem is mounted.
        point: PathBuf,
    },
    /// A ublk device and the process that answers its requests: which goes only once nobody uses the
    /// device.
    Ublk {
        /// Which: 3 for `/dev/ublkb3`.
        index: u32,
        /// What it was marked with, which tells it from another of its number.
        token: u64,
        /// The process's number.
        pid: u32,
        /// When that began, in clock ticks since boot.
        started_ticks: u64,
        /// What the process is, for people.
        name: String,
    },
    /// An instance of the kernel's tracing; it may be reached through a mount that nobody else has.
    TraceInstance {
        /// Its name, which nobody else would give.
        name: String,
    },
    /// A module's parameter was changed for a moment.
    Parameter {
        /// Its file.
        path: PathBuf,
        /// What it was.
        before: String,
        /// What it was set to.
        set: String,
    },
    /// A configuration file that makes settings last: a udev rule, a tuned profile.
    LastingFile {
        /// Where.
        path: PathBuf,
        /// What we wrote: another text is somebody else's.
        text: String,
    },
    /// A udev rule of ours was taken away, because a later one is in its place.
    RuleSetAside {
        /// Where it was.
        path: PathBuf,
        /// What it was.
        text: String,
    },
    /// tuned was made to use another profile.
    ActiveProfile {
        /// The profile that it used.
        before: String,
        /// The profile that it was made to use.
        set: String,
    },
    /// What takes settings back when nobody confirms them in time.
    Reversal(Waiting),
}

impl Made {
    /// "loop device /dev/loop3 on /tmp/x".
    pub fn title(&self) -> String {
        match self {
            Made::Loop { index, file, .. } => {
                format!("loop device {} on {}", node(*index).display(), file.display())
            }
            Made::Mount { point, source } => {
                format!("mount of {} on {}", source.display(), point.display())
            }
            Made::File { path } => format!("scratch file {}", path.display()),
            Made::Folder { path } => format!("scratch folder {}", path.display()),
            Made::ControlGroup { path } => format!("control group {}", path.display()),
            Made::Process { pid, name, .. } | Made::Server { pid, name, .. } => {
                format!("process {pid} ({name})")
            }
            Made::Ublk { index, pid, name, .. } => format!(
                "ublk device {} of process {pid} ({name})",
                ublk_removal::node(*index).display()
            ),
            Made::TraceInstance { name } => format!("tracing instance {name}"),
            Made::Parameter { path, before, set } => {
                format!("parameter {} ({set}, was {before})", path.display())
            }
            Made::LastingFile { path, .. } => format!("file {}", path.display()),
            Made::RuleSetAside { path, .. } => format!("earlier file {}", path.display()),
            Made::ActiveProfile { before, set } => format!("tuned profile {set} (was {before})"),
            Made::Reversal(waiting) => waiting.title(),
        }
    }

    /// Whether it outlives a restart of the machine.
    pub(crate) fn outlives_boot(&self) -> bool {
        matches!(
            self,
            Made::File { .. }
                | Made::Folder { .. }
                | Made::LastingFile { .. }
                | Made::RuleSetAside { .. }
                | Made::ActiveProfile { .. }
        )
    }

    /// Takes it away, if it is still what was made. `id` is what it was found to be after making; `held` is it,
    /// where this process made it and holds it open.
    pub(crate) fn unmake(
        &self,
        host: &Host,
        id: Option<FileId>,
        held: Option<BorrowedFd>,
    ) -> Outcome {
        match self {
            Made::Loop { index, id, file, added } => match detach_loop(host, *index, *id, file) {
                outcome if *added && outcome.is_right() => remove_loop(*index),
                outcome => outcome,
            },
            Made::Mount { point, source } => unmount(host, point, source),
            Made::File { path } => removal::remove_file(path, id, held),
            Made::Folder { path } => match mounted_below(host, path) {
                Some(point) => Outcome::failed(format!(
                    "{} is mounted in it: unmount that first (umount {0})",
                    point.display()
                )),
                None => removal::remove_folder(path, id, held),
            },
            Made::ControlGroup { path } => remove_group(path),
            Made::Process { pid, started_ticks, .. } => end_process(host, *pid, *started_ticks),
            Made::Server { pid, started_ticks, point, .. } => {
                end_server(host, *pid, *started_ticks, point)
            }
            Made::Ublk { index, token, pid, started_ticks, .. } => {
                let (index, token, pid) = (*index, *token, *pid);
                let started_ticks = *started_ticks;
                ublk_removal::unmake(host, ublk_removal::Known { index, token, pid, started_ticks })
            }
            Made::TraceInstance { name } => trace_folder::remove_instance(host, name),
            Made::Parameter { path, before, set } => parameter_value::put_back(path, before, set),
            Made::LastingFile { path, text } => lasting_file::remove_file(host, path, text),
            Made::RuleSetAside { path, text } => lasting_file::bring_back(host, path, text),
            Made::ActiveProfile { before, set } => lasting_file::restore_profile(host, before, set),
            Made::Reversal(waiting) => waiting.end(host),
        }
    }
}

fn detach_loop(host: &Host, index: u32, id: FileId, file: &Path) -> Outcome {
    let path = node(index);
    let device = match File::open(&path) {
        Ok(device) => device,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Outcome::AlreadyRight,
        Err(error) => return Outcome::failed(format!("cannot open {}: {error}", path.display())),
    };
    let attached = || match loop_ioctl::status(&device) {
        Ok(None) => Some(Outcome::AlreadyRight),
        Ok(Some(file)) => {
            let same = file.inode == id.inode && DeviceNumber::from_raw(file.device) == id.device;
            (!same).then(|| Outcome::refused("another file is attached to it now"))
        }
        Err(error) => Some(Outcome::failed(format!("cannot ask what is attached: {error}"))),
    };
    if let Some(outcome) = attached() {
        return outcome;
    }
    if let Err(error) = loop_ioctl::detach(&device) {
        return Outcome::failed(format!("cannot detach: {error}"));
    }
    // While we hold it open the kernel only promises, and lets go with the last close: until then
    // nobody else gets a device of this number, whose filesystem would be taken for one of ours.
    if let Err(outcome) = server::leave_dead_device(host, &device, index, file) {
        return outcome;
    }
    drop(device);
    let begun = Instant::now();
    loop {
        let gone = File::open(&path).is_ok_and(|device| {
            loop_ioctl::status(&device).is_ok_and(|file| {
                file.is_none_or(|file| {
                    file.inode != id.inode || DeviceNumber::from_raw(file.device) != id.device
                })
            })
        });
        match () {
            () if gone => return Outcome::Done,
            () if begun.elapsed() > PATIENCE => {
                return Outcome::failed(
                    "something still has it open (see lsof and findmnt); \
                     the kernel detaches it when that closes it",
                );
            }
            () => sleep(Duration::from_millis(10)),
        }
    }
}

/// Makes a detached device cease to be; those who look at new devices keep it open for a moment.
fn remove_loop(index: u32) -> Outcome {
    let begun = Instant::now();
    loop {
        match loop_ioctl::remove(index) {
            Ok(()) => return Outcome::Done,
            Err(error) if begun.elapsed() > PATIENCE => return Outcome::failed(error.to_string()),
            Err(_) => sleep(Duration::from_millis(10)),
        }
    }
}

fn unmount(host: &Host, point: &Path, source: &Path) -> Outcome {
    let mounted = || -> Result<bool, crate::Error> {
        let all = mounts(host)?;
        let on_top = all.iter().rfind(|mount| mount.point == point);
        Ok(on_top.is_some_and(|mount| Path::new(&mount.source) == source))
    };
    let begun = Instant::now();
    loop {
        match mounted() {
            Ok(true) => {}
            Ok(false) if begun.elapsed().is_zero() => return Outcome::AlreadyRight,
            Ok(false) => return Outcome::AlreadyRight,
            Err(error) => return Outcome::failed(error.to_string()),
        }
        match rustix::mount::unmount(point, rustix::mount::UnmountFlags::NOFOLLOW) {
            Ok(()) => return Outcome::Done,
            Err(rustix::io::Errno::BUSY) if begun.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(20));
            }
            Err(error) => {
                return Outcome::failed(format!(
                    "cannot unmount: {error}; see who is in it with: fuser -vm {}",
                    point.display()
                ));
            }
        }
    }
}

/// A mount point below a folder: its contents are not ours to delete.
fn mounted_below(host: &Host, folder: &Path) -> Option<PathBuf> {
    let all = mounts(host).ok()?;
    all.into_iter().map(|mount| mount.point).find(|point| point.starts_with(folder))
}

fn remove_group(path: &Path) -> Outcome {
    if !path.exists() {
        return Outcome::AlreadyRight;
    }
    let begun = Instant::now();
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Outcome::Done,
            Err(error) if begun.elapsed() > PATIENCE => {
                return Outcome::failed(format!("cannot remove: {error}"));
            }
            Err(_) => {
                // Processes in it, ours or their children, go back to the group above.
                if let Some(above) = path.parent() {
                    let members = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
                    for member in members.lines() {
                        let _gone_is_fine = fs::write(above.join("cgroup.procs"), member);
                    }
                }
                sleep(Duration::from_millis(10));
            }
        }
    }
}

/// When process `pid` of this machine began, in clock ticks since boot; `None` when it has ended.
/// Tells it from a later one of the same number.
pub fn process_began(pid: u32) -> Option<u64> {
    let host = Host::here();
    process_start(&host, pid).filter(|_| !is_zombie(&host, pid))
}

/// A server ends by itself when its filesystem is unmounted; one that does not is ended.
fn end_server(host: &Host, pid: u32, started_ticks: u64, point: &Path) -> Outcome {
    let alive = || process_runs(host, pid, started_ticks);
    let begun = Instant::now();
    while alive() {
        match mounts(host) {
            Ok(all) if all.iter().any(|mount| mount.point == point) => {
                return Outcome::failed(format!(
                    "what it serves is still mounted on {} and in use",
                    point.display()
                ));
            }
            Ok(_) if begun.elapsed() > PATIENCE => return end_process(host, pid, started_ticks),
            Ok(_) => sleep(Duration::from_millis(10)),
            Err(error) => return Outcome::failed(error.to_string()),
        }
    }
    match begun.elapsed() < Duration::from_millis(5) {
        true => Outcome::AlreadyRight,
        false => Outcome::Done,
    }
}
