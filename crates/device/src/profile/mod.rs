//! Device profiles: descriptions in TOML, with units in the text and a source for each number.

mod catalog;
mod quantity;
mod schema;
mod sheet;

pub use catalog::{builtin_names, closest, find, load};
pub use sheet::{Depth, Sheet, Zone, measure};

use crate::array::{ArraySpec, Level};
use crate::disk::{DiskSpec, WriteCache};
use crate::flash::FlashSpec;
use crate::{Array, Device, Disk, Flash, SpecError};
use random::Stream;
use schema::{DiskTable, Document, FlashTable};
use std::collections::BTreeMap;

/// Why there is no such profile, or what is wrong in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// No profile has this name.
    #[error(
        "no profile is called '{name}'{}; `spindle profiles` lists them all, and a file's name \
         must end in .toml",
        suggestion(.near)
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// Names like it.
        near: Vec<String>,
    },
    /// The file cannot be read.
    #[error("{file}: cannot be read: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's error.
        why: String,
    },
    /// Something in the file is wrong.
    #[error("{file}, line {line}: {what}")]
    Wrong {
        /// The file, or the built-in profile's name.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What was found and what was expected.
        what: String,
    },
}

/// A description that TOML cannot express.
#[derive(Debug, thiserror::Error)]
#[error("the description cannot be written as TOML")]
pub struct NotWritable(#[source] toml::ser::Error);

fn suggestion(near: &[String]) -> String {
    match near {
        [] => String::new(),
        near => format!(" (did you mean {}?)", near.join(" or ")),
    }
}

/// What kind of device a profile describes.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// One drive.
    Disk(DiskSpec),
    /// Drives behind a controller.
    Array {
        /// The controller.
        spec: ArraySpec,
        /// How many drives.
        drives: usize,
        /// What each drive is.
        member: Box<Profile>,
    },
    /// A flash drive.
    Flash(FlashSpec),
}

/// A described device.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name: the file's, without `.toml`.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What to know about it.
    pub notes: Vec<String>,
    /// Field → where its number comes from.
    pub sources: BTreeMap<String, String>,
    /// The description.
    pub kind: Kind,
    /// The text it was read from, so that a run's record can embed it.
    pub text: String,
}

impl Profile {
    /// Reads a profile. `file` is used in messages; `member` finds the text of the profiles that an
    /// array names.
    pub fn parse(
        file: &str,
        text: &str,
        member: &dyn Fn(&str) -> Result<Profile, ProfileError>,
    ) -> Result<Profile, ProfileError> {
        let document: Document = toml::from_str(text).map_err(|error| ProfileError::Wrong {
            file: file.to_owned(),
            line: error.span().map_or(1, |span| line_of(text, span.start)),
            what: error.message().to_owned(),
        })?;
        let wrong = |section: &str, what: String| ProfileError::Wrong {
            file: file.to_owned(),
            line: section_line(text, section),
            what: format!("[{section}] {what}"),
        };
        let kind = match (&document.disk, &document.array, &document.flash) {
            (Some(table), None, None) => {
                let spec = table.spec().map_err(|error| wrong("disk", error.to_string()))?;
                Disk::new(spec.clone()).map_err(|error| wrong("disk", error.to_string()))?;
                Kind::Disk(spec)
            }
            (None, Some(table), None) => {
                let spec = table.spec().map_err(|error| wrong("array", error.to_string()))?;
                let mut member = member(&table.member)?;
                if let (Kind::Disk(disk), false) = (&mut member.kind, table.member_write_cache) {
                    disk.write_cache = WriteCache::Off;
                }
                Kind::Array { spec, drives: table.drives, member: Box::new(member) }
            }
            (None, None, Some(table)) => {
                Kind::Flash(table.spec().map_err(|error| wrong("flash", error.to_string()))?)
            }
            _ => {
                let what = "expected one of the sections [disk], [array], [flash]".to_owned();
                return Err(ProfileError::Wrong { file: file.to_owned(), line: 1, what });
            }
        };
        let section = match &kind {
            Kind::Disk(_) => "disk",
            Kind::Array { .. } => "array",
            Kind::Flash(_) => "flash",
        };
        let base = file.rsplit('/').next().unwrap_or(file);
        let profile = Profile {
            name: base.strip_suffix(".toml").unwrap_or(base).to_owned(),
            title: document.title,
            notes: document.notes,
            sources: document.sources,
            kind,
            text: text.to_owned(),
        };
        profile.check().map_err(|error| wrong(section, error.to_string()))?;
        Ok(profile)
    }

    /// Refuses what no device can be built from, without the cost of building one.
    fn check(&self) -> Result<(), SpecError> {
        match &self.kind {
            Kind::Disk(_) => Ok(()),
            Kind::Flash(spec) => Flash::check(spec),
            Kind::Array { spec, drives, member } => {
                // Mappings and limits do not depend on what the drives are; small ones will do.
                let small = |_| -> Result<Box<dyn Device>, SpecError> {
                    let mut member = member.clone();
                    if let Kind::Flash(flash) = &mut member.kind {
                        flash.state = crate::flash::State::Fresh;
                    }
                    member.build(0)
                };
                let drives = (0..*drives).map(small).collect::<Result<Vec<_>, _>>()?;
                Array::new(spec.clone(), drives).map(|_| ())
            }
        }
    }

    /// Builds the device. `seed` moves what is random in it, where each platter is at time 0
    /// included: the same seed, the same device.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Device>, SpecError> {
        self.build_with(seed, true)
    }

    /// The same with or without the rotational latency of its disks.
    pub fn build_with(&self, seed: u64, rotates: bool) -> Result<Box<dyn Device>, SpecError> {
        Ok(match &self.kind {
            Kind::Disk(spec) if !rotates => Box::new(Disk::new(spec.clone())?.without_rotation()),
            Kind::Disk(spec) => Box::new(Disk::new(spec.clone())?.at_any_angle(seed)),
            Kind::Flash(spec) => Box::new(Flash::new(spec.clone(), seed)?),
            Kind::Array { spec, drives, member } => {
                let drives = member.build_several(*drives, seed, rotates)?;
                Box::new(Array::new(spec.clone(), drives)?)
            }
        })
    }

    /// So many of them, each with chance of its own.
    pub fn build_several(
        &self,
        count: usize,
        seed: u64,
        rotates: bool,
    ) -> Result<Vec<Box<dyn Device>>, SpecError> {
        let mut seeds = Stream::new(seed, "drives");
        (0..count).map(|_| self.build_with(seeds.bits(), rotates)).collect()
    }

    /// Whether the kernel takes it for a disk with a head: an array shows what its drives are.
    pub fn rotates(&self) -> bool {
        match &self.kind {
            Kind::Disk(_) => true,
            Kind::Flash(_) => false,
            Kind::Array { member, .. } => member.rotates(),
        }
    }

    /// A word for lists: `disk`, `RAID 10 of 8`, `flash`.
    pub fn kind_name(&self) -> String {
        match &self.kind {
            Kind::Disk(_) => "disk".to_owned(),
            Kind::Flash(_) => "flash".to_owned(),
            Kind::Array { spec, drives, .. } => {
                let level = match spec.level {
                    Level::Stripe => "RAID 0",
                    Level::Mirror => "RAID 1",
                    Level::StripedMirrors => "RAID 10",
                    Level::Parity => "RAID 5",
                };
                format!("{level} of {drives}")
            }
        }
    }

    /// The profile of a description, such as an imported drive's, as TOML. An array names its drives'
    /// profile, and is not written.
    pub fn toml(
        title: &str,
        notes: Vec<String>,
        sources: BTreeMap<String, String>,
        kind: &Kind,
    ) -> Result<String, NotWritable> {
        let (disk, flash) = match kind {
            Kind::Disk(spec) => (Some(DiskTable::from_spec(spec)), None),
            Kind::Flash(spec) => (None, Some(FlashTable::from_spec(spec))),
            Kind::Array { .. } => (None, None),
        };
        let title = title.to_owned();
        toml::to_string(&Document { title, notes, sources, disk, array: None, flash })
            .map_err(NotWritable)
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

fn section_line(text: &str, section: &str) -> usize {
    let header = format!("[{section}]");
    text.lines().position(|line| line.trim() == header).map_or(1, |at| at + 1)
}
