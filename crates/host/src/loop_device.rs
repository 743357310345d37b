//! Loop devices on laid-out files, with direct I/O, attached and detached through the journal.

use crate::{
    Changes, DeviceNumber, Error, FileId, Made, Result,
    error::io_error,
    loop_ioctl::{self, Configuration, node},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::{File, OpenOptions},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::MetadataExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};
use units::Bytes;

/// How a file is to be attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopOptions {
    /// Size of a sector of the device; zero for what the backing file's filesystem asks of direct
    /// I/O (or 512).
    pub logical_block: Bytes,
    /// Goes around the page cache of the file's filesystem. Without it everything is cached twice.
    pub direct_io: bool,
    /// No writes.
    pub read_only: bool,
    /// A device that did not exist before and is removed again: its settings begin as the kernel's,
    /// and outlive nobody.
    pub added: bool,
}

impl Default for LoopOptions {
    fn default() -> Self {
        LoopOptions { logical_block: Bytes::ZERO, direct_io: true, read_only: false, added: false }
    }
}

/// An attached loop device; detached by [`Changes::detach`] or at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopDevice {
    /// `/dev/loop3`.
    pub node: PathBuf,
    /// Its number.
    pub number: DeviceNumber,
    /// Its file.
    pub file: PathBuf,
    entry: u64,
}

/// How often another is tried when somebody takes the free device before us.
const ATTEMPTS: u32 = 32;

impl Changes {
    /// Attaches `file` to a free loop device and checks that it does what was asked.
    pub fn attach(&mut self, file: &Path, options: LoopOptions) -> Result<LoopDevice> {
        let file = std::fs::canonicalize(file).map_err(io_error("follow", file))?;
        let backing = OpenOptions::new()
            .read(true)
            .write(!options.read_only)
            .open(&file)
            .map_err(io_error("open", &file))?;
        self.attach_open(backing.as_fd(), file, options)
    }

    /// The same with a file that is open already, for writing too where the device takes writes: whatever is at
    /// its `path` by now.
    pub fn attach_open(
        &mut self,
        backing: BorrowedFd,
        file: PathBuf,
        options: LoopOptions,
    ) -> Result<LoopDevice> {
        let id = FileId::of_open(backing).map_err(io_error("look at", &file))?;
        let how = Configuration {
            block_size: u32::try_from(options.logical_block.0).unwrap_or(u32::MAX),
            direct_io: options.direct_io,
            read_only: options.read_only,
        };
        for _ in 0..ATTEMPTS {
            let index = if options.added { loop_ioctl::add()? } else { loop_ioctl::get_free()? };
            let node = node(index);
            let entry =
                self.announce(Made::Loop { index, file: file.clone(), id, added: options.added })?;
            let device = open_node(&node, options)?;
            match loop_ioctl::configure(&device, backing, &file, how) {
                Ok(()) => {
                    let raw = device.metadata().map_err(io_error("look at", &node))?.rdev();
                    let number = DeviceNumber::from_raw(raw);
                    self.check_direct_io(number, &node, &device, options)?;
                    return Ok(LoopDevice { node, number, file, entry });
                }
                // Somebody else took it between the two calls.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    drop(device);
                    self.unmake_or_forget(entry, options)?;
                }
                Err(error) => {
                    drop(device);
                    self.unmake_or_forget(entry, options)?;
                    return Err(attach_error(error, node, &file, options));
                }
            }
        }
        Err(Error::Unsupported {
            what: "attaching a loop device".to_owned(),
            why: format!("{ATTEMPTS} free ones were taken by others before us"),
            next: "try again".to_owned(),
        })
    }

    /// Of a device that could not be attached: one that was added goes, another never was ours.
    fn unmake_or_forget(&mut self, entry: u64, options: LoopOptions) -> Result<()> {
        if options.added { self.unmake(entry) } else { self.gone(entry) }
    }

    /// The kernel clears the direct-I/O flag without a word when the file's filesystem cannot do it.
    fn check_direct_io(
        &mut self,
        number: DeviceNumber,
        node: &Path,
        device: &std::fs::File,
        options: LoopOptions,
    ) -> Result<()> {
        let state = crate::BlockDevice::read(self.host(), number)?;
        if !options.direct_io || state.loop_state().is_some_and(|state| state.direct_io) {
            return Ok(());
        }
        loop_ioctl::set_direct_io(device, true).map_err(|source| Error::Unsupported {
            what: format!("direct I/O of {}", node.display()),
            why: format!("the filesystem below does not do it for this file ({source})"),
            next: "put the file on ext4 or xfs, or take a larger logical block size".to_owned(),
        })
    }

    /// Puts the device's settings back, which would outlive it otherwise, and detaches it.
    pub fn detach(&mut self, device: LoopDevice) -> Result<()> {
        for step in self.restore(device.number)? {
            if let crate::Outcome::Failed { why } | crate::Outcome::Refused { why } = step.outcome {
                return Err(Error::Unsupported {
                    what: format!("putting back {}", step.what),
                    why,
                    next: "run: spindle undo".to_owned(),
                });
            }
        }
        self.unmake(device.entry)
    }
}

/// A device that was just added gets its node a moment later.
fn open_node(node: &Path, options: LoopOptions) -> Result<File> {
    let mut how = OpenOptions::new();
    how.read(true).write(!options.read_only);
    for _ in 0..if options.added { 100 } else { 0 } {
        match how.open(node) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other.map_err(io_error("open", node)),
        }
    }
    how.open(node).map_err(io_error("open", node))
}

fn attach_error(source: std::io::Error, node: PathBuf, file: &Path, options: LoopOptions) -> Error {
    if source.raw_os_error() == Some(libc::EINVAL) {
        return Error::Unsupported {
            what: format!("attaching {} to {}", file.display(), node.display()),
            why: format!(
                "the kernel takes no logical block of {} for it, or no direct I/O on its filesystem",
                options.logical_block
            ),
            next: "take 512 or 4096 bytes, and a file on ext4 or xfs".to_owned(),
        };
    }
    io_error("attach a file to", node)(source)
}
