//! saptune: the notes that it applies, with the host's own changes to them (saptune-note(5)).

use super::{OwnedSetting, Owner, OwnerKind, View, glob, systemd::Units};
use crate::Host;
use std::path::{Path, PathBuf};

/// What a note's section `[block]` sets, and the setting that each is.
const OPTIONS: [(&str, &str); 4] = [
    ("IO_SCHEDULER", "scheduler"),
    ("NRREQ", "nr_requests"),
    ("READ_AHEAD_KB", "read_ahead_kb"),
    ("MAX_SECTORS_KB", "max_sectors_kb"),
];

/// The host's own changes come before a note's own lines.
const FOLDERS: [&str; 4] = [
    "/etc/saptune/override",
    "/etc/saptune/extra",
    "/var/lib/saptune/working/notes",
    "/usr/share/saptune/notes",
];

/// What the applied notes set on this device.
pub(super) fn owners(view: &View<'_>, units: &Units) -> Vec<Owner> {
    let Some(config) = view.host.text("/etc/sysconfig/saptune") else { return Vec::new() };
    let active = units.is_started("saptune");
    let mut found = Vec::new();
    for note in notes(&config) {
        let mut set: Vec<&str> = Vec::new();
        for file in files_of(view.host, &note) {
            for owner in of_file(view, &file, active) {
                let option = OPTIONS.iter().map(|(_, name)| *name);
                let name = option.clone().find(|name| owner.setting_names().contains(name));
                if name.is_some_and(|name| !set.contains(&name)) {
                    set.extend(name);
                    found.push(owner);
                }
            }
        }
    }
    found
}

/// The notes in the order in which they are applied.
fn notes(config: &str) -> Vec<String> {
    let line = config.lines().find_map(|line| line.trim().strip_prefix("NOTE_APPLY_ORDER="));
    let list = line.unwrap_or_default().trim_matches('"');
    list.split_whitespace().map(str::to_owned).collect()
}

/// The files that say what a note sets, those that override first. Only one of the last two folders
/// counts: the second of them is what was installed.
fn files_of(host: &Host, note: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in FOLDERS {
        let is_it = |name: &String| {
            let stem = name.trim_end_matches(".conf");
            stem == note || stem.strip_prefix(note).is_some_and(|rest| rest.starts_with('-'))
        };
        let found = host.names(folder).into_iter().find(is_it);
        let is_copy = folder == FOLDERS[3] && files.iter().any(|it| it.starts_with(FOLDERS[2]));
        files.extend(found.filter(|_| !is_copy).map(|name| Path::new(folder).join(name)));
    }
    files
}

fn of_file(view: &View<'_>, file: &Path, active: bool) -> Vec<Owner> {
    let text = view.host.text(file).unwrap_or_default();
    let mut found = Vec::new();
    // None outside of sections for this device; else what the section depends on.
    let mut section: Option<Vec<String>> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            section = of_section(view, name);
            continue;
        }
        let (Some(unknown), Some((key, value))) = (&section, line.split_once('=')) else {
            continue;
        };
        let option = OPTIONS.iter().find(|(option, _)| *option == key.trim());
        // An empty value leaves the setting alone.
        let value = value.split(" #").next().unwrap_or_default().trim().trim_matches('"');
        let (Some((_, name)), false) = (option, value.is_empty() || line.starts_with('#')) else {
            continue;
        };
        // A list of schedulers is by preference: the first that the device offers.
        let choice = match *name {
            "scheduler" => {
                let offered = crate::tree::text(view.folder.join("queue/scheduler"));
                let offered = offered.unwrap_or_default();
                let offers = |it: &&str| {
                    offered.split_whitespace().any(|word| word.trim_matches(['[', ']']) == *it)
                };
                value.split(',').map(str::trim).find(offers).map(str::to_owned)
            }
            _ => Some(value.to_owned()),
        };
        let settings = vec![OwnedSetting { name: (*name).to_owned(), value: choice }];
        let owner = view.owner(OwnerKind::Saptune, (file, index + 1), line, settings, active);
        found.push(Owner { unknown: unknown.clone(), ..owner });
    }
    found
}

/// `block`, with tags that say for which: none when it is not for this device.
fn of_section(view: &View<'_>, name: &str) -> Option<Vec<String>> {
    let mut parts = name.split(':').map(str::trim);
    if parts.next() != Some("block") {
        return None;
    }
    let mut unknown = Vec::new();
    for tag in parts {
        match tag.split_once('=') {
            Some(("blkpat", pattern)) if !glob::matches(pattern, &view.name) => return None,
            Some(("blkpat", _)) => {}
            _ => unknown.push(format!("the note's tag {tag}")),
        }
    }
    Some(unknown)
}
