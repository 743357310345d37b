//! Making settings outlive a reboot: a udev rule, and a tuned profile where tuned runs; and whether udev
//! does what the rule says.

use crate::{
    Changes, Error, KeyedSettings, Made, Outcome, QueueFolder, Result, UdevProof,
    lasting_file::{is_as_written, remove_file, write_whole},
    own_group_command,
    tuned::{self, PREFIX},
    udev,
};
use std::path::{Path, PathBuf};

/// Where the rules of this host's administrator are.
pub const RULES_FOLDER: &str = "/etc/udev/rules.d";

impl Changes {
    /// Writes a configuration file that is not there yet: whole or not at all.
    pub fn lasting_file(&mut self, path: &Path, text: &str) -> Result<()> {
        if path.exists() {
            return Err(Error::WrongKind {
                path: path.to_owned(),
                found: "there already".to_owned(),
                needed: "a name of its own",
            });
        }
        let n =
            self.announce(Made::LastingFile { path: path.to_owned(), text: text.to_owned() })?;
        match write_whole(path, text) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.unmake(n)?;
                Err(error)
            }
        }
    }

    /// Takes an earlier rule of ours away, if it is as it was written: the undo of this brings it back.
    pub fn set_rule_aside(&mut self, path: &Path, text: &str) -> Result<()> {
        let outcome = match is_as_written(path, text) {
            None => return Ok(()),
            Some(false) => Outcome::refused("it was edited since it was written"),
            Some(true) => {
                let (path, text) = (path.to_owned(), text.to_owned());
                self.announce(Made::RuleSetAside { path: path.clone(), text: text.clone() })?;
                remove_file(self.host(), &path, &text)
            }
        };
        match outcome {
            Outcome::Done | Outcome::AlreadyRight => Ok(()),
            Outcome::Refused { why } | Outcome::Failed { why } => Err(Error::Unsupported {
                what: format!("taking away the earlier rule {}", path.display()),
                why,
                next: "spindle undo takes back what is applied; then apply without --replace"
                    .to_owned(),
            }),
        }
    }

    /// Makes tuned use another profile.
    pub fn switch_tuned(&mut self, before: &str, profile: &str) -> Result<()> {
        let (before, set) = (before.to_owned(), profile.to_owned());
        self.announce(Made::ActiveProfile { before, set })?;
        tuned::activate(profile)
    }

    /// Asks udev to handle the device as if it had changed, with every setting put back to what it was
    /// before, and says whether the rule sets them again.
    pub fn prove_rule(&mut self, keyed: &KeyedSettings) -> Result<UdevProof> {
        let number = keyed.device.number;
        if let Some(missing) = udev::missing(self.host()) {
            return Ok(missing);
        }
        let originals = self.originals(number);
        for (setting, _) in &keyed.settings {
            if let Some(original) = originals.get(setting) {
                self.set(number, setting, original)?;
            }
        }
        udev::reload();
        udev::fire_change(self.host(), number)?;
        let mut untouched = Vec::new();
        for (setting, value) in &keyed.settings {
            let folder = QueueFolder::of(self.host(), number)?;
            let reads = folder.read(setting)?;
            if reads != *value {
                untouched.push((setting.clone(), reads));
            }
            // As announced, whatever the rule did.
            self.set(number, setting, value)?;
        }
        Ok(match untouched.is_empty() {
            true => UdevProof::Proven,
            false => UdevProof::NotSet { settings: untouched },
        })
    }
}

/// Checks a rule file with `udevadm verify`; `None` where there is no such program.
pub fn verify_rule(path: &Path) -> Option<std::result::Result<(), RuleComplaint>> {
    let output = own_group_command("udevadm").arg("verify").arg(path).output().ok()?;
    if output.status.success() {
        return Some(Ok(()));
    }
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    // Before systemd 254 there is no such verb.
    match text.contains("Unknown command verb") {
        true => None,
        false => Some(Err(RuleComplaint { text })),
    }
}

/// What `udevadm verify` says of a rule that it does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("udevadm verify does not take the rule: {text}")]
pub struct RuleComplaint {
    text: String,
}

/// The rule file of a device: its name says for which, and no two are alike.
pub fn rule_path(folder: &Path, device: &str, stamp: &str) -> PathBuf {
    folder.join(format!("99-{PREFIX}{device}-{stamp}.rules"))
}
