//! Scratch files and folders: named so that nobody else would, noted before they are made.

use crate::{Changes, Error, Made, Result, error::io_error, made::SCRATCH_PREFIX};
use random::Stream;
use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};
use units::Bytes;

/// A scratch folder; taken away at the end with all that is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchFolder {
    /// Where it is.
    pub path: PathBuf,
    entry: u64,
}

/// A scratch file that is written full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchFile {
    /// Where it is.
    pub path: PathBuf,
    /// How long it is.
    pub size: Bytes,
    entry: u64,
}

/// What is kept free on a filesystem beside our files, so that others go on.
pub const KEEP_FREE: Bytes = Bytes::from_mib(64);

impl Changes {
    /// Makes a scratch folder in `parent`.
    pub fn scratch_folder(&mut self, parent: &Path) -> Result<ScratchFolder> {
        let path = unique_in(parent)?;
        let entry = self.announce(Made::Folder { path: path.clone() })?;
        if let Err(error) = fs::create_dir(&path) {
            self.gone(entry)?;
            return Err(io_error("create", path)(error));
        }
        self.is(entry, &path)?;
        Ok(ScratchFolder { path, entry })
    }

    /// Makes a scratch file in `parent`, written full of random bytes and synced, so that neither a
    /// hole nor a fresh allocation nor compression is measured in place of the device.
    ///
    /// `proceed` is called after every 8 MiB with the bytes done; when it returns false, the file is taken
    /// away again and the error is of kind `Interrupted`.
    pub fn scratch_file(
        &mut self,
        parent: &Path,
        size: Bytes,
        proceed: &mut dyn FnMut(Bytes) -> bool,
    ) -> Result<ScratchFile> {
        check_room(parent, size)?;
        let path = unique_in(parent)?;
        let entry = self.announce(Made::File { path: path.clone() })?;
        let open = OpenOptions::new().write(true).read(true).create_new(true).open(&path);
        let mut file = match open {
            Ok(file) => file,
            Err(error) => {
                self.gone(entry)?;
                return Err(io_error("create", path)(error));
            }
        };
        self.is(entry, &path)?;
        if let Err(error) = lay_out(&mut file, size, proceed) {
            drop(file);
            self.unmake(entry)?;
            return Err(io_error("write", path)(error));
        }
        Ok(ScratchFile { path, size, entry })
    }

    /// Makes a scratch file in `parent` that is `size` long and all holes: it takes no room until it
    /// is written.
    pub fn sparse_file(&mut self, parent: &Path, size: Bytes) -> Result<ScratchFile> {
        check_room(parent, Bytes::ZERO)?;
        let path = unique_in(parent)?;
        let entry = self.announce(Made::File { path: path.clone() })?;
        let open = OpenOptions::new().write(true).read(true).create_new(true).open(&path);
        let file = match open {
            Ok(file) => file,
            Err(error) => {
                self.gone(entry)?;
                return Err(io_error("create", path)(error));
            }
        };
        self.is(entry, &path)?;
        if let Err(error) = file.set_len(size.0) {
            drop(file);
            self.unmake(entry)?;
            return Err(too_large(error, parent, size));
        }
        Ok(ScratchFile { path, size, entry })
    }

    /// Takes a scratch file away before the end.
    pub fn remove_file(&mut self, file: ScratchFile) -> Result<()> {
        self.unmake(file.entry)
    }

    /// Notes a process that will serve a filesystem on `folder`, and that mount: `source` is what the
    /// mount table will call it. The process must not mount before this has returned.
    pub fn started_server(
        &mut self,
        pid: u32,
        name: &str,
        folder: &ScratchFolder,
        source: &str,
    ) -> Result<()> {
        let started_ticks =
            crate::process_identity::process_start(self.host(), pid).unwrap_or_default();
        let point = folder.path.clone();
        let name = name.to_owned();
        self.announce(Made::Server { pid, started_ticks, name, point: point.clone() })?;
        self.announce(Made::Mount { point, source: source.into() }).map(drop)
    }

    /// Takes a scratch folder away before the end, with all that is in it.
    pub fn remove_folder(&mut self, folder: ScratchFolder) -> Result<()> {
        self.unmake(folder.entry)
    }
}

/// Whether `size` more bytes fit and leave others some room.
pub fn check_room(folder: &Path, size: Bytes) -> Result<()> {
    let room =
        rustix::fs::statvfs(folder).map_err(|e| io_error("ask the room in", folder)(e.into()))?;
    if room.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
        let read_only = std::io::Error::from_raw_os_error(libc::EROFS);
        return Err(io_error("write in", folder)(read_only));
    }
    let available = Bytes(room.f_bavail * room.f_frsize);
    if available < size + KEEP_FREE {
        return Err(Error::Unsupported {
            what: format!("a file of {size} in {}", folder.display()),
            why: format!("{available} are free there, and {KEEP_FREE} are left to others"),
            next: "choose a smaller size or another folder".to_owned(),
        });
    }
    Ok(())
}

/// A filesystem's files have a largest size (ext4 with 4 KiB blocks 16 TiB).
fn too_large(source: std::io::Error, parent: &Path, size: Bytes) -> Error {
    match source.raw_os_error() {
        Some(libc::EFBIG | libc::EINVAL) => Error::Unsupported {
            what: format!("a file of {size} in {}", parent.display()),
            why: "its filesystem has no files that large".to_owned(),
            next: "choose a folder on another filesystem (xfs), or a smaller size".to_owned(),
        },
        _ => io_error("make a file of that size in", parent)(source),
    }
}

fn lay_out(
    file: &mut File,
    size: Bytes,
    proceed: &mut dyn FnMut(Bytes) -> bool,
) -> std::io::Result<()> {
    const CHUNK: usize = 1 << 20;
    // Allocated in one piece where that is possible, then written over.
    let whole = rustix::fs::fallocate(&*file, rustix::fs::FallocateFlags::empty(), 0, size.0);
    if let Err(error) = whole
        && error == rustix::io::Errno::NOSPC
    {
        return Err(error.into());
    }
    let mut stream = Stream::new(0x5350_494e, "scratch");
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    while done < size.0 {
        stream.fill(&mut chunk);
        let length = (size.0 - done).min(CHUNK as u64) as usize;
        file.write_all(&chunk[..length])?;
        done += length as u64;
        if done.is_multiple_of(8 << 20) {
            // Written back as we go: a flood of dirty pages would stop everybody at the end.
            file.sync_data()?;
            if !proceed(Bytes(done)) {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
        }
    }
    file.sync_all()?;
    // Reads that follow are to come from the device.
    rustix::fs::fadvise(&*file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

/// A path in `parent` that is nobody's.
fn unique_in(parent: &Path) -> Result<PathBuf> {
    let parent = fs::canonicalize(parent).map_err(io_error("follow", parent))?;
    let bits = random_bits().map_err(io_error("get random bits for", &parent))?;
    Ok(parent.join(format!("{SCRATCH_PREFIX}{bits:016x}")))
}

/// What nobody else would come upon.
pub(crate) fn random_bits() -> std::io::Result<u64> {
    let mut bits = [0; 8];
    // SAFETY: the kernel fills eight bytes of ours.
    let filled = unsafe { libc::getrandom(bits.as_mut_ptr().cast(), bits.len(), 0) };
    match filled == bits.len() as isize {
        true => Ok(u64::from_ne_bytes(bits)),
        false => Err(std::io::Error::last_os_error()),
    }
}
