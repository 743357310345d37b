//! A server's data directory: copied fresh for each trial, by reference where the filesystem can.

use crate::DatabaseError;
use host::{HeldFolder, User};
use rustix::fs::{Advice, fadvise, ioctl_ficlone};
use std::{fs::File, os::fd::AsFd};
use units::Bytes;

/// Copies a folder with all that is in it to a new one of this name in `home`, which then belongs to `owner`. The
/// files' blocks are shared until they are written, where both are in one filesystem that can do that
/// (ioctl_ficlone(2)). Gives the copy, and the bytes that were really copied. The folders belong to a server's
/// user: nothing in them is followed, and what is neither a folder nor a file is left out.
pub fn copy_data(
    from: &HeldFolder,
    home: &HeldFolder,
    name: &str,
    owner: Option<&User>,
) -> Result<(HeldFolder, Bytes), DatabaseError> {
    let mut copied = 0;
    let copy = home.create_folder(name)?;
    copy_folder(from, &copy, owner, &mut copied)?;
    Ok((copy, Bytes(copied)))
}

fn copy_folder(
    from: &HeldFolder,
    to: &HeldFolder,
    owner: Option<&User>,
    copied: &mut u64,
) -> Result<(), DatabaseError> {
    for entry in from.entries()? {
        if entry.is_folder {
            let below = to.create_folder(&entry.name)?;
            copy_folder(&from.open_folder(&entry.name)?, &below, owner, copied)?;
        } else {
            let (source, target) = (from.open_file(&entry.name)?, to.create_file(&entry.name)?);
            let path = from.path().join(&entry.name);
            let doing = || format!("copy {} to {}", path.display(), to.path().display());
            copy_file(&source, &target, copied)
                .and_then(|()| own(&target, owner))
                .map_err(DatabaseError::io(doing()))?;
        }
    }
    let finish = || -> std::io::Result<()> {
        rustix::fs::fchmod(to, rustix::fs::fstat(from)?.st_mode.into())?;
        own(to, owner)
    };
    finish().map_err(DatabaseError::io(format!("set the owner of {}", to.path().display())))
}

fn own(made: &impl AsFd, owner: Option<&User>) -> std::io::Result<()> {
    owner.map_or(Ok(()), |user| user.own(made.as_fd()))
}

fn copy_file(source: &File, target: &File, copied: &mut u64) -> std::io::Result<()> {
    if ioctl_ficlone(target, source).is_err() {
        let (mut reader, mut writer) = (source, target);
        *copied += std::io::copy(&mut reader, &mut writer)?;
    }
    target.set_permissions(source.metadata()?.permissions())
}

/// Writes back all files below a folder and drops them from the page cache, so that a trial begins
/// with nothing of them in memory.
pub fn flush_data(folder: &HeldFolder) -> Result<(), DatabaseError> {
    each(folder, &|file| {
        file.sync_all()?;
        // Advice: where it is not taken, the trial begins with a warmer cache.
        let _ = fadvise(file, 0, None, Advice::DontNeed);
        Ok(())
    })
}

/// Reads all files below a folder, so that a trial begins with them in the page cache, as far as that has
/// room.
pub fn warm_data(folder: &HeldFolder) -> Result<(), DatabaseError> {
    each(folder, &|file| match file.metadata()?.is_file() {
        true => {
            let mut reader = file;
            std::io::copy(&mut reader, &mut std::io::sink()).map(drop)
        }
        false => Ok(()),
    })
}

/// All files below a folder in the order of their names, each folder after what is in it.
fn each(
    folder: &HeldFolder,
    of: &dyn Fn(&File) -> std::io::Result<()>,
) -> Result<(), DatabaseError> {
    let path = folder.path();
    for entry in folder.entries()? {
        if entry.is_folder {
            each(&folder.open_folder(&entry.name)?, of)?;
        } else {
            let path = path.join(&entry.name);
            of(&folder.open_file(&entry.name)?)
                .map_err(DatabaseError::io(format!("flush or read {}", path.display())))?;
        }
    }
    folder
        .as_fd()
        .try_clone_to_owned()
        .and_then(|itself| of(&File::from(itself)))
        .map_err(DatabaseError::io(format!("flush {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_copy_has_everything_and_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let home = HeldFolder::open(&folder.path().canonicalize().unwrap()).unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("below")).unwrap();
        fs::write(from.join("below/file"), "text").unwrap();
        let held = home.open_folder("from").unwrap();
        let (copy, _) = copy_data(&held, &home, "to", None).unwrap();
        flush_data(&copy).unwrap();
        warm_data(&copy).unwrap();
        fs::write(to.join("below/file"), "other").unwrap();
        assert_eq!(fs::read_to_string(from.join("below/file")).unwrap(), "text");
        assert!(copy_data(&held, &home, "to", None).is_err(), "what is there is not written over");
    }

    #[test]
    fn a_link_in_a_servers_folder_is_neither_followed_nor_copied() {
        let folder = tempfile::tempdir().unwrap();
        let home = HeldFolder::open(&folder.path().canonicalize().unwrap()).unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "others' words").unwrap();
        let from = folder.path().join("from");
        fs::create_dir(&from).unwrap();
        std::os::unix::fs::symlink(&secret, from.join("ibdata1")).unwrap();
        std::os::unix::fs::symlink(folder.path(), from.join("below")).unwrap();
        let (copy, copied) =
            copy_data(&home.open_folder("from").unwrap(), &home, "to", None).unwrap();
        assert_eq!((copied, copy.entries().unwrap()), (Bytes::ZERO, Vec::new()));
        assert_eq!(fs::read_to_string(&secret).unwrap(), "others' words");
    }
}
