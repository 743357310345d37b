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
        && error.kind() != io::ErrorKind::NotFound
    {
        return Outcome::failed(format!("cannot delete {}: {error}", draft.display()));
    }
    let outcome = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::AlreadyRight,
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
    let is_rule = path.extension().is_some_and(|it| it == "rules");
    let gone = matches!(outcome, Outcome::Done | Outcome::AlreadyRight);
    if is_rule && gone && udev::missing(host).is_none() {
        udev::reload();
        // What the rule may still set must be set before it is put back.
        if let Err(error) = udev::settle() {
            return Outcome::failed(error.to_string());
        }
    }
    outcome
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
