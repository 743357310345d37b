//! What O_DIRECT means for a file: its alignment, and where it silently is not direct.

use crate::{Mount, error::Result, error::io_error};
use serde::{Deserialize, Serialize};
use std::{
    ffi::CString,
    fs::{File, OpenOptions},
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    },
    path::Path,
};
use units::Bytes;

/// What the kernel says of O_DIRECT on one file, and what it does not say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectIo {
    /// What statx says.
    pub support: DirectIoSupport,
    /// Why a direct request may still go through the page cache here.
    pub caveats: Vec<String>,
}

/// The answer of `STATX_DIOALIGN` (Linux 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DirectIoSupport {
    /// Direct, when aligned so.
    Aligned {
        /// Of the buffer's address.
        memory: Bytes,
        /// Of the file's offset and of the length.
        offset: Bytes,
    },
    /// O_DIRECT is refused or treated as buffered.
    No,
    /// The kernel or the filesystem does not answer (before 6.1, or a folder).
    Unknown,
}

impl DirectIo {
    /// Asks for `path`. For a folder, which has no answer of its own, a file without a name is opened
    /// in it and asked, where that may be done.
    pub fn of(path: &Path, mount: Option<&Mount>) -> Result<DirectIo> {
        let support = match nameless_file(path) {
            Some(file) => {
                statx_alignment(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))?
            }
            None => statx_alignment(path)?,
        };
        Ok(DirectIo { support, caveats: mount.map(caveats).unwrap_or_default() })
    }
}

/// A file in a folder that never has a name and is gone when it is closed (O_TMPFILE), however this
/// process ends; `None` for what is no folder, or where it cannot be.
pub(crate) fn nameless_file(folder: &Path) -> Option<File> {
    if !folder.is_dir() {
        return None;
    }
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).open(folder).ok()
}

/// `statx(path, STATX_DIOALIGN)`: rustix does not pass this mask on.
fn statx_alignment(path: &Path) -> Result<DirectIoSupport> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| io_error("name", path)(std::io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: `statx` is plain integers, for which all zeroes is a value.
    let mut answer: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends in NUL and the buffer is ours, of the type that the call fills.
    let failed = unsafe {
        libc::statx(libc::AT_FDCWD, name.as_ptr(), 0, libc::STATX_DIOALIGN, &raw mut answer)
    } != 0;
    if failed {
        return Err(io_error("ask the alignment of", path)(std::io::Error::last_os_error()));
    }
    Ok(match answer.stx_dio_offset_align {
        _ if answer.stx_mask & libc::STATX_DIOALIGN == 0 => DirectIoSupport::Unknown,
        0 => DirectIoSupport::No,
        offset => DirectIoSupport::Aligned {
            memory: Bytes(u64::from(answer.stx_dio_mem_align)),
            offset: Bytes(u64::from(offset)),
        },
    })
}

/// What statx does not tell (facts of each filesystem's documentation).
fn caveats(mount: &Mount) -> Vec<String> {
    let mut caveats = Vec::new();
    let mut add = |text: &str| caveats.push(text.to_owned());
    match mount.kind.as_str() {
        "btrfs" if mount.option("nodatasum").is_none() && mount.option("nodatacow").is_none() => {
            add("btrfs with checksums may turn direct writes into buffered ones: \
                 mount with nodatasum, or set chattr +C on the empty file");
        }
        "ext4" | "ext3" if mount.option("data") == Some("journal") => {
            add("data=journal writes file data through the journal: O_DIRECT is buffered there");
        }
        "tmpfs" | "ramfs" => add("the files are memory: no device sees any request"),
        "overlay" => add("O_DIRECT depends on the filesystem below the overlay's upper folder"),
        "zfs" => add("ZFS before 2.3 accepts O_DIRECT and goes through its cache all the same"),
        kind if kind.starts_with("fuse") => add("the file server decides what O_DIRECT means"),
        "nfs" | "nfs4" | "cifs" | "9p" | "virtiofs" => {
            add("O_DIRECT goes around this host's cache only, not the server's");
        }
        _ => {}
    }
    caveats
}
