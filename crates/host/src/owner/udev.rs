//! udev's rules (udev(7)), read as udev reads them for a device.

mod evaluate;
mod event;
mod rule;

use super::{OwnedSetting, Owner, OwnerKind, Place, View, files_in, shell};
use crate::Host;
use evaluate::{Outcome, evaluate};
use event::Event;
use rule::{Op, Rule};
use std::path::Path;

const FOLDERS: [&str; 5] = [
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
    "/usr/local/lib/udev/rules.d",
    "/run/udev/rules.d",
    "/etc/udev/rules.d",
];

/// All rules of a host, in the order in which udev takes them.
pub(super) struct Rules {
    files: Vec<Vec<Rule>>,
    /// Whether udev runs.
    active: bool,
}

impl Rules {
    pub(super) fn read(host: &Host) -> Rules {
        let files = files_in(host, &FOLDERS, ".rules").into_values();
        let read = |file: std::path::PathBuf| {
            let text = host.text(&file)?;
            Some(rule::parse(&file, &text))
        };
        Rules {
            files: files.filter_map(read).collect(),
            active: host.path("/run/udev/control").exists(),
        }
    }

    /// The rules that set a queue setting of this device.
    pub(super) fn owners(&self, view: &View<'_>) -> Vec<Owner> {
        let mut found: Vec<Owner> = Vec::new();
        for action in ["add", "change"] {
            let mut event = Event::of(view, action);
            for rules in &self.files {
                evaluate(rules, &mut event, &mut |rule, event, outcome| {
                    for owner in self.owners_of(view, rule, event, outcome) {
                        let same = |it: &&mut Owner| {
                            (&it.file, it.line, &it.settings, &it.unknown)
                                == (&owner.file, owner.line, &owner.settings, &owner.unknown)
                        };
                        match found.iter_mut().find(same) {
                            Some(known) => known.events.push(action.to_owned()),
                            None => found.push(Owner { events: vec![action.to_owned()], ..owner }),
                        }
                    }
                });
            }
        }
        found
    }

    /// What a rule that applies, or may apply, sets.
    fn owners_of(
        &self,
        view: &View<'_>,
        rule: &Rule,
        event: &Event<'_>,
        outcome: &Outcome,
    ) -> Vec<Owner> {
        let at = (rule.file.as_path(), rule.line);
        let mut settings = Vec::new();
        let mut found = Vec::new();
        for token in rule.tokens.iter().filter(|token| token.op.assigns()) {
            let value = event.substitute(&token.value);
            match (token.key.as_str(), token.attribute.as_deref()) {
                ("ATTR", Some(attribute)) => {
                    let attribute = event.substitute(attribute);
                    if let Some(name) = own_setting(view, &attribute) {
                        let value = Some(value).filter(|value| !value.contains('$'));
                        settings.push(OwnedSetting { name, value });
                    }
                }
                ("RUN", None | Some("program")) if token.op != Op::Remove => {
                    let place = Place { file: rule.file.clone(), line: rule.line };
                    let command = (value.as_str(), rule.text.as_str());
                    let by = OwnerKind::Udev;
                    found.extend(shell::owners(view, by, &place, command, self.active));
                }
                _ => {}
            }
        }
        if !settings.is_empty() {
            found.insert(0, view.owner(OwnerKind::Udev, at, &rule.text, settings, self.active));
        }
        for owner in &mut found {
            owner.unknown.extend(outcome.unknown.iter().cloned());
        }
        found
    }
}

/// The setting of the device's queue that an attribute is: `queue/scheduler`, `bdi/read_ahead_kb`, or
/// a path below `/sys` that leads to one.
fn own_setting(view: &View<'_>, attribute: &str) -> Option<String> {
    if let Some(path) = attribute.strip_prefix("/sys/") {
        let (device, setting) = View::setting_of_path(path)?;
        return (device == view.name).then_some(setting);
    }
    if attribute == "bdi/read_ahead_kb" {
        return Some("read_ahead_kb".to_owned());
    }
    let name = attribute.strip_prefix("queue/")?;
    (Path::new(name).is_relative() && !name.is_empty()).then(|| name.to_owned())
}
