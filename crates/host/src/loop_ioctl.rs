//! The ioctls of loop devices (loop(4), linux/loop.h): numbers, structures, and one safe function
//! for each.

use crate::error::{Error, Result, io_error};
use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsRawFd, BorrowedFd},
    path::{Path, PathBuf},
};

const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
const LOOP_SET_DIRECT_IO: libc::Ioctl = 0x4C08;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_ADD: libc::Ioctl = 0x4C80;
const LOOP_CTL_REMOVE: libc::Ioctl = 0x4C81;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;

const LO_FLAGS_READ_ONLY: u32 = 1;
const LO_FLAGS_PARTSCAN: u32 = 8;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

const EMPTY: LoopInfo64 = LoopInfo64 {
    device: 0,
    inode: 0,
    rdevice: 0,
    offset: 0,
    size_limit: 0,
    number: 0,
    encrypt_type: 0,
    encrypt_key_size: 0,
    flags: 0,
    file_name: [0; 64],
    crypt_name: [0; 64],
    encrypt_key: [0; 32],
    init: [0; 2],
};

/// What a loop device stands on, by device and inode of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopFile {
    pub device: u64,
    pub inode: u64,
}

/// `/dev/loop3`.
pub(crate) fn node(index: u32) -> PathBuf {
    format!("/dev/loop{index}").into()
}

/// The control device.
fn control() -> Result<File> {
    let path = Path::new(CONTROL);
    OpenOptions::new().read(true).write(true).open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::Unsupported {
            what: "a loop device".to_owned(),
            why: format!("there is no {CONTROL}"),
            next: "load the module (modprobe loop), or start the container with --privileged"
                .to_owned(),
        },
        _ => io_error("open", path)(source),
    })
}

const CONTROL: &str = "/dev/loop-control";

/// The number of a free loop device; one is made if all are in use.
pub(crate) fn get_free() -> Result<u32> {
    let control = control()?;
    // SAFETY: this ioctl takes no argument.
    let index = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    let error = || io_error("get a free loop device from", CONTROL)(io::Error::last_os_error());
    u32::try_from(index).map_err(|_| error())
}

/// The number of a loop device that did not exist before.
pub(crate) fn add() -> Result<u32> {
    let control = control()?;
    // SAFETY: the argument is a number; below zero the kernel chooses one.
    let index = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_ADD, -1 as libc::c_long) };
    let error = || io_error("add a loop device with", CONTROL)(io::Error::last_os_error());
    u32::try_from(index).map_err(|_| error())
}

/// Makes a loop device cease to be, to which nothing is attached.
pub(crate) fn remove(index: u32) -> Result<()> {
    let control = control()?;
    // SAFETY: the argument is a number.
    let outcome =
        unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_REMOVE, index as libc::c_long) };
    match check(outcome) {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        other => other.map_err(io_error("remove a loop device with", CONTROL)),
    }
}

/// How a loop device is to be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Configuration {
    pub block_size: u32,
    pub direct_io: bool,
    pub read_only: bool,
}

/// Attaches `file` to `device` in one step (Linux 5.8).
pub(crate) fn configure(
    device: &File,
    file: BorrowedFd,
    name: &Path,
    how: Configuration,
) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let mut info = EMPTY;
    // Lets BLKPG add partitions to it; nothing is scanned for on kernels without partition tables.
    info.flags = LO_FLAGS_PARTSCAN;
    info.flags |= if how.direct_io { LO_FLAGS_DIRECT_IO } else { 0 };
    info.flags |= if how.read_only { LO_FLAGS_READ_ONLY } else { 0 };
    let name = name.as_os_str().as_bytes();
    // One NUL must stay at the end.
    let length = name.len().min(63);
    info.file_name[..length].copy_from_slice(&name[..length]);
    let config = LoopConfig {
        fd: file.as_raw_fd() as u32,
        block_size: how.block_size,
        info,
        reserved: [0; 8],
    };
    // SAFETY: the kernel reads one `struct loop_config`, which this is.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) })
}

/// Goes around the page cache of the backing file, or not.
pub(crate) fn set_direct_io(device: &File, on: bool) -> io::Result<()> {
    let on = libc::c_ulong::from(on);
    // SAFETY: the argument is a number.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_DIRECT_IO, on) })
}

/// What is attached; `None` when nothing is.
pub(crate) fn status(device: &File) -> io::Result<Option<LoopFile>> {
    let mut info = EMPTY;
    // SAFETY: the kernel writes one `struct loop_info64`, which this is.
    let outcome =
        check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) });
    match outcome {
        Ok(()) => Ok(Some(LoopFile { device: info.device, inode: info.inode })),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Detaches; when others have it open, the kernel does so once the last of them has closed it.
pub(crate) fn detach(device: &File) -> io::Result<()> {
    // SAFETY: this ioctl takes no argument.
    match check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) }) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        outcome => outcome,
    }
}

fn check(outcome: libc::c_int) -> io::Result<()> {
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
