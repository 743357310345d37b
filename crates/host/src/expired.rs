//! What was applied for a time and taken back because nobody confirmed it: the last of them, until something is applied
//! again.

use crate::{Application, Result, error::io_error};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// An application that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expired {
    /// The run that recommended it.
    pub run: String,
    /// What was set, for people.
    pub label: String,
    /// When it was taken back, in seconds since 1970.
    pub at: i64,
}

impl Expired {
    /// Notes in a state folder that an application was taken back.
    pub fn note(folder: &Path, application: &Application, at: i64) -> Result<()> {
        let expired =
            Expired { run: application.run.clone(), label: application.label.clone(), at };
        serde_json::to_string(&expired)
            .map_err(io::Error::from)
            .and_then(|text| fs::write(file(folder), text))
            .map_err(io_error("write", file(folder)))
    }

    /// The last one, if nothing was applied since.
    pub fn last(folder: &Path) -> Option<Expired> {
        serde_json::from_str(&fs::read_to_string(file(folder)).ok()?).ok()
    }

    /// Forgets it.
    pub fn forget(folder: &Path) -> Result<()> {
        match fs::remove_file(file(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error("remove", file(folder))(error))
            }
            _ => Ok(()),
        }
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("expired.json")
}
