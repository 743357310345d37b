//! tuned: its active profile, merged with those that it includes (tuned-profiles(7), tuned.conf(5)).

use super::{OwnedSetting, Owner, OwnerKind, View, glob, shell};
use crate::Host;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What tuned's disk plug-in sets, and the setting that each is. It has none for `nr_requests`.
const OPTIONS: [(&str, &str); 3] = [
    ("elevator", "scheduler"),
    ("readahead", "read_ahead_kb"),
    ("scheduler_quantum", "iosched/quantum"),
];

/// Where profiles are looked for, the first first.
const FOLDERS: [&str; 4] =
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];

/// tuned on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedState {
    /// The active profile; several are merged in this order.
    pub profiles: Vec<String>,
    /// The file of each that was found.
    pub files: Vec<PathBuf>,
    /// Whether tuned runs.
    pub runs: bool,
}

/// What tuned does here; none where it has no active profile.
pub fn tuned_state(host: &Host) -> Option<TunedState> {
    let active = host.text("/etc/tuned/active_profile")?;
    let profiles: Vec<String> = active.split_whitespace().map(str::to_owned).collect();
    if profiles.is_empty() {
        return None;
    }
    let files = profiles.iter().filter_map(|profile| file_of(host, profile)).collect();
    Some(TunedState { profiles, files, runs: runs(host) })
}

/// Whether the process that its file names is there.
fn runs(host: &Host) -> bool {
    ["/run/tuned/tuned.pid", "/var/run/tuned/tuned.pid"].iter().any(|file| {
        let pid = host.text(file).and_then(|pid| pid.parse::<u32>().ok());
        pid.is_some_and(|pid| host.path(format!("/proc/{pid}")).exists())
    })
}

fn file_of(host: &Host, profile: &str) -> Option<PathBuf> {
    let file = |folder: &&str| Path::new(folder).join(profile).join("tuned.conf");
    FOLDERS.iter().map(file).find(|file| host.path(file).is_file())
}

/// A line `key=value`, with its place.
#[derive(Clone, Debug)]
struct Entry {
    key: String,
    value: String,
    file: PathBuf,
    line: usize,
}

/// A section, and the lines of those of its name that were merged into it.
#[derive(Clone, Debug)]
struct Section {
    name: String,
    settings: Vec<Entry>,
}

impl Section {
    fn value(&self, key: &str) -> Option<&str> {
        self.settings.iter().find(|it| it.key == key).map(|it| it.value.as_str())
    }

    /// The plug-in: a section's name is its own unless it says otherwise.
    fn plugin(&self) -> &str {
        self.value("type").unwrap_or(&self.name)
    }

    fn is(&self, key: &str, otherwise: bool) -> bool {
        match self.value(key).map(str::to_lowercase).as_deref() {
            Some("1" | "true" | "yes" | "on" | "y" | "t") => true,
            Some(_) => false,
            None => otherwise,
        }
    }
}

/// What the active profile sets on this device.
pub(super) fn owners(view: &View<'_>) -> Vec<Owner> {
    let Some(state) = tuned_state(view.host) else { return Vec::new() };
    let mut merged = Vec::new();
    let mut seen = Vec::new();
    for profile in &state.profiles {
        load(view.host, profile, &mut merged, &mut seen);
    }
    let variables: Vec<(String, String)> = merged
        .iter()
        .filter(|section: &&Section| section.name == "variables")
        .flat_map(|section| &section.settings)
        .map(|it| (it.key.clone(), it.value.clone()))
        .collect();
    let mut found = Vec::new();
    for section in merged.iter().filter(|section| section.is("enabled", true)) {
        match section.plugin() {
            "disk" => found.extend(disk(view, section, &variables, state.runs)),
            "sysfs" => found.extend(sysfs(view, section, &variables, state.runs)),
            "script" => found.extend(script(view, section, state.runs)),
            _ => {}
        }
    }
    found
}

/// Merges a profile, and first those that it includes, into `merged`.
fn load(host: &Host, profile: &str, merged: &mut Vec<Section>, seen: &mut Vec<String>) {
    if seen.iter().any(|it| it == profile) {
        return;
    }
    seen.push(profile.to_owned());
    let Some(file) = file_of(host, profile) else { return };
    let sections = parse(&file, &host.text(&file).unwrap_or_default());
    let includes = sections.iter().find(|it| it.name == "main").and_then(|it| it.value("include"));
    for included in includes.unwrap_or_default().split([',', ';']).map(str::trim) {
        load(host, included, merged, seen);
    }
    for section in sections.into_iter().filter(|section| section.name != "main") {
        match merged.iter_mut().find(|it| it.name == section.name) {
            Some(known) if !section.is("replace", false) => {
                for setting in section.settings {
                    known.settings.retain(|it| it.key != setting.key);
                    known.settings.push(setting);
                }
            }
            Some(known) => *known = section,
            None => merged.push(section),
        }
    }
}

fn parse(file: &Path, text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            sections.push(Section { name: name.trim().to_owned(), settings: Vec::new() });
        } else if let (Some(section), Some((key, value))) =
            (sections.last_mut(), line.split_once('='))
        {
            section.settings.push(Entry {
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
                file: file.to_owned(),
                line: index + 1,
            });
        }
    }
    sections
}

/// `${name}` of the profile's variables; what is computed stays as it is written.
fn expand(value: &str, variables: &[(String, String)]) -> String {
    variables
        .iter()
        .rev()
        .fold(value.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

fn disk(
    view: &View<'_>,
    section: &Section,
    variables: &[(String, String)],
    active: bool,
) -> Vec<Owner> {
    let devices = expand(section.value("devices").unwrap_or("*"), variables);
    if !is_meant(&devices, &view.name) {
        return Vec::new();
    }
    let mut unknown = Vec::new();
    if let Some(pattern) = section.value("devices_udev_regex") {
        unknown.push(format!("whether udev's properties match {pattern}"));
    }
    let owner = |setting: &Entry| {
        let (_, name) = OPTIONS.iter().find(|(option, _)| *option == setting.key)?;
        let value = expand(&setting.value, variables);
        let value = match *name {
            "read_ahead_kb" => read_ahead_kb(&value),
            _ => (!value.contains("${")).then_some(value),
        };
        let settings = vec![OwnedSetting { name: (*name).to_owned(), value }];
        let text = format!("{}={}", setting.key, setting.value);
        let at = (setting.file.as_path(), setting.line);
        let owner = view.owner(OwnerKind::Tuned, at, &text, settings, active);
        Some(Owner { unknown: unknown.clone(), ..owner })
    };
    section.settings.iter().filter_map(owner).collect()
}

/// `4096` is KiB and `8192 s` sectors; `>4096` only raises, so that what comes of it is not in the file.
fn read_ahead_kb(value: &str) -> Option<String> {
    match value.strip_suffix('s') {
        Some(sectors) => Some((sectors.trim().parse::<u64>().ok()? / 2).to_string()),
        None => Some(value.trim().parse::<u64>().ok()?.to_string()),
    }
}

/// A list of patterns, of which those with `!` take out: `sd*, !sda`.
fn is_meant(devices: &str, name: &str) -> bool {
    let words = devices.split(|c: char| c == ',' || c == ';' || c.is_whitespace());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let (out, within): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| word.starts_with('!'));
    let is_in = within.is_empty() || within.iter().any(|it| glob::matches(it, name));
    is_in && !out.iter().any(|it| glob::matches(it.trim_start_matches('!'), name))
}

/// The plug-in that writes files of sysfs by their paths.
fn sysfs(
    view: &View<'_>,
    section: &Section,
    variables: &[(String, String)],
    active: bool,
) -> Vec<Owner> {
    let owner = |setting: &Entry| {
        let (device, name) = View::setting_of_path(&setting.key)?;
        let value = expand(&setting.value, variables);
        let value = (!value.contains("${")).then_some(value);
        glob::matches(device, &view.name).then(|| {
            let text = format!("{}={}", setting.key, setting.value);
            let settings = vec![OwnedSetting { name, value }];
            let at = (setting.file.as_path(), setting.line);
            view.owner(OwnerKind::Tuned, at, &text, settings, active)
        })
    };
    section.settings.iter().filter_map(owner).collect()
}

/// The plug-in that runs a script of the profile's.
fn script(view: &View<'_>, section: &Section, active: bool) -> Vec<Owner> {
    let Some(setting) = section.settings.iter().find(|it| it.key == "script") else {
        return Vec::new();
    };
    let folder = setting.file.parent().unwrap_or(Path::new("/"));
    let name = setting.value.replace("${i:PROFILE_DIR}", &folder.display().to_string());
    let file = folder.join(name);
    let text = view.host.text(&file).unwrap_or_default();
    shell::owners_of_script(view, OwnerKind::Tuned, &file, &text, active)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_devices() {
        for (list, name, wanted) in [
            ("*", "sda", true),
            ("sd*,!sda", "sda", false),
            ("sd*, !sda", "sdb", true),
            ("!sda", "nvme0n1", true),
            ("vda vdb", "vdb", true),
            ("vda", "vdb", false),
        ] {
            assert_eq!(is_meant(list, name), wanted, "{list} {name}");
        }
        assert_eq!(read_ahead_kb("8192 s").as_deref(), Some("4096"));
        assert_eq!(read_ahead_kb("4096").as_deref(), Some("4096"));
        assert_eq!(read_ahead_kb(">4096"), None);
    }
}
