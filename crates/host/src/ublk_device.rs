//! ublk devices, whose requests a process of ours answers: added and started through the journal, and
//! taken away again.

use crate::{
    Changes, DeviceNumber, Error, Host, Made, Outcome, Result,
    error::io_error,
    exclusive::try_exclusively,
    made::{end_process, process_runs, process_start},
    mounts::mounts,
    scratch::random_bits,
    tree::names,
    ublk_control::{CONTROL, Control, UblkOptions},
};
use rustix::mount::{UnmountFlags, unmount};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// How many numbers are tried before it counts as an error.
const ATTEMPTS: u32 = 256;

/// How long others may take to close a device, and a server to end.
const PATIENCE: Duration = Duration::from_secs(3);

/// A ublk device that was added. It goes when its [`Changes`] end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UblkDevice {
    /// 3 for `/dev/ublkb3`, whose requests are had at `/dev/ublkc3`.
    pub index: u32,
    /// Whether the kernel wants commands that are numbered as ioctls are.
    pub encoded: bool,
    server: u32,
}

/// `/dev/ublkb3`, the block device.
pub(crate) fn node(index: u32) -> PathBuf {
    format!("/dev/ublkb{index}").into()
}

/// Whether the kernel knows a device of this number.
fn is_there(host: &Host, index: u32) -> bool {
    host.path(format!("/sys/class/ublk-char/ublkc{index}")).exists()
}

impl Changes {
    /// Adds a ublk device that process `server` (called `name` for people) is going to serve. The
    /// process must not have begun anything that outlives our end before this has returned.
    pub fn add_ublk(
        &mut self,
        server: u32,
        name: &str,
        options: UblkOptions,
    ) -> Result<UblkDevice> {
        let started_ticks = process_start(self.host(), server).unwrap_or_default();
        let mut control = Control::open().map_err(io_error("open", CONTROL))?;
        for index in 0..ATTEMPTS {
            if is_there(self.host(), index) {
                continue;
            }
            let token = random_bits().map_err(io_error("get random bits for", node(index)))?;
            let name = name.to_owned();
            let made = Made::Ublk { index, token, pid: server, started_ticks, name };
            let entry = self.announce(made)?;
            match control.add(index, token, options) {
                Ok(()) => {
                    let described = control.describe(index, options);
                    described.map_err(io_error("describe", node(index)))?;
                    return Ok(UblkDevice { index, encoded: control.encoded, server });
                }
                // Somebody else took the number first.
                Err(error) if error.raw_os_error() == Some(libc::EEXIST) => self.gone(entry)?,
                // The entry stays: the server is to be ended.
                Err(error) => return Err(io_error("add", node(index))(error)),
            }
        }
        Err(Error::Unsupported {
            what: "a ublk device".to_owned(),
            why: format!("numbers 0 to {} are all in use", ATTEMPTS - 1),
            next: "take some away (ublk list), or use --transport fuse".to_owned(),
        })
    }

    /// Makes its block device appear. Its server must have begun to wait for requests.
    pub fn start_ublk(&mut self, device: &UblkDevice) -> Result<(PathBuf, DeviceNumber)> {
        let node = node(device.index);
        let mut control = Control::open().map_err(io_error("open", CONTROL))?;
        control.start(device.index, device.server).map_err(io_error("start", &node))?;
        let begun = Instant::now();
        loop {
            match fs::metadata(&node) {
                Ok(meta) if meta.file_type().is_block_device() => {
                    return Ok((node, DeviceNumber::from_raw(meta.rdev())));
                }
                // Whoever makes nodes may take a moment.
                _ if begun.elapsed() < PATIENCE => sleep(Duration::from_millis(5)),
                Ok(_) => {
                    return Err(Error::WrongKind {
                        path: node,
                        found: "no block device".to_owned(),
                        needed: "a block device",
                    });
                }
                Err(error) => return Err(io_error("look at", node)(error)),
            }
        }
    }
}

/// What the journal knows of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub index: u32,
    pub token: u64,
    pub pid: u32,
    pub started_ticks: u64,
}

/// Takes a device away, and its server. While the server lives, that is refused where somebody uses the
/// device: the kernel would not ask.
pub(crate) fn unmake(host: &Host, known: Known) -> Outcome {
    let alive = || process_runs(host, known.pid, known.started_ticks);
    let mut found = Outcome::AlreadyRight;
    if is_there(host, known.index) {
        match take_away(host, known, &alive) {
            Ok(true) => found = Outcome::Done,
            // Another has its number now: ours is gone.
            Ok(false) => {}
            Err(outcome) => return outcome,
        }
    }
    match end_process(host, known.pid, known.started_ticks) {
        Outcome::AlreadyRight => found,
        other => other,
    }
}

fn take_away(
    host: &Host,
    known: Known,
    alive: &dyn Fn() -> bool,
) -> std::result::Result<bool, Outcome> {
    let cannot = |what: &str| {
        let node = node(known.index);
        let what = what.to_owned();
        move |error: io::Error| {
            Outcome::failed(format!("cannot {what} {}: {error}", node.display()))
        }
    };
    let mut control = Control::open().map_err(|error| {
        let why = format!("cannot open {CONTROL}: {error} (is ublk_drv still loaded?)");
        Outcome::failed(why)
    })?;
    match control.token(known.index) {
        Ok(token) if token == known.token => {}
        Ok(_) => return Ok(false),
        Err(_) if !is_there(host, known.index) => return Ok(false),
        Err(error) => return Err(cannot("ask about")(error)),
    }
    let held = match alive() {
        true => hold_alone(host, &node(known.index))?,
        false => None,
    };
    if !alive() {
        leave_dead(host, known.index)?;
    }
    control.stop(known.index).map_err(cannot("stop"))?;
    // Held until now, nobody could mount it between the look and the stop.
    drop(held);
    let begun = Instant::now();
    while alive() && begun.elapsed() < PATIENCE {
        sleep(Duration::from_millis(10));
    }
    let ended = end_process(host, known.pid, known.started_ticks);
    if matches!(ended, Outcome::Failed { .. }) {
        return Err(ended);
    }
    match control.delete(known.index, PATIENCE) {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == Some(libc::ETIME) => Err(Outcome::failed(
            "its data can no longer be reached, and something still has it open (see lsof and \
                 findmnt); the kernel frees its number when that closes it",
        )),
        Err(_) if !is_there(host, known.index) => Ok(true),
        Err(error) => Err(cannot("delete")(error)),
    }
}

/// Opens a device for ourselves alone: no filesystem, swap, array or volume is on it, in any
/// namespace, and none can be put on it while it is held. Who only has it open is waited for.
fn hold_alone(host: &Host, node: &Path) -> std::result::Result<Option<File>, Outcome> {
    let begun = Instant::now();
    loop {
        let users = match try_exclusively(node, false) {
            // It was never started, or the kernel has taken it away.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENXIO)) => {
                return Ok(None);
            }
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => mounted_from(host, node),
            Err(error) => {
                return Err(Outcome::failed(format!("cannot open {}: {error}", node.display())));
            }
            Ok(file) => match opened_by(host, node) {
                None => return Ok(Some(file)),
                Some(user) => user,
            },
        };
        if begun.elapsed() > PATIENCE {
            return Err(Outcome::failed(users));
        }
        sleep(Duration::from_millis(20));
    }
}

/// What a device that others hold is used for, and what to do.
fn mounted_from(host: &Host, node: &Path) -> String {
    let all = mounts(host).unwrap_or_default();
    match all.iter().find(|mount| mount.stands_on(node)) {
        Some(mount) => format!(
            "{} is mounted from it and its data would be lost: unmount it first (umount {0})",
            mount.point.display()
        ),
        None => format!(
            "a mount in another namespace, swap, an array or a volume uses it (see lsblk {}): end \
             that first",
            node.display()
        ),
    }
}

/// Another process that has the device or a partition of it open.
fn opened_by(host: &Host, node: &Path) -> Option<String> {
    let family = family(host, node);
    let ours = std::process::id();
    let mut pids = names(host.path("/proc")).into_iter().filter_map(|it| it.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let folder = host.path(format!("/proc/{pid}/fd"));
        names(&folder).iter().any(|fd| {
            fs::metadata(folder.join(fd)).is_ok_and(|it| {
                it.file_type().is_block_device()
                    && family.contains(&DeviceNumber::from_raw(it.rdev()))
            })
        })
    };
    let pid = pids.find(|pid| *pid != ours && has_it(pid))?;
    let name = host.text(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("process {pid} ({}) has it open: end that first", name.trim()))
}

/// The numbers of a device and its partitions.
fn family(host: &Host, node: &Path) -> Vec<DeviceNumber> {
    let name = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = host.path(format!("/sys/block/{name}"));
    let parts = names(&folder).into_iter().filter(|it| it.starts_with(&name));
    let folders = std::iter::once(folder.clone()).chain(parts.map(|part| folder.join(part)));
    folders.filter_map(|it| host.text(it.join("dev"))?.trim().parse().ok()).collect()
}

/// Unmounts what is mounted from a device whose server has died: every access to it fails, so there
/// is nothing in it that could still be lost, and it holds the device.
fn leave_dead(host: &Host, index: u32) -> std::result::Result<(), Outcome> {
    let node = node(index);
    let all = mounts(host).map_err(|error| Outcome::failed(error.to_string()))?;
    for mount in all.iter().rev() {
        if !mount.stands_on(&node) {
            continue;
        }
        // Whoever is in it keeps what they have open; the device goes when they close it.
        if let Err(error) = unmount(&mount.point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            return Err(Outcome::failed(format!(
                "{} is mounted from it, and its server has died; it cannot be unmounted: {error}",
                mount.point.display()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_needs_nothing() {
        let root = tempfile::tempdir().unwrap();
        let known = Known { index: 0, token: 1, pid: u32::MAX, started_ticks: 1 };
        assert_eq!(unmake(&Host::at(root.path()), known), Outcome::AlreadyRight);
    }
}
