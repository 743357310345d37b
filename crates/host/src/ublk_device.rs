//! ublk devices, whose requests a process of ours answers: added and started through the journal, and
//! taken away again.

use crate::{
    Changes, DeviceNumber, Error, Made, Result,
    error::io_error,
    process_identity::process_start,
    scratch::random_bits,
    ublk_control::{CONTROL, Control, UblkOptions},
    ublk_removal::{PATIENCE, is_there, node},
};
use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

/// How many numbers are tried before it counts as an error.
const ATTEMPTS: u32 = 256;

/// A ublk device that was added. It goes when its [`Changes`] end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UblkDevice {
    /// 3 for `/dev/ublkb3`, whose requests are had at `/dev/ublkc3`.
    pub index: u32,
    /// Whether the kernel wants commands that are numbered as ioctls are.
    pub encoded: bool,
    server: u32,
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
