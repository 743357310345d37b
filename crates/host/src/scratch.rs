//! Scratch files and folders: named so that nobody else would, noted before they are made.

use crate::{
    Changes, DataFolder, Error, HeldFolder, Host, Made, NoPlace, Result,
    data_folder::data_folder_above,
    error::io_error,
    file_id::SCRATCH_PREFIX,
    held::{make_file, make_folder, open_named, shared_with_others},
};
use random::Stream;
use std::{
    fs::File,
    io::Write,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};
use units::Bytes;

/// A scratch folder, held open; taken away at the end with all that is in it.
#[derive(Clone, Debug)]
pub struct ScratchFolder {
    /// Where it was made.
    pub path: PathBuf,
    /// It, wherever it is by now.
    pub held: HeldFolder,
    entry: u64,
}

/// A scratch file, held open.
#[derive(Clone, Debug)]
pub struct ScratchFile {
    /// Where it was made.
    pub path: PathBuf,
    /// How long it is.
    pub size: Bytes,
    /// It, wherever it is by now.
    pub held: Arc<OwnedFd>,
    entry: u64,
}

/// What is kept free on a filesystem beside our files, so that others go on.
pub const KEEP_FREE: Bytes = Bytes::from_mib(64);

impl Changes {
    /// Makes a scratch folder in `parent` that nobody else may enter.
    pub fn scratch_folder(&mut self, parent: &Path) -> Result<ScratchFolder> {
        let (parent, name, path) = unique_in(self.host(), parent)?;
        let entry = self.announce(Made::Folder { path: path.clone() })?;
        match make_folder(parent.as_fd(), &name) {
            Ok(made) => {
                let made = Arc::new(made);
                self.is(entry, Arc::clone(&made), &path)?;
                let held = HeldFolder::of(path.clone(), made);
                Ok(ScratchFolder { path, held, entry })
            }
            Err(error) => {
                self.gone(entry)?;
                Err(io_error("create", path)(error))
            }
        }
    }

    /// Makes a scratch folder that something will be mounted on, beside the journal. What mounts knows paths
    /// alone: others must not be able to put anything else there.
    pub fn mount_point(&mut self) -> Result<ScratchFolder> {
        let beside = self.journal().parent().unwrap_or(Path::new("/")).to_owned();
        let beside = std::fs::canonicalize(&beside).map_err(io_error("follow", beside))?;
        let shared = shared_with_others(&beside).map_err(io_error("look at", &beside))?;
        match shared {
            Some(shared) => Err(Error::Shared { path: beside, shared }),
            None => self.scratch_folder(&beside),
        }
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
        self.file_in(parent, size, size, |file, path| {
            lay_out(file, size, proceed).map_err(io_error("write", path))
        })
    }

    /// Makes a scratch file in `parent` that is `size` long and all holes: it takes no room until it
    /// is written.
    pub fn sparse_file(&mut self, parent: &Path, size: Bytes) -> Result<ScratchFile> {
        self.file_in(parent, size, Bytes::ZERO, |file, _| {
            file.set_len(size.0).map_err(|error| too_large(error, parent, size))
        })
    }

    /// Makes a file that takes `room`, and fills it; a file that cannot be filled goes again.
    fn file_in(
        &mut self,
        parent: &Path,
        size: Bytes,
        room: Bytes,
        fill: impl FnOnce(&File, &Path) -> Result<()>,
    ) -> Result<ScratchFile> {
        check_room(parent, room)?;
        let (parent, name, path) = unique_in(self.host(), parent)?;
        let entry = self.announce(Made::File { path: path.clone() })?;
        let file = match make_file(parent.as_fd(), &name) {
            Ok(file) => file,
            Err(error) => {
                self.gone(entry)?;
                return Err(io_error("create", path)(error));
            }
        };
        let held = Arc::new(file.try_clone().map_err(io_error("hold", &path))?.into());
        self.is(entry, Arc::clone(&held), &path)?;
        if let Err(error) = fill(&file, &path) {
            drop(file);
            self.unmake(entry)?;
            return Err(error);
        }
        Ok(ScratchFile { path, size, held, entry })
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
    mut file: &File,
    size: Bytes,
    proceed: &mut dyn FnMut(Bytes) -> bool,
) -> std::io::Result<()> {
    const CHUNK: usize = 1 << 20;
    // Allocated in one piece where that is possible, then written over.
    let whole = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, size.0);
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
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

/// The folder that is named, and in it a name that is nobody's, with its path.
fn unique_in(host: &Host, parent: &Path) -> Result<(OwnedFd, PathBuf, PathBuf)> {
    let (folder, parent) = open_named(parent)?;
    // Whoever measures in a data folder was led beside it before; this holds everybody to it.
    if let Some(data) = data_folder_above(host, &parent) {
        let DataFolder { path: data, server } = data;
        return Err(Error::InDataFolder { path: parent, data, server, why: NoPlace::NotLedBeside });
    }
    let bits = random_bits().map_err(io_error("get random bits for", &parent))?;
    let name = PathBuf::from(format!("{SCRATCH_PREFIX}{bits:016x}"));
    let path = parent.join(&name);
    Ok((folder, name, path))
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
