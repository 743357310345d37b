//! What is applied already, and putting another in its place.

use super::usage;
use host::{AppliedJournal, Changes, Host, KeptSetting, PendingJournal};
use runner::Intended;

/// What is in force, and makes place.
pub struct Earlier {
    journal: AppliedJournal,
    /// Nobody undoes it meanwhile.
    _held: PendingJournal,
}

impl Earlier {
    /// What is applied now, if it may make place. Only one recommendation is in force at a time: a
    /// second would have the first for its baseline without anybody having said so.
    pub fn find(
        host: &Host,
        replace: bool,
        lasting: bool,
        intended: &Intended,
    ) -> anyhow::Result<Option<Earlier>> {
        let all = host::applied(&host::state_folder()?)?;
        let Some(journal) = all.iter().find(|it| it.replaced_by(&all).is_none()) else {
            return Ok(None);
        };
        let title = format!("{} from run {}", journal.application.label, journal.application.run);
        if !replace {
            return Err(usage(format!(
                "{title} is applied already; `spindle undo` takes it back first, or --replace puts this in its \
                 place"
            )));
        }
        if !journal.confirmed {
            return Err(usage(format!(
                "{title} waits to be confirmed: say `spindle apply --confirm`, or `spindle undo`, before \
                 something takes its place"
            )));
        }
        let lasts = journal.rules().next().is_some();
        if lasts && !lasting {
            return Err(usage(format!(
                "{title} outlives a reboot, and what takes its place without --persist would not: add --persist, \
                 or take the earlier one back first with `spindle undo`"
            )));
        }
        let is_ours = |it: &KeptSetting| {
            let now = it.device.find_again(host);
            now.is_none_or(|now| intended.devices.iter().any(|it| it.device.number == now.number))
        };
        if lasts && let Some(other) = journal.application.settings.iter().find(|it| !is_ours(it)) {
            return Err(usage(format!(
                "{title} is about {}, too, and its udev rule with it: take it back first with `spindle undo`",
                other.device.title()
            )));
        }
        let held = journal.take()?;
        let held = held.ok_or_else(|| usage(format!("{title} is being taken back just now")))?;
        Ok(Some(Earlier { journal: journal.clone(), _held: held }))
    }

    /// Its journal's name.
    pub fn name(&self) -> String {
        self.journal.name()
    }

    /// What was set, for people.
    pub fn label(&self) -> &str {
        &self.journal.application.label
    }

    /// What stays as the earlier one set it, and is a part of what is in force from now on.
    pub fn stays(&self, host: &Host, kept: &[KeptSetting]) -> Vec<KeptSetting> {
        self.journal.still_in_force(host, kept)
    }

    /// The tuned profile that it made active, and the one that it includes.
    pub fn profile(&self) -> Option<(&str, &str)> {
        self.journal.profile()
    }

    /// Takes its rules out of force.
    pub fn set_rules_aside(&self, changes: &mut Changes) -> anyhow::Result<()> {
        for (path, text) in self.journal.rules() {
            changes.set_rule_aside(path, text)?;
        }
        Ok(())
    }
}
