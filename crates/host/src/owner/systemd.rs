//! systemd's services whose commands write settings (systemd.unit(5), systemd.service(5)).

use super::{Owner, OwnerKind, Place, View, files_in, joined_lines, shell};
use crate::Host;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

const FOLDERS: [&str; 5] = [
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/usr/local/lib/systemd/system",
    "/run/systemd/system",
    "/etc/systemd/system",
];

/// The services of a host, and which of them something starts.
pub(super) struct Units {
    services: BTreeMap<String, PathBuf>,
    /// Names in the folders `X.wants` and `X.requires`.
    wanted: BTreeSet<String>,
}

/// A command of a service, with its place.
struct Command {
    place: Place,
    text: String,
}

impl Units {
    pub(super) fn read(host: &Host) -> Units {
        let mut wanted = BTreeSet::new();
        for folder in FOLDERS {
            for name in host.names(folder) {
                if name.ends_with(".wants") || name.ends_with(".requires") {
                    wanted.extend(host.names(Path::new(folder).join(name)));
                }
            }
        }
        Units { services: files_in(host, &FOLDERS, ".service"), wanted }
    }

    /// Whether there is a service of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.services.contains_key(&format!("{name}.service"))
    }

    /// Whether something starts it: a target, or a timer or path unit of its name that a target starts.
    pub(super) fn is_started(&self, name: &str) -> bool {
        ["service", "timer", "path"]
            .iter()
            .any(|kind| self.wanted.contains(&format!("{name}.{kind}")))
    }

    /// Instances of a template that something starts: of `x@.service` those of `x@sda.service`.
    fn instances(&self, template: &str) -> Vec<String> {
        let instance = |name: &String| {
            let stem = name.strip_suffix(".service")?;
            let (first, instance) = stem.split_once('@')?;
            (first == template && !instance.is_empty()).then(|| instance.to_owned())
        };
        self.wanted.iter().filter_map(instance).collect()
    }
}

/// The services that write settings of this device.
pub(super) fn owners(view: &View<'_>, units: &Units) -> Vec<Owner> {
    let mut found = Vec::new();
    for (name, file) in &units.services {
        let stem = name.trim_end_matches(".service");
        let commands = commands(view.host, name, file);
        match stem.strip_suffix('@') {
            None => {
                let active = units.is_started(stem);
                for command in &commands {
                    found.extend(of_command(view, command, None, active));
                }
            }
            Some(template) => {
                for instance in units.instances(template) {
                    for command in &commands {
                        found.extend(of_command(view, command, Some(&instance), true));
                    }
                }
            }
        }
    }
    found
}

fn of_command(
    view: &View<'_>,
    command: &Command,
    instance: Option<&str>,
    active: bool,
) -> Vec<Owner> {
    let mut line = command.text.trim_start_matches(['@', '-', ':', '+', '!', '|']).to_owned();
    if let Some(instance) = instance {
        // systemd.unit(5): in an instance's name `-` stands for `/`.
        line = line.replace("%i", instance).replace("%I", &instance.replace('-', "/"));
    }
    let line = line.replace("%%", "%").replace("$$", "$");
    shell::owners(view, OwnerKind::Systemd, &command.place, (&line, &command.text), active)
}

/// The commands of a service and of the files that extend it.
fn commands(host: &Host, name: &str, file: &Path) -> Vec<Command> {
    let folders: Vec<String> = FOLDERS.iter().map(|it| format!("{it}/{name}.d")).collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let extensions = files_in(host, &folders, ".conf").into_values();
    let mut by_key: BTreeMap<String, Vec<Command>> = BTreeMap::new();
    for file in std::iter::once(file.to_owned()).chain(extensions) {
        let Some(text) = host.text(&file) else { continue };
        let mut in_service = false;
        for line in joined_lines(&text, &['#', ';']) {
            if line.text.starts_with('[') {
                in_service = line.text.trim() == "[Service]";
                continue;
            }
            let Some((key, value)) = line.text.split_once('=') else { continue };
            let key = key.trim();
            if !in_service || !key.starts_with("Exec") {
                continue;
            }
            let commands = by_key.entry(key.to_owned()).or_default();
            match value.trim() {
                // An empty one takes back those before it.
                "" => commands.clear(),
                text => commands.push(Command {
                    place: Place { file: file.clone(), line: line.number },
                    text: text.to_owned(),
                }),
            }
        }
    }
    // What runs when it stops sets nothing while it runs.
    by_key.retain(|key, _| !key.starts_with("ExecStop"));
    by_key.into_values().flatten().collect()
}
