//! What tells files from each other, and ours from others'.

use crate::DeviceNumber;
use rustix::fs::{AtFlags, StatxFlags, statx};
use serde::{Deserialize, Serialize};
use std::{io, os::fd::BorrowedFd, path::Path};

/// What the names of scratch files and folders begin with.
pub(crate) const SCRATCH_PREFIX: &str = "spindle-scratch-";

/// What tells a file from a later one of the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileId {
    /// Of its filesystem.
    pub device: DeviceNumber,
    /// Inode number.
    pub inode: u64,
    /// When it was made, ns since 1970, where the filesystem keeps that.
    pub born_ns: Option<i128>,
}

impl FileId {
    /// Of what is at `path` itself, links not followed.
    pub fn of(path: &Path) -> io::Result<FileId> {
        FileId::at(rustix::fs::CWD, path)
    }

    /// Of what has a name in a folder itself, links not followed.
    pub(crate) fn at(folder: BorrowedFd, name: &Path) -> io::Result<FileId> {
        FileId::asked(folder, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Of what is open.
    pub fn of_open(file: BorrowedFd) -> io::Result<FileId> {
        FileId::asked(file, Path::new(""), AtFlags::EMPTY_PATH)
    }

    fn asked(file: BorrowedFd, name: &Path, how: AtFlags) -> io::Result<FileId> {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let found = statx(file, name, how, flags)?;
        let born = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        let time = found.stx_btime;
        Ok(FileId {
            device: DeviceNumber::new(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            born_ns: born
                .then(|| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)),
        })
    }
}
