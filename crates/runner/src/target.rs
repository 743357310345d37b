//! What a run is made on.

use crate::{
    Options, World, WorldError,
    worlds::{EmulatedTarget, EmulatedWorld, RealWorld, SimulatedTarget, SimulatedWorld},
};
use host::TargetKind;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// What a run is made on, as the user named it.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A directory, in which scratch files are made.
    Directory(PathBuf),
    /// A file: scratch files are made beside it.
    File(PathBuf),
    /// A block device, which is overwritten.
    BlockDevice(PathBuf),
    /// A model's timing under this kernel.
    Emulated(EmulatedTarget),
    /// A model of device and kernel.
    Simulated(SimulatedTarget),
    /// What other programs printed: it can be reported, and not be measured again.
    Imported(String),
}

/// An imported run was to be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "imported:{file} is what other programs printed, and cannot be measured: `spindle import {file} --plan \
     FILE` writes a plan that measures the same"
)]
struct NotMeasurable {
    file: String,
}

impl Target {
    /// Reads a target. A path is made absolute, so that it means the same from every directory, and must
    /// exist.
    pub fn parse(text: &str) -> Result<Target, WorldError> {
        match text.split_once(':') {
            Some(("simulated", options)) => SimulatedTarget::parse(options).map(Target::Simulated),
            Some(("emulated", options)) => EmulatedTarget::parse(options).map(Target::Emulated),
            Some(("imported", file)) => Ok(Target::Imported(file.to_owned())),
            _ => Target::of_path(Path::new(text)),
        }
    }

    fn of_path(path: &Path) -> Result<Target, WorldError> {
        let path = std::path::absolute(path).map_err(WorldError::usage)?;
        Ok(match TargetKind::of(&path).map_err(WorldError::usage)? {
            TargetKind::Directory => Target::Directory(path),
            TargetKind::File => Target::File(path),
            TargetKind::BlockDevice => Target::BlockDevice(path),
        })
    }

    /// The world that it is in. Nothing is changed by opening it.
    pub fn open(&self, options: &Options) -> Result<Box<dyn World>, WorldError> {
        Ok(match self {
            Target::Directory(path) | Target::File(path) | Target::BlockDevice(path) => {
                Box::new(RealWorld::open(path, options)?)
            }
            Target::Emulated(target) => Box::new(EmulatedWorld::open(target, options)?),
            Target::Simulated(target) => Box::new(SimulatedWorld::open(target, options)?),
            Target::Imported(file) => {
                return Err(WorldError::usage(NotMeasurable { file: file.clone() }));
            }
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Directory(path) | Target::File(path) | Target::BlockDevice(path) => {
                f.pad(&path.to_string_lossy())
            }
            Target::Emulated(target) => target.fmt(f),
            Target::Simulated(target) => target.fmt(f),
            Target::Imported(file) => f.pad(&format!("imported:{file}")),
        }
    }
}
