//! What a target of the emulated world names.

use crate::WorldError;
use emulate::{DataPlace, Transport};
use std::{fmt, path::PathBuf};

/// `emulated:PROFILE`, with options behind commas.
#[derive(Clone, Debug, PartialEq)]
pub struct EmulatedTarget {
    /// The profile's name or file.
    pub profile: String,
    /// Where the device's data are; in the state folder when not named.
    pub data: Option<DataPlace>,
    /// What carries its requests; what this kernel has when not named.
    pub transport: Option<Transport>,
    /// Whether the pacing thread lets its CPU halt now and then; by the kind of device when not named.
    pub pauses: Option<bool>,
    /// As it was written.
    text: String,
}

impl EmulatedTarget {
    /// Of `PROFILE`, `PROFILE,data=memory` (or a folder), `PROFILE,transport=fuse`,
    /// `PROFILE,pauses=yes`.
    pub fn parse(text: &str) -> Result<EmulatedTarget, WorldError> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let mut target = EmulatedTarget {
            profile: name.to_owned(),
            data: None,
            transport: None,
            pauses: None,
            text: text.to_owned(),
        };
        for option in parts {
            match option.split_once('=') {
                Some(("data", "memory")) => target.data = Some(DataPlace::Memory),
                Some(("data", folder)) if PathBuf::from(folder).is_dir() => {
                    target.data = Some(DataPlace::Scratch(folder.into()));
                }
                Some(("data", other)) => {
                    return Err(WorldError::usage(format!(
                        "data={other} is neither `memory` nor a directory"
                    )));
                }
                Some(("transport", word)) => {
                    target.transport = Some(word.parse().map_err(WorldError::usage)?);
                }
                Some(("pauses", "yes")) => target.pauses = Some(true),
                Some(("pauses", "no")) => target.pauses = Some(false),
                _ => {
                    return Err(WorldError::usage(format!(
                        "unknown option '{option}' after the profile: write \
                         emulated:{name},data=memory (or a directory), \
                         emulated:{name},transport=fuse, emulated:{name},pauses=yes (or no)"
                    )));
                }
            }
        }
        Ok(target)
    }
}

impl fmt::Display for EmulatedTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("emulated:{}", self.text))
    }
}
