//! A server's data directory: copied fresh for each trial, by reference where the filesystem can.

use crate::DatabaseError;
use host::User;
use rustix::fs::{Advice, fadvise, ioctl_ficlone};
use std::{
    fs::{self, File},
    os::unix::fs::chown,
    path::{Path, PathBuf},
};
use units::Bytes;

/// Copies a folder with all that is in it into a new one, which then belongs to `owner`. The files'
/// blocks are shared until they are written, where both are in one filesystem that can do that
/// (ioctl_ficlone(2)). Gives the bytes that were really copied.
pub fn copy_data(from: &Path, to: &Path, owner: Option<&User>) -> Result<Bytes, DatabaseError> {
    let mut copied = 0;
    copy_folder(from, to, owner, &mut copied).map_err(DatabaseError::io(format!(
        "copy {} to {}",
        from.display(),
        to.display()
    )))?;
    Ok(Bytes(copied))
}

fn copy_folder(
    from: &Path,
    to: &Path,
    owner: Option<&User>,
    copied: &mut u64,
) -> std::io::Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&source, &target, owner, copied)?;
        } else if kind.is_file() {
            copy_file(&source, &target, copied)?;
            own(&target, owner)?;
        }
    }
    own(to, owner)
}

fn own(path: &Path, owner: Option<&User>) -> std::io::Result<()> {
    match owner {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)),
        None => Ok(()),
    }
}

fn copy_file(from: &Path, to: &Path, copied: &mut u64) -> std::io::Result<()> {
    let source = File::open(from)?;
    let target = File::create_new(to)?;
    if ioctl_ficlone(&target, &source).is_err() {
        let (mut reader, mut writer) = (&source, &target);
        *copied += std::io::copy(&mut reader, &mut writer)?;
    }
    target.set_permissions(source.metadata()?.permissions())
}

/// Writes back all files below a folder and drops them from the page cache, so that a trial begins
/// with nothing of them in memory.
pub fn flush_data(folder: &Path) -> Result<(), DatabaseError> {
    let flush = |path: &Path| {
        let file = File::open(path)?;
        file.sync_all()?;
        // Advice: where it is not taken, the trial begins with a warmer cache.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        Ok(())
    };
    each(folder, &flush).map_err(DatabaseError::io(format!("flush {}", folder.display())))
}

/// Reads all files below a folder, so that a trial begins with them in the page cache, as far as that has
/// room.
pub fn warm_data(folder: &Path) -> Result<(), DatabaseError> {
    let read = |path: &Path| match path.is_file() {
        true => std::io::copy(&mut File::open(path)?, &mut std::io::sink()).map(drop),
        false => Ok(()),
    };
    each(folder, &read).map_err(DatabaseError::io(format!("read {}", folder.display())))
}

/// All folders and files below a folder in the order of their names, then itself.
fn each(folder: &Path, of: &dyn Fn(&Path) -> std::io::Result<()>) -> std::io::Result<()> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.sort_unstable();
    for path in paths {
        if path.is_dir() {
            each(&path, of)?;
        } else if path.is_file() {
            of(&path)?;
        }
    }
    of(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything_and_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir_all(from.join("below")).unwrap();
        fs::write(from.join("below/file"), "text").unwrap();
        let to = folder.path().join("to");
        copy_data(&from, &to, None).unwrap();
        flush_data(&to).unwrap();
        warm_data(&to).unwrap();
        fs::write(to.join("below/file"), "other").unwrap();
        assert_eq!(fs::read_to_string(from.join("below/file")).unwrap(), "text");
        assert!(copy_data(&from, &to, None).is_err(), "what is there is not written over");
    }
}
