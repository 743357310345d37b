//! The control commands of ublk (Documentation/block/ublk.rst, linux/ublk_cmd.h): numbers, structures,
//! and one safe function for each. They go through `/dev/ublk-control` as io_uring commands.

use crate::{Host, loadable::modules};
use io_uring::{IoUring, cqueue, opcode::UringCmd80, squeue, types};
use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    time::Duration,
};
use units::Bytes;

pub(crate) const CONTROL: &str = "/dev/ublk-control";

/// The most tags of a queue (UBLK_MAX_QUEUE_DEPTH).
pub const UBLK_TAGS_MAX: u32 = 4096;

const GET_DEV_INFO: u8 = 0x02;
const ADD_DEV: u8 = 0x04;
const DEL_DEV: u8 = 0x05;
const START_DEV: u8 = 0x06;
const STOP_DEV: u8 = 0x07;
const SET_PARAMS: u8 = 0x08;
const GET_FEATURES: u8 = 0x13;

const ATTR_ROTATIONAL: u32 = 1 << 1;
const ATTR_VOLATILE_CACHE: u32 = 1 << 2;
const ATTR_FUA: u32 = 1 << 3;
const PARAM_BASIC: u32 = 1 << 0;
const PARAM_DISCARD: u32 = 1 << 1;

/// How long a command that needs nobody else may take.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// `struct ublksrv_ctrl_cmd`, in the 80 bytes that a large submission entry carries.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Command {
    device: u32,
    queue: u16,
    length: u16,
    address: u64,
    data: u64,
    path_length: u16,
    pad: u16,
    reserved: u32,
}

/// `struct ublksrv_ctrl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct DeviceInfo {
    queues: u16,
    depth: u16,
    state: u16,
    pad0: u16,
    request_max: u32,
    device: u32,
    server_pid: i32,
    pad1: u32,
    flags: u64,
    /// Not looked at by the kernel, and kept: what tells our device from another of its number.
    token: u64,
    owner: [u32; 2],
    reserved: [u64; 2],
}

/// `struct ublk_params` with its first two parts.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Parameters {
    length: u32,
    types: u32,
    attributes: u32,
    logical_shift: u8,
    physical_shift: u8,
    io_opt_shift: u8,
    io_min_shift: u8,
    max_sectors: u32,
    chunk_sectors: u32,
    sectors: u64,
    virt_boundary_mask: u64,
    discard_alignment: u32,
    discard_granularity: u32,
    max_discard_sectors: u32,
    max_write_zeroes_sectors: u32,
    max_discard_segments: u16,
    reserved: u16,
}

const _: () = assert!(size_of::<Command>() == 32);
const _: () = assert!(size_of::<DeviceInfo>() == 64);
const _: () = assert!(size_of::<Parameters>() == 64);

/// What a ublk device is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UblkOptions {
    /// Tags of its one hardware queue.
    pub tags: u32,
    /// Its length.
    pub size: Bytes,
    /// The largest request.
    pub request_max: Bytes,
    /// Whether it has a head that moves.
    pub rotational: bool,
}

/// The control device, and a ring for its commands.
pub(crate) struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    /// Whether commands are numbered as ioctls are (Linux 6.5); later kernels may know no others.
    pub encoded: bool,
    sent: u64,
}

impl Control {
    /// Opens it; nothing is changed.
    pub fn open() -> io::Result<Control> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL)?;
        let ring = IoUring::<squeue::Entry128, cqueue::Entry>::builder().build(4)?;
        if !ring.params().is_feature_ext_arg() {
            return Err(io::Error::from_raw_os_error(libc::ENOSYS));
        }
        let mut control = Control { file, ring, encoded: true, sent: 0 };
        // Asking for features came after the new numbers, and every later kernel knows both.
        control.encoded = control.about(GET_FEATURES, u32::MAX, 0u64).is_ok();
        Ok(control)
    }

    /// Adds device `index` with `token` as its mark. EEXIST: there is one of this number.
    pub fn add(&mut self, index: u32, token: u64, options: UblkOptions) -> io::Result<()> {
        let info = DeviceInfo {
            // One, as SCSI and SATA disks have: the model is one stream of commands, and what a second
            // queue would save is nothing beside a model's times.
            queues: 1,
            depth: u16::try_from(options.tags.clamp(1, UBLK_TAGS_MAX)).unwrap_or(1),
            request_max: u32::try_from(options.request_max.0).unwrap_or(1 << 20),
            device: index,
            server_pid: -1,
            token,
            ..DeviceInfo::default()
        };
        let made = self.about(ADD_DEV, index, info)?;
        if u32::from(made.depth) == options.tags && made.device == index {
            return Ok(());
        }
        self.delete(index, DEFAULT_TIMEOUT)?;
        let wrong =
            format!("the kernel made a queue of {} tags in place of {}", made.depth, options.tags);
        Err(io::Error::other(wrong))
    }

    /// Says what the block device will look like.
    pub fn describe(&mut self, index: u32, options: UblkOptions) -> io::Result<()> {
        let sectors = |bytes: Bytes| u32::try_from(bytes.0 / 512).unwrap_or(u32::MAX);
        // Discards are no data: the largest that the 32 bits of a bio's length hold.
        let discard_max = (u32::MAX >> 9) & !7;
        let parameters = Parameters {
            length: size_of::<Parameters>() as u32,
            types: PARAM_BASIC | PARAM_DISCARD,
            // Flushes and FUA always reach the model: it says what they cost.
            attributes: ATTR_VOLATILE_CACHE
                | ATTR_FUA
                | if options.rotational { ATTR_ROTATIONAL } else { 0 },
            logical_shift: 9,
            physical_shift: 12,
            io_opt_shift: 12,
            io_min_shift: 12,
            max_sectors: sectors(options.request_max),
            sectors: options.size.0 / 512,
            discard_granularity: 4096,
            max_discard_sectors: discard_max,
            max_write_zeroes_sectors: discard_max,
            max_discard_segments: 1,
            ..Parameters::default()
        };
        self.about(SET_PARAMS, index, parameters).map(drop)
    }

    /// Makes the block device appear, which process `server` serves: it must have fetched all tags.
    pub fn start(&mut self, index: u32, server: u32) -> io::Result<()> {
        self.plain(START_DEV, index, u64::from(server), DEFAULT_TIMEOUT)
    }

    /// Takes the block device away; the server then gets its commands back. Whoever still has it open
    /// gets I/O errors.
    pub fn stop(&mut self, index: u32) -> io::Result<()> {
        self.plain(STOP_DEV, index, 0, DEFAULT_TIMEOUT)
    }

    /// Frees the number, once nobody has the device open; ETIME when that takes longer than `patience`.
    pub fn delete(&mut self, index: u32, patience: Duration) -> io::Result<()> {
        self.plain(DEL_DEV, index, 0, patience)
    }

    /// The mark that a device was added with.
    pub fn token(&mut self, index: u32) -> io::Result<u64> {
        self.about(GET_DEV_INFO, index, DeviceInfo::default()).map(|info| info.token)
    }

    /// A command with something to read or fill in, which is returned.
    fn about<T: Copy>(&mut self, number: u8, device: u32, what: T) -> io::Result<T> {
        let mut there = Box::new(what);
        let command = Command {
            device,
            queue: u16::MAX,
            length: size_of::<T>() as u16,
            address: (&raw mut *there) as u64,
            ..Command::default()
        };
        let outcome = self.run(number, command, DEFAULT_TIMEOUT);
        if matches!(&outcome, Err(error) if error.raw_os_error() == Some(libc::ETIME)) {
            // The kernel may still fill it in.
            Box::leak(there);
            return outcome.map(|()| what);
        }
        // The kernel has written behind the compiler's back.
        // SAFETY: it is a live value of ours, and any bytes make a valid T (integers only).
        outcome.map(|()| unsafe { (&raw const *there).read_volatile() })
    }

    fn plain(&mut self, number: u8, device: u32, data: u64, patience: Duration) -> io::Result<()> {
        let command = Command { device, queue: u16::MAX, data, ..Command::default() };
        self.run(number, command, patience)
    }

    fn run(&mut self, number: u8, command: Command, patience: Duration) -> io::Result<()> {
        let mut bytes = [0; 80];
        // SAFETY: `Command` is 32 bytes of integers without gaps.
        let plain: [u8; 32] = unsafe { std::mem::transmute(command) };
        bytes[..32].copy_from_slice(&plain);
        let op = if self.encoded { encoded(number) } else { u32::from(number) };
        self.sent += 1;
        let file = types::Fd(self.file.as_raw_fd());
        let entry = UringCmd80::new(file, op).cmd(bytes).build().user_data(self.sent);
        // SAFETY: what the command points to lives until its end, or is leaked: see `about`.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        self.ring.submit()?;
        let time = types::Timespec::new().sec(patience.as_secs()).nsec(patience.subsec_nanos());
        let waits = types::SubmitArgs::new().timespec(&time);
        loop {
            // One that was given up before may end now.
            let ours = |done: &cqueue::Entry| done.user_data() == self.sent;
            if let Some(done) = self.ring.completion().find(ours) {
                return match done.result() {
                    result if result < 0 => Err(io::Error::from_raw_os_error(-result)),
                    _ => Ok(()),
                };
            }
            match self.ring.submitter().submit_with_args(1, &waits) {
                Err(error) if error.raw_os_error() != Some(libc::EINTR) => return Err(error),
                _ => {}
            }
        }
    }
}

/// The number as an ioctl's: type `u`, the structure's size, and the direction of the data.
fn encoded(number: u8) -> u32 {
    let reads_only = matches!(number, GET_DEV_INFO | GET_FEATURES);
    let direction: u32 = if reads_only { 2 } else { 3 };
    let size = size_of::<Command>() as u32;
    (direction << 30) | (size << 16) | (u32::from(b'u') << 8) | u32::from(number)
}

/// Why this host has no ublk, in words with the next step; `None` where it has.
pub fn ublk_missing(host: &Host) -> Option<String> {
    match Control::open() {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(match (module(host), host.path("/sys/module/ublk_drv").exists()) {
                (_, true) => format!(
                    "the module ublk_drv is loaded and there is no {CONTROL}: give the container the \
                     device"
                ),
                (true, _) => "the module is not loaded (modprobe ublk_drv)".to_owned(),
                (false, _) => "this kernel has no module ublk_drv (Linux 6.0 has it)".to_owned(),
            })
        }
        Err(error) => Some(format!(
            "{CONTROL} cannot be used ({error}): it needs root and io_uring (see sysctl \
             kernel.io_uring_disabled)"
        )),
    }
}

/// Whether this kernel has ublk in a module that is not loaded.
pub fn ublk_loadable(host: &Host) -> bool {
    !host.path(CONTROL).exists() && module(host)
}

/// Whether the running kernel's modules have it.
fn module(host: &Host) -> bool {
    modules(host).iter().any(|name| name == "ublk_drv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_header() {
        // From linux/ublk_cmd.h through the C preprocessor.
        assert_eq!(encoded(ADD_DEV), 0xc020_7504);
        assert_eq!(encoded(DEL_DEV), 0xc020_7505);
        assert_eq!(encoded(GET_DEV_INFO), 0x8020_7502);
        assert_eq!(encoded(GET_FEATURES), 0x8020_7513);
    }

    #[test]
    fn a_host_without_ublk_is_told_what_to_do() {
        if std::path::Path::new(CONTROL).exists() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let host = Host::at(root.path());
        assert!(ublk_missing(&host).unwrap().contains("no module"));
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let folder = root.path().join("lib/modules").join(release);
        std::fs::create_dir_all(&folder).unwrap();
        let line = "kernel/drivers/block/ublk_drv.ko.xz:\n";
        std::fs::write(folder.join("modules.dep"), line).unwrap();
        assert!(ublk_missing(&host).unwrap().contains("modprobe ublk_drv"));
        assert!(ublk_loadable(&host));
    }
}
