//! Making what is applied outlive a reboot.

use super::{replace::Earlier, settings_of};
use anyhow::Context;
use host::{Changes, DeviceKey, Host, Identity, KeptSetting, KeyedSettings};
use runner::Intended;
use std::path::Path;

/// What each device is to have, and how a rule knows it; with what the kernel took where that is known.
pub fn keyed(
    host: &Host,
    intended: &Intended,
    kept: Option<&[KeptSetting]>,
) -> anyhow::Result<Vec<KeyedSettings>> {
    let of = |it: &runner::IntendedDevice| -> anyhow::Result<KeyedSettings> {
        let mut keyed = KeyedSettings {
            device: Identity::of(&it.device),
            key: DeviceKey::of(host, &it.device)?,
            settings: it.named.clone().into_iter().collect(),
        };
        if let Some(kept) = kept {
            keyed.settings = settings_of(kept, &keyed);
        }
        Ok(keyed)
    };
    intended.devices.iter().map(of).collect::<anyhow::Result<_>>().context("no rule can be written")
}

/// The devices' names, for that of a file.
pub fn device_names(keyed: &[KeyedSettings]) -> String {
    keyed.iter().map(|it| it.device.name.as_str()).collect::<Vec<_>>().join("-")
}

/// Writes a rule, and a tuned profile where tuned runs, and asks udev to act on the rule; gives what was
/// found.
pub fn persist(
    changes: &mut Changes,
    folder: &Path,
    about: &str,
    keyed: &[KeyedSettings],
    earlier: Option<&Earlier>,
) -> anyhow::Result<Vec<String>> {
    if let Some(earlier) = earlier {
        earlier.set_rules_aside(changes)?;
    }
    let host = changes.host().clone();
    let stamp = changes.journal().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let path = host::rule_path(folder, &device_names(keyed), &stamp);
    changes.lasting_file(&path, &host::udev_rule(about, keyed))?;
    let mut notes = vec![format!("Wrote {}.", path.display())];
    match host::verify_rule(&path) {
        Some(checked) => {
            checked?;
            notes.push("udevadm verify takes it.".to_owned());
        }
        None => notes.push("Not checked: there is no `udevadm verify` here.".to_owned()),
    }
    let profile = earlier.and_then(Earlier::profile);
    if let Some(profile) = host::tuned_profile(&host, about, keyed, &stamp, profile) {
        changes.lasting_file(&profile.path, &profile.text)?;
        changes.switch_tuned(&profile.active, &profile.name)?;
        notes.push(format!(
            "tuned uses {} now, which includes {} and says the same.",
            profile.name, profile.active
        ));
    }
    for keyed in keyed {
        let proof = changes.prove_rule(keyed)?;
        notes.push(report::udev_proof(&proof, &keyed.device.name));
    }
    Ok(notes)
}
