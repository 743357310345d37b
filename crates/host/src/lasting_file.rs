//! Configuration files of our own in the folders of udev and tuned: written whole or not at all, removed
//! only while they are as we wrote them.

use crate::{
    Host, Outcome, Result,
    error::io_error,
    tuned::{self, PREFIX},
    udev,
};
use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Whole or not at all: udev and tuned do not read files with another ending.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(io_error("create", folder))?;
    let draft = draft_of(path);
    let mut file = File::create(&draft).map_err(io_error("create", &draft))?;
    file.write_all(text.as_bytes()).map_err(io_error("write", &draft))?;
    file.sync_all().map_err(io_error("sync", &draft))?;
    fs::rename(&draft, path).map_err(io_error("rename", &draft))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(io_error("sync", folder))
}

fn draft_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".draft");
    PathBuf::from(name)
}

/// Whether a file is still as it was written; `None` where it is gone.
pub fn is_as_written(path: &Path, text: &str) -> Option<bool> {
    fs::read_to_string(path).ok().map(|now| now == text)
}

/// Takes a configuration file away, if it is as we wrote it.
pub(crate) fn remove_file(host: &Host, path: &Path, text: &str) -> Outcome {
    let draft = draft_of(path);
    if let Err(error) = fs::remove_file(&draft)
        && !is_gone(&error)
    {
        return Outcome::failed(format!("cannot delete {}: {error}", draft.display()));
    }
    let outcome = match fs::read_to_string(path) {
        Err(error) if is_gone(&error) => Outcome::AlreadyRight,
        Err(error) => Outcome::failed(format!("cannot read it: {error}")),
        Ok(now) if now != text => {
            Outcome::refused("it was edited since it was written: remove it yourself")
        }
        Ok(_) => match fs::remove_file(path) {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::failed(format!("cannot delete: {error}")),
        },
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    if folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX)) {
        // The profile's own folder; one that holds something else stays.
        let _ = fs::remove_dir(folder);
    }
    match outcome.is_right() && is_rule(path) {
        true => heeded_by_udev(host, outcome),
        false => outcome,
    }
}

/// Whether there is no such file, nor ever was where its folder is none.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether a configuration file is a rule of udev.
pub(crate) fn is_rule(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "rules")
}

/// Once udev knows of a changed rule: what the rule may still set must be set before it is put back.
fn heeded_by_udev(host: &Host, outcome: Outcome) -> Outcome {
    if udev::missing(host).is_some() {
        return outcome;
    }
    udev::reload();
    match udev::settle() {
        Ok(()) => outcome,
        Err(error) => Outcome::failed(error.to_string()),
    }
}

/// Writes a rule again that was taken away for a later one.
pub(crate) fn bring_back(host: &Host, path: &Path, text: &str) -> Outcome {
    match is_as_written(path, text) {
        Some(true) => Outcome::AlreadyRight,
        Some(false) => Outcome::refused("another file has its name now: look at it yourself"),
        None => match write_whole(path, text) {
            Ok(()) => heeded_by_udev(host, Outcome::Done),
            Err(error) => Outcome::failed(error.to_string()),
        },
    }
}

/// Makes tuned use the profile that it had, if it still uses ours.
pub(crate) fn restore_profile(host: &Host, before: &str, set: &str) -> Outcome {
    match tuned::active_profile(host) {
        Some(active) if active == set => match tuned::activate(before) {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::failed(error.to_string()),
        },
        Some(active) if active != before => {
            Outcome::refused(format!("tuned uses {active} now, which somebody chose since"))
        }
        _ => Outcome::AlreadyRight,
    }
}
