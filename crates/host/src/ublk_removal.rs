//! Taking ublk devices away again.

use crate::{
    DeviceNumber, Host, Outcome,
    exclusive::try_exclusively,
    mounts::mounts,
    open_files::opened_by,
    process_identity::{end_process, process_runs},
    server::unmount_dead,
    tree::names,
    ublk_control::{CONTROL, Control},
};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

/// How long others may take to close a device, and a server to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// `/dev/ublkb3`, the block device.
pub(crate) fn node(index: u32) -> PathBuf {
    format!("/dev/ublkb{index}").into()
}

/// Whether the kernel knows a device of this number.
pub(crate) fn is_there(host: &Host, index: u32) -> bool {
    host.path(format!("/sys/class/ublk-char/ublkc{index}")).exists()
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
            Ok(file) => match user_of(host, node) {
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
fn user_of(host: &Host, node: &Path) -> Option<String> {
    let family = family(host, node);
    let is_it = |it: &fs::Metadata| {
        it.file_type().is_block_device() && family.contains(&DeviceNumber::from_raw(it.rdev()))
    };
    let (pid, name) = opened_by(host, |mount| !mount.is_served(), is_it).into_iter().next()?;
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
    unmount_dead(host, |mount| mount.stands_on(&node))
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
