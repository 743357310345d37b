//! Folders that are held open, so that what is done in them is done in them and nowhere else.
//!
//! Who may write in the folder above can rename a folder of ours and put another, or a link, under its name at
//! any moment. A path would then lead elsewhere; a descriptor does not. Links are followed in what the user
//! names, once; below that none is.

use crate::{Error, FileId, Result, error::io_error, mounts::mount_id};
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fchmod, mkdirat, open, openat, unlinkat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Component, Path, PathBuf},
    sync::Arc,
};

/// A folder that is held open.
#[derive(Clone, Debug)]
pub struct HeldFolder {
    path: PathBuf,
    fd: Arc<OwnedFd>,
}

/// A folder or a regular file in a folder that is held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeldEntry {
    /// Its name there.
    pub name: OsString,
    /// Which of the two.
    pub is_folder: bool,
}

/// For a folder that is only passed through, or made in.
const THROUGH: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(FOLLOW_NOTHING);
/// For a folder whose names are read.
const READING: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(FOLLOW_NOTHING);
const FOLLOW_NOTHING: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

impl HeldFolder {
    /// Opens the folder at a path in which nothing is a link.
    pub fn open(path: &Path) -> Result<HeldFolder> {
        let opened = open_without_links(path).and_then(|folder| to_read(folder.as_fd()));
        let fd = Arc::new(opened.map_err(io_error("open without following links", path))?);
        Ok(HeldFolder { path: path.to_owned(), fd })
    }

    /// The folder that a process works in.
    pub fn of_process(pid: u32) -> Result<HeldFolder> {
        let path = PathBuf::from(format!("/proc/{pid}/cwd"));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(&path, flags, Mode::empty());
        let fd = Arc::new(opened.map_err(|error| io_error("open", &path)(error.into()))?);
        Ok(HeldFolder { path, fd })
    }

    /// One that was just made at a path.
    pub(crate) fn of(path: PathBuf, fd: Arc<OwnedFd>) -> HeldFolder {
        HeldFolder { path, fd }
    }

    /// Where it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a folder in it that nobody but us may enter.
    pub fn create_folder(&self, name: impl AsRef<Path>) -> Result<HeldFolder> {
        let path = self.path.join(&name);
        let made = make_folder(self.fd.as_fd(), name.as_ref());
        let made = made.map_err(io_error("create", &path))?;
        Ok(HeldFolder { path, fd: Arc::new(made) })
    }

    /// Opens a folder in it; not what a link leads to.
    pub fn open_folder(&self, name: impl AsRef<Path>) -> Result<HeldFolder> {
        let path = self.path.join(&name);
        let opened = openat(&self.fd, name.as_ref(), READING, Mode::empty());
        let fd = Arc::new(opened.map_err(|error| io_error("open", &path)(error.into()))?);
        Ok(HeldFolder { path, fd })
    }

    /// Makes a file in it that was not there, for reading and writing.
    pub fn create_file(&self, name: impl AsRef<Path>) -> Result<File> {
        let made = make_file(self.fd.as_fd(), name.as_ref());
        made.map_err(io_error("create", self.path.join(name)))
    }

    /// Opens a file in it for reading; neither what a link leads to nor a pipe or a device.
    pub fn open_file(&self, name: impl AsRef<Path>) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | FOLLOW_NOTHING;
        let opened = openat(&self.fd, name.as_ref(), flags, Mode::empty());
        let file = opened.map(File::from).map_err(io::Error::from).and_then(|file| {
            let regular = file.metadata()?.is_file();
            if regular { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
        });
        file.map_err(io_error("open", self.path.join(name)))
    }

    /// The folders and the regular files in it, by name.
    pub fn entries(&self) -> Result<Vec<HeldEntry>> {
        let read = || -> io::Result<Vec<HeldEntry>> {
            let mut all = Vec::new();
            for entry in names(self.fd.as_fd())? {
                let entry = entry?;
                let kind = match entry.file_type() {
                    FileType::Unknown => {
                        let flags = AtFlags::SYMLINK_NOFOLLOW;
                        let known = rustix::fs::statat(&self.fd, entry.file_name(), flags)?;
                        FileType::from_raw_mode(known.st_mode)
                    }
                    known => known,
                };
                if matches!(kind, FileType::Directory | FileType::RegularFile) {
                    let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
                    all.push(HeldEntry { name, is_folder: kind == FileType::Directory });
                }
            }
            all.sort_unstable();
            Ok(all)
        };
        read().map_err(io_error("read", &self.path))
    }

    /// Takes a file in it away, or the link of that name; nothing where there is none.
    pub fn remove_file(&self, name: impl AsRef<Path>) -> Result<()> {
        match unlinkat(&self.fd, name.as_ref(), AtFlags::empty()) {
            Err(error) if error != Errno::NOENT => {
                Err(io_error("remove", self.path.join(name))(error.into()))
            }
            _ => Ok(()),
        }
    }

    /// Takes a folder in it away with all that is in it; nothing where there is none.
    pub fn remove_folder(&self, name: impl AsRef<Path>) -> Result<()> {
        let name = name.as_ref();
        let removed = match openat(&self.fd, name, READING, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => Err(error.into()),
            Ok(folder) => empty(folder.as_fd())
                .and_then(|()| Ok(unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)),
        };
        removed.map_err(io_error("remove", self.path.join(name)))
    }

    /// What tells it from others.
    pub fn id(&self) -> Result<FileId> {
        FileId::of_open(self.fd.as_fd()).map_err(io_error("look at", &self.path))
    }

    /// An error when its path does not lead to it any more: for programs that know paths alone.
    pub fn check(&self) -> Result<()> {
        let there = open_without_links(&self.path).and_then(|it| FileId::of_open(it.as_fd()));
        match there {
            Ok(id) if id == self.id()? => Ok(()),
            _ => Err(Error::Moved {
                path: self.path.clone(),
                now: path_now(self.fd.as_fd()).filter(|now| *now != self.path),
            }),
        }
    }
}

impl AsFd for HeldFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens the folder that is at `path` with nothing in the path a link.
pub(crate) fn open_without_links(path: &Path) -> io::Result<OwnedFd> {
    let mut folder = open("/", THROUGH, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::Normal(name) => folder = openat(&folder, name, THROUGH, Mode::empty())?,
            Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
        }
    }
    Ok(folder)
}

/// The folder that a user names, with all links followed, and its path without links.
pub(crate) fn open_named(path: &Path) -> Result<(OwnedFd, PathBuf)> {
    let path = fs::canonicalize(path).map_err(io_error("follow", path))?;
    let folder = open_without_links(&path).map_err(io_error("open", &path))?;
    Ok((folder, path))
}

/// The same folder, for reading its names.
fn to_read(folder: BorrowedFd) -> io::Result<OwnedFd> {
    Ok(openat(folder, ".", READING, Mode::empty())?)
}

/// Makes a folder and opens it. What comes under its name between the two is refused unless it is a folder of
/// our own that is empty.
pub(crate) fn make_folder(parent: BorrowedFd, name: &Path) -> io::Result<OwnedFd> {
    mkdirat(parent, name, Mode::RWXU)?;
    let folder = openat(parent, name, READING, Mode::empty())?;
    if names(folder.as_fd())?.next().is_some() || !is_own(folder.as_fd())? {
        return Err(io::Error::other("somebody else put another folder in its place at once"));
    }
    // A default access list of the folder above may have opened it to others.
    fchmod(&folder, Mode::RWXU)?;
    Ok(folder)
}

/// Whether an empty folder belongs to whom what we make belongs to: a file server may make that another user
/// than we are.
fn is_own(folder: BorrowedFd) -> io::Result<bool> {
    let probe = Path::new("owner");
    let owner = rustix::fs::fstat(folder)?.st_uid;
    if owner == rustix::process::geteuid().as_raw() {
        return Ok(true);
    }
    let file = make_file(folder, probe)?;
    unlinkat(folder, probe, AtFlags::empty())?;
    Ok(rustix::fs::fstat(&file)?.st_uid == owner)
}

/// Makes a file that was not there.
pub(crate) fn make_file(parent: BorrowedFd, name: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | FOLLOW_NOTHING;
    Ok(File::from(openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?))
}

/// The names in a folder, with what is there.
fn names(folder: BorrowedFd) -> io::Result<impl Iterator<Item = io::Result<rustix::fs::DirEntry>>> {
    let entries = Dir::read_from(folder)?;
    let is_own = |name: &[u8]| name == b"." || name == b"..";
    Ok(entries.map(|it| Ok(it?)).filter(move |entry: &io::Result<rustix::fs::DirEntry>| {
        entry.as_ref().map_or(true, |entry| !is_own(entry.file_name().to_bytes()))
    }))
}

/// Takes away all that is in a folder. Links are taken away, not followed; what is mounted in it stays, which
/// is an error.
pub(crate) fn empty(folder: BorrowedFd) -> io::Result<()> {
    for entry in names(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type() != FileType::Directory {
            match unlinkat(folder, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                // A filesystem that does not say what is a folder.
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let below = openat(folder, name, READING, Mode::empty())?;
        let mount = |file: BorrowedFd| mount_id(file, Path::new(""), AtFlags::EMPTY_PATH);
        if mount(below.as_fd()) != mount(folder) {
            return Err(io::Error::from(Errno::BUSY));
        }
        empty(below.as_fd())?;
        unlinkat(folder, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Where something open is now; `None` when it has no name any more.
pub(crate) fn path_now(file: BorrowedFd) -> Option<PathBuf> {
    let path = fs::read_link(own_path(file)).ok()?;
    // The kernel marks what has no name any more so; a name may end alike, and is then not found here.
    let named = path.is_absolute() && !path.to_string_lossy().ends_with(" (deleted)");
    named.then_some(path)
}

/// The path at which this process opens again what it holds open.
pub(crate) fn own_path(file: BorrowedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Why others could put something else under a path: the first folder on the way there in which somebody else
/// than this user and root may rename.
pub(crate) fn shared_with_others(path: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    const WRITABLE: u32 = 0o022;
    let us = rustix::process::geteuid().as_raw();
    for folder in path.ancestors() {
        let known = fs::symlink_metadata(folder)?;
        let owned = known.uid() == us || known.uid() == 0;
        if !owned || known.mode() & WRITABLE != 0 && known.mode() & STICKY == 0 {
            return Ok(Some(folder.to_owned()));
        }
    }
    Ok(None)
}

/// Opens a path for reading only to learn whether that works: neither a link nor a pipe in its place holds us.
pub(crate) fn try_reading(path: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | FOLLOW_NOTHING;
    openat(CWD, path, flags, Mode::empty())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn what_is_done_in_a_held_folder_is_done_there_whatever_its_path_leads_to() {
        let above = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = above.path().canonicalize().unwrap();
        let folder = HeldFolder::open(&path).unwrap().create_folder("ours").unwrap();
        folder.check().unwrap();
        let others = path.join("others");
        fs::create_dir(&others).unwrap();
        fs::rename(path.join("ours"), path.join("away")).unwrap();
        symlink(&others, path.join("ours")).unwrap();
        drop(folder.create_file("data").unwrap());
        folder.create_folder("below").unwrap();
        assert_eq!(names(folder.as_fd()).unwrap().count(), 2);
        assert_eq!(fs::read_dir(&others).unwrap().count(), 0);
        let moved = folder.check().unwrap_err().to_string();
        assert!(moved.contains("away now"), "{moved}");
        assert!(HeldFolder::open(&path.join("ours")).is_err(), "a link is not followed");
        folder.remove_folder("below").unwrap();
        assert!(!path.join("away/below").exists());
    }

    #[test]
    fn nobody_else_may_enter_what_is_made() {
        let above = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = above.path().canonicalize().unwrap();
        let folder = HeldFolder::open(&path).unwrap().create_folder("ours").unwrap();
        drop(folder.create_file("data").unwrap());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path.join("ours")), 0o700);
        assert_eq!(mode(&path.join("ours/data")), 0o600);
        assert!(folder.create_file("data").is_err(), "what is there is not opened");
        symlink(&path, path.join("ours/link")).unwrap();
        assert!(folder.create_file("link").is_err() && folder.open_folder("link").is_err());
        assert!(folder.open_file("link").is_err());
    }

    #[test]
    fn a_folder_that_others_may_change_is_found_on_the_way() {
        let above = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = above.path().canonicalize().unwrap();
        let below = path.join("a/b");
        fs::create_dir_all(&below).unwrap();
        assert_eq!(shared_with_others(&below).unwrap(), None, "/var/tmp is sticky");
        fs::set_permissions(path.join("a"), fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(shared_with_others(&below).unwrap(), Some(path.join("a")));
    }
}
