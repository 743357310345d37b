//! Taking scratch files and folders away: only what was made, wherever it is by now, and no link followed.

use crate::{
    FileId, Outcome,
    file_id::SCRATCH_PREFIX,
    held::{empty, open_without_links, path_now},
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, ftruncate, openat, unlinkat},
    io::Errno,
};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    time::Duration,
};

/// Removes a scratch file.
pub(crate) fn remove_file(path: &Path, id: Option<FileId>, held: Option<BorrowedFd>) -> Outcome {
    match find(path, id) {
        Found::Ours(parent) => removed(unlink(&parent, path, AtFlags::empty())),
        Found::Other(outcome) => match held {
            None => outcome,
            // What another process has by another name keeps no room.
            Some(file) => moved(path, file, AtFlags::empty(), || Ok(ftruncate(file, 0)?)),
        },
    }
}

/// Removes a scratch folder with all that is in it.
pub(crate) fn remove_folder(path: &Path, id: Option<FileId>, held: Option<BorrowedFd>) -> Outcome {
    match find(path, id) {
        Found::Ours(parent) => match open_in(&parent, path).and_then(|it| {
            let same = id.is_none_or(|id| FileId::of_open(it.as_fd()).is_ok_and(|now| now == id));
            if same { Ok(it) } else { Err(Errno::STALE.into()) }
        }) {
            Ok(folder) => removed(patiently(|| {
                empty(folder.as_fd())?;
                unlink(&parent, path, AtFlags::REMOVEDIR)
            })),
            Err(error) => removed(Err(error)),
        },
        Found::Other(outcome) => match held {
            None => outcome,
            Some(folder) => moved(path, folder, AtFlags::REMOVEDIR, || patiently(|| empty(folder))),
        },
    }
}

/// What is under a path.
enum Found {
    /// What was made, in this folder.
    Ours(OwnedFd),
    /// Nothing, or something else; what to make of that where nothing is held.
    Other(Outcome),
}

/// What is under a path now. `id` is what was made; without it (killed between making it and noting that) only its
/// name says that it is ours.
fn find(path: &Path, id: Option<FileId>) -> Found {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Found::Other(Outcome::refused("its path has no name"));
    };
    let looked = open_without_links(parent)
        .and_then(|parent| Ok((FileId::at(parent.as_fd(), Path::new(name))?, parent)));
    match (looked, id) {
        (Ok((now, parent)), Some(id)) if now == id => Found::Ours(parent),
        (Ok(_), Some(_)) => Found::Other(Outcome::refused("another file has its name now")),
        (Ok((_, parent)), None) if name.to_string_lossy().starts_with(SCRATCH_PREFIX) => {
            Found::Ours(parent)
        }
        (Ok(_), None) => Found::Other(Outcome::refused("it is not known to be the one we made")),
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => {
            Found::Other(Outcome::AlreadyRight)
        }
        (Err(error), _) if error.kind() == io::ErrorKind::NotADirectory => Found::Other(
            Outcome::refused("a folder on the way there is now a link, or no folder any more"),
        ),
        (Err(error), _) => Found::Other(Outcome::failed(format!("cannot look at it: {error}"))),
    }
}

/// Of something that we hold and that has another name now: takes its content away, and it where it is.
fn moved(
    path: &Path,
    held: BorrowedFd,
    how: AtFlags,
    take_content: impl FnOnce() -> io::Result<()>,
) -> Outcome {
    if rustix::fs::fstat(held).is_ok_and(|known| known.st_nlink == 0) {
        return Outcome::AlreadyRight;
    }
    let content = take_content();
    let now = path_now(held);
    let there = || {
        let (now, id) = (now.as_deref()?, FileId::of_open(held).ok()?);
        match find(now, Some(id)) {
            Found::Ours(parent) => unlink(&parent, now, how).ok(),
            Found::Other(_) => None,
        }
    };
    let place = match &now {
        Some(now) if now != path => format!("somebody moved it to {}", now.display()),
        _ => "somebody moved it away".to_owned(),
    };
    match (content, there()) {
        (Ok(()), Some(())) => Outcome::Done,
        (Ok(()), None) => Outcome::refused(format!("{place}: it is empty now, and stays there")),
        (Err(error), _) => Outcome::failed(format!("{place}, and cannot be emptied: {error}")),
    }
}

fn open_in(parent: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, path.file_name().unwrap_or_default(), flags, Mode::empty())?)
}

fn unlink(parent: &OwnedFd, path: &Path, how: AtFlags) -> io::Result<()> {
    match unlinkat(parent, path.file_name().unwrap_or_default(), how) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// On a network filesystem a file that is still open keeps a hidden name in its folder (`.nfs…`,
/// `.fuse_hidden…`) until the kernel lets go of it, which for a ring's files is a moment after their user has
/// ended: two seconds are given for that.
fn patiently(remove: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..40 {
        match remove() {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
    remove()
}

fn removed(outcome: io::Result<()>) -> Outcome {
    match outcome {
        Ok(()) => Outcome::Done,
        Err(error) => Outcome::failed(format!("cannot delete: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    /// A scratch folder with a file and a folder in it, held; a folder of somebody else's; and one above both.
    struct Scene {
        _above: tempfile::TempDir,
        scratch: PathBuf,
        others: PathBuf,
        held: OwnedFd,
        id: FileId,
    }

    fn scene() -> Scene {
        let above = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = above.path().canonicalize().unwrap();
        let scratch = path.join(format!("{SCRATCH_PREFIX}0123"));
        let others = path.join("others");
        for folder in [&scratch, &others] {
            fs::create_dir_all(folder.join("below")).unwrap();
            fs::write(folder.join("data"), "words").unwrap();
            fs::write(folder.join("below/more"), "words").unwrap();
        }
        let held = fs::File::open(&scratch).unwrap().into();
        let id = FileId::of(&scratch).unwrap();
        Scene { _above: above, scratch, others, held, id }
    }

    impl Scene {
        fn others_are_whole(&self) {
            for file in ["data", "below/more"] {
                assert_eq!(fs::read_to_string(self.others.join(file)).unwrap(), "words");
            }
        }
    }

    #[test]
    fn a_folder_goes_with_all_that_is_in_it_and_what_its_links_lead_to_stays() {
        let scene = scene();
        symlink(&scene.others, scene.scratch.join("link")).unwrap();
        symlink(scene.others.join("data"), scene.scratch.join("below/link")).unwrap();
        let outcome = remove_folder(&scene.scratch, Some(scene.id), None);
        assert_eq!(outcome, Outcome::Done);
        assert!(!scene.scratch.exists());
        scene.others_are_whole();
        assert_eq!(remove_folder(&scene.scratch, Some(scene.id), None), Outcome::AlreadyRight);
    }

    #[test]
    fn a_folder_that_was_moved_is_removed_where_it_is() {
        let scene = scene();
        let away = scene.others.join("below/away");
        fs::rename(&scene.scratch, &away).unwrap();
        symlink(&scene.others, &scene.scratch).unwrap();
        let outcome = remove_folder(&scene.scratch, Some(scene.id), Some(scene.held.as_fd()));
        assert_eq!(outcome, Outcome::Done);
        assert!(!away.exists(), "ours is gone");
        assert!(scene.scratch.is_symlink(), "what is in its place is somebody else's");
        scene.others_are_whole();
    }

    #[test]
    fn what_another_process_made_is_removed_only_where_it_was_made() {
        let scene = scene();
        fs::rename(&scene.scratch, scene.others.join("away")).unwrap();
        assert_eq!(remove_folder(&scene.scratch, Some(scene.id), None), Outcome::AlreadyRight);
        fs::create_dir(&scene.scratch).unwrap();
        let refused = remove_folder(&scene.scratch, Some(scene.id), None);
        assert!(matches!(refused, Outcome::Refused { .. }), "{refused:?}");
        fs::remove_dir(&scene.scratch).unwrap();
        symlink(&scene.others, &scene.scratch).unwrap();
        let refused = remove_folder(&scene.scratch, Some(scene.id), None);
        assert!(matches!(refused, Outcome::Refused { .. }), "{refused:?}");
        scene.others_are_whole();
    }

    #[test]
    fn a_link_on_the_way_there_is_not_followed() {
        let scene = scene();
        let parent = scene.scratch.parent().unwrap();
        let link = parent.with_extension("link");
        symlink(parent, &link).unwrap();
        let path = link.join(scene.scratch.file_name().unwrap());
        let refused = remove_folder(&path, Some(scene.id), None);
        fs::remove_file(&link).unwrap();
        assert!(matches!(refused, Outcome::Refused { .. }), "{refused:?}");
        assert!(scene.scratch.exists());
    }

    #[test]
    fn a_file_that_was_moved_keeps_no_room() {
        let scene = scene();
        let (path, away) = (scene.scratch.join("data"), scene.others.join("away"));
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let id = FileId::of(&path).unwrap();
        fs::rename(&path, &away).unwrap();
        symlink(scene.others.join("data"), &path).unwrap();
        assert_eq!(remove_file(&path, Some(id), Some(file.as_fd())), Outcome::Done);
        assert!(!away.exists() && path.is_symlink());
        scene.others_are_whole();
    }
}
