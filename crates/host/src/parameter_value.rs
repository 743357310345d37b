//! The value of a kernel module's parameter: reading it and putting it back.

use crate::Outcome;
use std::{fs, io, path::Path};

/// Puts a parameter back that was changed from `before` to `set`, unless somebody else changed it.
pub(crate) fn put_back(path: &Path, before: &str, set: &str) -> Outcome {
    match read(path) {
        Ok(now) if now == before => Outcome::AlreadyRight,
        Ok(now) if now != set => Outcome::refused(format!("it is {now} now")),
        Ok(_) => match fs::write(path, before) {
            Ok(()) => Outcome::Done,
            Err(error) => Outcome::failed(format!("cannot write it: {error}")),
        },
        // Its module was unloaded: when it is loaded again, its parameters have their defaults.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Outcome::AlreadyRight,
        Err(error) => Outcome::failed(format!("cannot read it: {error}")),
    }
}

pub(crate) fn read(path: &Path) -> io::Result<String> {
    fs::read_to_string(path).map(|text| text.trim().to_owned())
}
