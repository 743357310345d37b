//! Who else sets queue settings on this host: udev rules, systemd units, tuned, saptune, cloud agents,
//! sysfs.d, tmpfiles.d, scripts at boot, the boot line.
//!
//! Each is read as its program reads it, for the devices in question: what is for other disks is left
//! out, and a condition that cannot be known here is named. Every statement has the file and the line.

mod boot;
mod cloud;
mod glob;
mod saptune;
mod shell;
mod systemd;
mod tuned;
mod udev;
mod view;

use crate::{DeviceNumber, Host, Setting};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
pub use tuned::{TunedState, tuned_state};
use view::View;

/// A place that sets queue settings of a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// By which program.
    pub by: OwnerKind,
    /// Where.
    pub file: PathBuf,
    /// Which line, from 1; 0 when the file as a whole says it.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// What it sets, in the order in which it does.
    pub settings: Vec<OwnedSetting>,
    /// Names of the devices that it sets them on, of those in question.
    pub devices: Vec<String>,
    /// The rule or unit that runs `file`, when that is a script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_by: Option<Place>,
    /// The events at which udev would do it: "add", "change".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Conditions that cannot be decided from here. Without any it is certain that it applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Whether the program that would do it runs now, or did at boot.
    pub active: bool,
}

/// A setting below `queue/` that an owner sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedSetting {
    /// As in sysfs: "scheduler", "iosched/low_latency".
    pub name: String,
    /// To what; none where that is computed.
    pub value: Option<String>,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// From 1; 0 for the file as a whole.
    pub line: usize,
}

/// The programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// udev, at `add` and `change` events of a device.
    Udev,
    /// A unit of systemd's, when it starts.
    Systemd,
    /// tuned, by its active profile.
    Tuned,
    /// saptune, by its applied notes.
    Saptune,
    /// The guest agent of Google Compute Engine, when it starts.
    GceAgent,
    /// sysfsutils, once at boot.
    SysfsConf,
    /// systemd-tmpfiles, once at boot.
    Tmpfiles,
    /// A script that runs once at boot: rc.local.
    BootScript,
    /// cron.
    Cron,
    /// The kernel's command line, which since 5.0 does nothing for schedulers.
    BootLine,
}

impl OwnerKind {
    /// The program's name.
    pub const fn name(self) -> &'static str {
        match self {
            OwnerKind::Udev => "udev",
            OwnerKind::Systemd => "systemd",
            OwnerKind::Tuned => "tuned",
            OwnerKind::Saptune => "saptune",
            OwnerKind::GceAgent => "google_guest_agent",
            OwnerKind::SysfsConf => "sysfsutils",
            OwnerKind::Tmpfiles => "systemd-tmpfiles",
            OwnerKind::BootScript => "a script at boot",
            OwnerKind::Cron => "cron",
            OwnerKind::BootLine => "the boot line",
        }
    }
}

impl Owner {
    /// What it sets this to, if it sets it: `Some(None)` where the value is computed.
    pub fn sets(&self, setting: &Setting) -> Option<Option<&str>> {
        let name = setting.to_string();
        let found = self.settings.iter().rev().find(|it| it.name == name)?;
        Some(found.value.as_deref())
    }

    /// Whether nothing is unknown about it and its program runs.
    pub fn is_certain(&self) -> bool {
        self.active && self.unknown.is_empty()
    }

    /// Where it says so.
    pub fn place(&self) -> Place {
        Place { file: self.file.clone(), line: self.line }
    }

    /// The settings' names.
    pub fn setting_names(&self) -> Vec<&str> {
        self.settings.iter().map(|it| it.name.as_str()).collect()
    }
}

/// All that set a setting of one of these devices, in the order in which they would act.
pub fn owners(host: &Host, devices: &[DeviceNumber]) -> Vec<Owner> {
    let mut seen = Vec::new();
    let mut views: Vec<View<'_>> = Vec::new();
    for view in devices.iter().filter_map(|number| View::read(host, *number)) {
        // A partition and its disk share a queue.
        if !seen.contains(&view.name) {
            seen.push(view.name.clone());
            views.push(view);
        }
    }
    let units = systemd::Units::read(host);
    let rules = udev::Rules::read(host);
    let mut found = Vec::new();
    for view in &views {
        for owner in boot::line(view)
            .into_iter()
            .chain(boot::sysfs_conf(view, &units))
            .chain(boot::tmpfiles(view))
            .chain(boot::scripts(view))
            .chain(rules.owners(view))
            .chain(systemd::owners(view, &units))
            .chain(cloud::gce_agent(view, &units))
            .chain(saptune::owners(view, &units))
            .chain(tuned::owners(view))
        {
            add(&mut found, owner);
        }
    }
    found.sort_by_key(|owner| order(owner.by));
    found
}

/// Udev acts when a device appears, units and agents after it, tuned last.
fn order(by: OwnerKind) -> usize {
    const ORDER: [OwnerKind; 10] = [
        OwnerKind::BootLine,
        OwnerKind::Udev,
        OwnerKind::SysfsConf,
        OwnerKind::Tmpfiles,
        OwnerKind::BootScript,
        OwnerKind::Systemd,
        OwnerKind::GceAgent,
        OwnerKind::Saptune,
        OwnerKind::Tuned,
        OwnerKind::Cron,
    ];
    ORDER.iter().position(|it| *it == by).unwrap_or(ORDER.len())
}

/// One statement for all devices of which it is the same.
fn add(found: &mut Vec<Owner>, owner: Owner) {
    let same = |it: &&mut Owner| {
        let mut it = (*it).clone();
        it.devices.clone_from(&owner.devices);
        it == owner
    };
    match found.iter_mut().find(same) {
        Some(known) => known.devices.extend(owner.devices),
        None => found.push(owner),
    }
}

/// The files of several folders by their names, where one in a later folder hides those of its name
/// before it.
fn files_in(host: &Host, folders: &[&str], ending: &str) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    for folder in folders {
        for name in host.names(folder).into_iter().filter(|name| name.ends_with(ending)) {
            files.insert(name.clone(), Path::new(folder).join(name));
        }
    }
    files
}

/// A line of a file after its continuations are joined, with the number of its first.
struct Line {
    number: usize,
    text: String,
}

/// Lines joined at `\`; those that begin with one of `comments` are left out, also between joined ones.
fn joined_lines(text: &str, comments: &[char]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut open: Option<Line> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with(comments) {
            continue;
        }
        let (part, goes_on) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        let current = open.get_or_insert_with(|| Line { number: index + 1, text: String::new() });
        current.text.push_str(part);
        if !goes_on {
            lines.extend(open.take());
        }
    }
    lines.extend(open);
    lines.retain(|line| !line.text.trim().is_empty());
    lines
}

#[cfg(test)]
mod tests;
