//! Settings that were applied to stay: the journal of the changes is kept, with what it was all for,
//! until `spindle undo` takes them back, be it days and reboots later.

use crate::{
    Application, Error, Event, Host, HostIdentity, KeptSetting, Made, PendingJournal, QueueFolder,
    Reading, Result, Setting, active_profile,
    error::io_error,
    is_as_written,
    journal::{APPLIED, Journal, latest_first},
    lasting_file::is_rule,
    undo::{Thing, things},
};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

/// A journal whose changes are to stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedJournal {
    /// Where it is.
    pub path: PathBuf,
    /// What was applied.
    pub application: Application,
    /// Whether it was confirmed, or never had to be.
    pub confirmed: bool,
    /// The boot in which it was applied.
    pub boot_id: String,
    /// The host on which it was applied, where that is not this one.
    pub other_host: Option<String>,
    /// Files and the like that were made for it.
    pub made: Vec<Made>,
}

/// Whether something that was applied is still so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// What.
    pub what: StandingOf,
    /// How it is.
    pub state: StandingState,
}

/// What can still be as it was applied, or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandingOf {
    /// A setting of a device.
    Setting {
        /// The device's name now, or when it was set.
        device: String,
        /// Which setting.
        setting: Setting,
        /// What it was set to.
        set_to: String,
    },
    /// A file that makes settings last.
    File {
        /// Where.
        path: PathBuf,
    },
    /// The profile that tuned uses.
    Profile {
        /// Its name.
        name: String,
    },
}

/// How it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandingState {
    /// As it was applied.
    InForce,
    /// Something else.
    Changed {
        /// What it is.
        to: String,
    },
    /// The host was started again since, and nothing sets it at that.
    EndedWithBoot {
        /// What it is now.
        to: String,
    },
    /// The device or the file is not there.
    Gone,
}

impl AppliedJournal {
    /// Whether all that was applied is still in force.
    pub fn standings(&self, host: &Host) -> Vec<Standing> {
        let same_boot = self.boot_id == crate::journal::boot_id(host);
        let lasts = self.made.iter().any(|made| matches!(made, Made::LastingFile { .. }));
        let mut all = Vec::new();
        for kept in &self.application.settings {
            let now = kept.device.find_again(host);
            let reads = now
                .as_ref()
                .and_then(|now| QueueFolder::of(host, now.number).ok()?.read(&kept.setting).ok());
            let state = match reads {
                None => StandingState::Gone,
                Some(reads) if reads == kept.value => StandingState::InForce,
                Some(to) if !same_boot && !lasts => StandingState::EndedWithBoot { to },
                Some(to) => StandingState::Changed { to },
            };
            let device = now.map_or_else(|| kept.device.name.clone(), |now| now.name);
            let (setting, set_to) = (kept.setting.clone(), kept.value.clone());
            all.push(Standing { what: StandingOf::Setting { device, setting, set_to }, state });
        }
        for made in &self.made {
            match made {
                Made::LastingFile { path, text } => all.push(Standing {
                    what: StandingOf::File { path: path.clone() },
                    state: match is_as_written(path, text) {
                        Some(true) => StandingState::InForce,
                        Some(false) => StandingState::Changed { to: "edited".to_owned() },
                        None => StandingState::Gone,
                    },
                }),
                Made::ActiveProfile { set, .. } => all.push(Standing {
                    what: StandingOf::Profile { name: set.clone() },
                    state: match active_profile(host) {
                        Some(active) if active == *set => StandingState::InForce,
                        Some(to) => StandingState::Changed { to },
                        None => StandingState::Gone,
                    },
                }),
                _ => {}
            }
        }
        all
    }

    /// Its file's name without the ending.
    pub fn name(&self) -> String {
        name_of(&self.path)
    }

    /// Which of `all` was applied in the place of this one.
    pub fn replaced_by<'a>(&self, all: &'a [AppliedJournal]) -> Option<&'a AppliedJournal> {
        let name = self.name();
        all.iter().find(|it| it.application.replaces.as_deref() == Some(name.as_str()))
    }

    /// The udev rules that make it last, with their text.
    pub fn rules(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.made.iter().filter_map(|made| match made {
            Made::LastingFile { path, text } if is_rule(path) => Some((&**path, text.as_str())),
            _ => None,
        })
    }

    /// The profile that tuned was made to use, and the one that it used before.
    pub fn profile(&self) -> Option<(&str, &str)> {
        self.made.iter().find_map(|made| match made {
            Made::ActiveProfile { before, set } => Some((set.as_str(), before.as_str())),
            _ => None,
        })
    }

    /// What it has in force and later settings leave alone.
    pub fn still_in_force(&self, host: &Host, later: &[KeptSetting]) -> Vec<KeptSetting> {
        let is_later = |number, setting: &Setting| {
            later.iter().any(|it| it.device.number == number && it.setting == *setting)
        };
        let settings = self.application.settings.iter().filter_map(|kept| {
            let device = kept.device.find_again(host)?;
            let reads = QueueFolder::of(host, device.number).ok()?.read(&kept.setting).ok()?;
            let stays = reads == kept.value && !is_later(device.number, &kept.setting);
            stays.then(|| KeptSetting { device, ..kept.clone() })
        });
        settings.collect()
    }

    fn read(path: &Path) -> Result<Option<AppliedJournal>> {
        let reading = read_journal(path)?;
        let here = HostIdentity::read(&Host::here());
        let of = |event: &Event| match event {
            Event::Applied(application) => Some(application.clone()),
            _ => None,
        };
        let Some(application) = reading.entries.iter().find_map(|it| of(&it.event)) else {
            return Ok(None);
        };
        let confirmed = application.confirm_by.is_none()
            || reading.entries.iter().any(|it| it.event == Event::Confirmed);
        let made = things(&reading.entries).into_iter().filter_map(|thing| match thing {
            Thing::Made { made, .. } => Some(made),
            Thing::Queue(_) => None,
        });
        Ok(Some(AppliedJournal {
            path: path.to_owned(),
            confirmed,
            boot_id: reading.started().map(|(_, boot, ..)| boot.to_owned()).unwrap_or_default(),
            other_host: reading.other_host(&here).map(|host| host.name.clone()),
            made: made.collect(),
            application,
        }))
    }

    /// Takes the journal for an undo; `None` when it is gone, or another process is about it.
    pub fn take(&self) -> Result<Option<PendingJournal>> {
        take(&self.path)
    }

    /// Notes that it shall stay, and ends what would take it back.
    pub fn confirm(&self, host: &Host) -> Result<()> {
        let Some(pending) = take(&self.path)? else {
            return Err(Error::Missing { what: "applied setting", path: self.path.clone() });
        };
        let mut journal = Journal::reopen(&pending)?;
        journal.append(Event::Confirmed)?;
        let open = things(journal.entries());
        for thing in open {
            if let Thing::Made { n, made: made @ Made::Reversal(_), id } = thing
                && made.unmake(host, id, None).is_right()
            {
                journal.append(Event::Gone { n })?;
            }
        }
        Ok(())
    }
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// All that is applied on this host, the latest first, where the files can be read.
pub fn applied(folder: &Path) -> Result<Vec<AppliedJournal>> {
    Ok(applied_anywhere(folder)?.into_iter().filter(|it| it.other_host.is_none()).collect())
}

/// All that is applied on this host and on others whose state folder this is, too.
pub fn applied_anywhere(folder: &Path) -> Result<Vec<AppliedJournal>> {
    let mut found = Vec::new();
    for path in files(folder) {
        found.extend(AppliedJournal::read(&path)?);
    }
    Ok(found)
}

/// Every kept journal of this host, the latest first, taken for an undo, whatever can be read of it.
pub fn take_applied(folder: &Path) -> Result<Vec<PendingJournal>> {
    let mut all = Vec::new();
    let here = HostIdentity::read(&Host::here());
    for path in files(folder) {
        all.extend(take(&path)?.filter(|it| it.reading.other_host(&here).is_none()));
    }
    latest_first(&mut all);
    Ok(all)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let names = crate::tree::names(folder).into_iter().rev().map(|name| folder.join(name));
    names.filter(|path| path.extension().is_some_and(|it| it == APPLIED)).collect()
}

fn take(path: &Path) -> Result<Option<PendingJournal>> {
    let Some(held) = lock(path)? else { return Ok(None) };
    let reading = read_journal(path)?;
    Ok(Some(PendingJournal { path: path.to_owned(), reading, _lock: held }))
}

/// Locks a kept journal; `None` when it is gone, or another process holds it.
fn lock(path: &Path) -> Result<Option<File>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("open", path)(error)),
    };
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok((locked && path.exists()).then_some(file))
}

/// What can be read of a journal.
fn read_journal(path: &Path) -> Result<Reading> {
    fs::read(path).map(|bytes| Reading::of(&bytes)).map_err(io_error("read", path))
}
