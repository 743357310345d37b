//! Devices whose data a process of ours serves, and what to do about what stands on them when that
//! process has died.

use crate::{
    DeviceNumber, Host, Outcome,
    held::try_reading,
    loop_ioctl::node,
    mounts::{Mount, mounts},
};
use rustix::{
    io::Errno,
    mount::{UnmountFlags, unmount},
};
use std::{fs::File, os::unix::fs::MetadataExt, path::Path};

/// Whether the server of the filesystem that `file` is in has died: then nothing of it can be reached
/// any more.
fn server_is_gone(file: &Path) -> bool {
    // An attribute that the kernel remembers would not tell: opening asks the server.
    let gone = [Errno::NOTCONN.raw_os_error(), Errno::CONNABORTED.raw_os_error()];
    matches!(try_reading(file), Err(error) if error.raw_os_error().is_some_and(|it| gone.contains(&it)))
}

/// Unmounts what is mounted from a loop device whose file's server has died: every access to it fails,
/// so there is nothing left in it that could be lost, and it holds the device. Does nothing to a
/// device that works. `device` is it, held open, so that its number cannot be another's meanwhile.
pub(crate) fn leave_dead_device(
    host: &Host,
    device: &File,
    index: u32,
    file: &Path,
) -> Result<(), Outcome> {
    if !server_is_gone(file) {
        return Ok(());
    }
    let node = node(index);
    let Ok(meta) = device.metadata() else { return Ok(()) };
    let number = DeviceNumber::from_raw(meta.rdev());
    unmount_dead(host, |mount| mount.device == number || Path::new(&mount.source) == node)
}

/// Unmounts what stands on a device whose server has died, the last mounted first.
pub(crate) fn unmount_dead(
    host: &Host,
    stands_on_it: impl Fn(&Mount) -> bool,
) -> Result<(), Outcome> {
    let all = mounts(host).map_err(|error| Outcome::failed(error.to_string()))?;
    for mount in all.iter().rev().filter(|mount| stands_on_it(mount)) {
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
