//! What the load goes to: a file or a block device, a span of it from offset 0.

use crate::error::LoadError;
use serde::{Deserialize, Serialize};
use std::{
    ffi::CString,
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, MetadataExt},
        },
    },
    path::{Path, PathBuf},
};
use units::Bytes;
use workload::{Job, OpenSync, SyncMode};

/// A file or a block device that may be read and, by jobs that write, overwritten in `[0, size)`.
/// Nothing here creates, truncates or extends it.
#[derive(Debug)]
pub struct Target {
    /// Where it is.
    pub path: PathBuf,
    /// The span used, from offset 0.
    pub size: Bytes,
    /// The descriptor with which somebody made the file, or made sure that this is the right device, and holds
    /// it: clients then open that very file or device again, whatever the path means by now.
    pub held: Option<OwnedFd>,
}

/// What O_DIRECT demands of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectAlignment {
    /// Offsets and lengths must be multiples of this.
    Multiple(Bytes),
    /// The file does not support O_DIRECT.
    Unsupported,
    /// The kernel does not say (before 6.1, and several filesystems).
    Unknown,
}

impl Target {
    /// A target without a descriptor held by somebody.
    pub fn new(path: impl Into<PathBuf>, size: Bytes) -> Self {
        Target { path: path.into(), size, held: None }
    }

    /// A target whose descriptor is held.
    pub fn held(path: impl Into<PathBuf>, size: Bytes, held: impl Into<OwnedFd>) -> Self {
        Target { path: path.into(), size, held: Some(held.into()) }
    }

    /// The same target once more.
    pub fn try_clone(&self) -> io::Result<Target> {
        let held = self.held.as_ref().map(OwnedFd::try_clone).transpose()?;
        Ok(Target { path: self.path.clone(), size: self.size, held })
    }

    /// What to open: what is held itself, where it is.
    pub(crate) fn open_path(&self) -> PathBuf {
        match &self.held {
            Some(fd) => held_path(fd.as_raw_fd()),
            None => self.path.clone(),
        }
    }

    /// What a client needs to open it.
    pub(crate) fn opening(&self) -> io::Result<Opening> {
        let held = self.held.as_ref().map(FileIdentity::of).transpose()?;
        Ok(Opening { path: self.open_path(), held })
    }

    /// Whether the job can go there at all, found before any client begins.
    pub(crate) fn check(&self, job: &Job) -> Result<(), LoadError> {
        let wrong =
            |doing| move |source| LoadError::Target { doing, path: self.path.clone(), source };
        let path = self.open_path();
        let kind = fs::metadata(&path).map_err(wrong("look at"))?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            return Err(LoadError::Refused(format!(
                "{} is neither a regular file nor a block device: load goes to one of these",
                self.path.display()
            )));
        }
        let mut probe = job.clone();
        if kind.is_block_device() {
            // Closing a device that was open for writing makes udev apply its rules again, which may
            // revert settings: once by the clients is enough.
            probe.pattern.read_percent = 100;
        }
        let file =
            self.opening().and_then(|opening| opening.open(&probe)).map_err(wrong("open"))?;
        let there = size_of(&File::from(file)).map_err(wrong("find the size of"))?;
        if there < self.size {
            return Err(LoadError::Refused(format!(
                "{} has {there}, but the load spans {}: lay the file out first, or ask for less",
                self.path.display(),
                self.size
            )));
        }
        if job.sync.direct {
            self.check_alignment(job)?;
        }
        if job.sync.dont_cache && !takes_dont_cache(&path).map_err(wrong("read"))? {
            return Err(LoadError::Refused(format!(
                "{} does not take RWF_DONTCACHE, which needs Linux 6.14 and a filesystem that has it \
                 (ext4, XFS; bare block devices do not): use the sync mode buffered",
                self.path.display()
            )));
        }
        Ok(())
    }

    fn check_alignment(&self, job: &Job) -> Result<(), LoadError> {
        let path = self.open_path();
        let asked = direct_alignment(&path).map_err(|source| LoadError::Target {
            doing: "ask for the O_DIRECT alignment of",
            path: self.path.clone(),
            source,
        })?;
        match asked {
            DirectAlignment::Multiple(multiple) if !job.block_size.0.is_multiple_of(multiple.0) => {
                Err(LoadError::Refused(format!(
                    "direct I/O on {} goes in multiples of {multiple} (its logical block), so \
                     blocks of {} cannot be direct: use at least {multiple}, or a sync mode \
                     without 'direct'",
                    self.path.display(),
                    job.block_size
                )))
            }
            DirectAlignment::Unsupported => Err(LoadError::Refused(format!(
                "{} does not support O_DIRECT (its filesystem says so): use a sync mode without \
                 'direct'",
                self.path.display()
            ))),
            DirectAlignment::Multiple(_) | DirectAlignment::Unknown => Ok(()),
        }
    }
}

/// Where a client opens the target: each has an open file of its own, as processes of a database do,
/// so that the kernel's read-ahead follows each by itself.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Opening {
    path: PathBuf,
    /// What has to be there.
    held: Option<FileIdentity>,
}

/// What tells a file or a device from others.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(file: &OwnedFd) -> io::Result<FileIdentity> {
        let known = File::from(file.try_clone()?).metadata()?;
        Ok(FileIdentity { device: known.dev(), inode: known.ino() })
    }
}

impl Opening {
    /// Opens it as a job's client does. Reads alone need no permission to write.
    pub fn open(&self, job: &Job) -> io::Result<OwnedFd> {
        let mut flags = libc::O_CLOEXEC;
        flags |= match (job.pattern.reads(), job.pattern.writes()) {
            (_, false) => libc::O_RDONLY,
            (false, true) => libc::O_WRONLY,
            (true, true) => libc::O_RDWR,
        };
        flags |= match job.pattern.writes() {
            true => write_flags(job.sync),
            false => read_flags(job.sync),
        };
        let file = open(&self.path, flags)?;
        match self.held {
            Some(held) if FileIdentity::of(&file)? != held => Err(io::Error::other(
                "/proc shows another file under the number of the one that is held: is it of other processes \
                 than these?",
            )),
            _ => Ok(file),
        }
    }
}

/// The path at which this process and its children open again what it holds open.
pub(crate) fn held_path(fd: RawFd) -> PathBuf {
    // The number that /proc has for us, which may be of another namespace.
    let own = fs::read_link("/proc/self").ok();
    let own = own.and_then(|own| own.to_str()?.parse().ok());
    PathBuf::from(format!("/proc/{}/fd/{fd}", own.unwrap_or_else(std::process::id)))
}

fn read_flags(sync: SyncMode) -> i32 {
    if sync.direct { libc::O_DIRECT } else { 0 }
}

/// The flags of preadv2(2) and pwritev2(2) of a sync mode.
pub(crate) fn operation_flags(sync: SyncMode) -> i32 {
    if sync.dont_cache { libc::RWF_DONTCACHE } else { 0 }
}

/// The flags of open(2) of a sync mode, for a file that is written.
pub(crate) fn write_flags(sync: SyncMode) -> i32 {
    let durable = match sync.open {
        OpenSync::None => 0,
        OpenSync::OSync => libc::O_SYNC,
        OpenSync::ODsync => libc::O_DSYNC,
    };
    read_flags(sync) | durable
}

pub(crate) fn open(path: &Path, flags: i32) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a terminated string and two integers.
    match unsafe { libc::open(path.as_ptr(), flags, 0o600) } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: just opened, and nobody else's.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// A file's length, or a block device's size.
pub(crate) fn size_of(file: &File) -> io::Result<Bytes> {
    use std::io::{Seek, SeekFrom};
    let mut file = file;
    file.seek(SeekFrom::End(0)).map(Bytes)
}

/// Whether reads and writes of the file or block device at `path`, or of a file that is made without a name in
/// the folder there, take RWF_DONTCACHE. One sector is read; nothing is changed.
pub fn takes_dont_cache(path: &Path) -> io::Result<bool> {
    let flags = match fs::metadata(path)?.is_dir() {
        true => libc::O_TMPFILE | libc::O_RDWR,
        // A pipe in its place does not hold us.
        false => libc::O_RDONLY | libc::O_NONBLOCK,
    };
    file_takes_dont_cache(&File::from(open(path, flags | libc::O_CLOEXEC)?))
}

/// Asks with a read. The kernel looks at the flag before the file's length, and the same for both directions.
fn file_takes_dont_cache(file: &File) -> io::Result<bool> {
    let mut sector = [0u8; 512];
    let whole = libc::iovec { iov_base: sector.as_mut_ptr().cast(), iov_len: sector.len() };
    let (fd, flags) = (file.as_raw_fd(), libc::RWF_DONTCACHE);
    // SAFETY: the vector names a buffer of ours of that length.
    if unsafe { libc::preadv2(fd, &raw const whole, 1, 0, flags) } >= 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EINVAL) => Ok(false),
        _ => Err(error),
    }
}

/// What O_DIRECT demands of the file or block device at `path`: statx(2) with STATX_DIOALIGN, else
/// a block device's logical block size.
pub fn direct_alignment(path: &Path) -> io::Result<DirectAlignment> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: zeroes are a valid statx, and the call fills it.
    let (result, about) = unsafe {
        let mut about: libc::statx = std::mem::zeroed();
        let mask = libc::STATX_DIOALIGN | libc::STATX_TYPE;
        (libc::statx(libc::AT_FDCWD, name.as_ptr(), 0, mask, &mut about), about)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if about.stx_mask & libc::STATX_DIOALIGN != 0 {
        return Ok(match about.stx_dio_offset_align {
            0 => DirectAlignment::Unsupported,
            multiple => DirectAlignment::Multiple(Bytes(multiple.into())),
        });
    }
    if u32::from(about.stx_mode) & libc::S_IFMT != libc::S_IFBLK {
        return Ok(DirectAlignment::Unknown);
    }
    let device = open(path, libc::O_RDONLY | libc::O_CLOEXEC)?;
    let mut block: libc::c_int = 0;
    // SAFETY: BLKSSZGET writes one int.
    match unsafe { libc::ioctl(device.as_raw_fd(), libc::BLKSSZGET, &mut block) } {
        0 => Ok(DirectAlignment::Multiple(Bytes(block as u64))),
        _ => Err(io::Error::last_os_error()),
    }
}
