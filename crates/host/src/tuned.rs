//! tuned profiles: one of our own that includes the active one.

use crate::{Error, Host, KeyedSettings, Result, Setting, own_group_command};
use std::path::{Path, PathBuf};

/// What the names of our files begin with, here and among udev's rules.
pub(crate) const PREFIX: &str = "spindle-";

/// A profile to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunedProfile {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// The profile that is active now.
    pub active: String,
}

/// The profile that tuned uses, where tuned runs.
pub fn active_profile(host: &Host) -> Option<String> {
    let runs = ["/run/tuned/tuned.pid", "/var/run/tuned/tuned.pid"];
    runs.iter().find(|path| host.path(path).exists())?;
    let name = host.text("/etc/tuned/active_profile")?.trim().to_owned();
    (!name.is_empty()).then_some(name)
}

/// The profile that makes tuned set what it can: scheduler and read-ahead; `None` where tuned does not
/// run, or has nothing to set. Where an earlier profile of ours is active, in whose place it is, it includes what that
/// one includes: `(ours, included)`.
pub fn tuned_profile(
    host: &Host,
    about: &str,
    devices: &[KeyedSettings],
    stamp: &str,
    earlier: Option<(&str, &str)>,
) -> Option<TunedProfile> {
    let active = active_profile(host)?;
    let included = earlier.filter(|(ours, _)| *ours == active).map(|(_, included)| included);
    let text = profile_text(about, included.unwrap_or(&active), devices)?;
    let name = format!("{PREFIX}{stamp}");
    // Since tuned 2.24 profiles have a folder of their own.
    let profiles = Path::new("/etc/tuned/profiles");
    let folder = if host.path(profiles).is_dir() { profiles } else { Path::new("/etc/tuned") };
    Some(TunedProfile {
        path: host.path(folder.join(&name).join("tuned.conf")),
        name,
        text,
        active,
    })
}

/// The text of a profile that includes `active`. Sections of ours, one for each device: one called
/// `disk` would be merged with the included profile's, and limit that to our devices. A lower priority
/// is asked first which devices are its own.
pub fn profile_text(about: &str, active: &str, devices: &[KeyedSettings]) -> Option<String> {
    let mut sections = String::new();
    for KeyedSettings { device, settings, .. } in devices {
        let lines: Vec<String> = settings
            .iter()
            .filter_map(|(setting, value)| Some(format!("{}={value}\n", option(setting)?)))
            .collect();
        if lines.is_empty() {
            continue;
        }
        sections.push_str(&format!(
            "\n[spindle_{0}]\ntype=disk\npriority=-1\ndevices={0}\n{1}",
            device.name,
            lines.concat()
        ));
    }
    let about = about.replace(['\n', '\r'], " ");
    (!sections.is_empty()).then(|| format!("[main]\nsummary={about}\ninclude={active}\n{sections}"))
}

/// What tuned's plug-in for disks calls a setting, of the two that it has.
fn option(setting: &Setting) -> Option<&'static str> {
    match setting {
        Setting::Scheduler => Some("elevator"),
        Setting::ReadAheadKb => Some("readahead"),
        _ => None,
    }
}

/// The settings that a tuned profile cannot say: "sdb nr_requests 64".
pub fn not_in_profile(devices: &[KeyedSettings]) -> Vec<String> {
    let of = |it: &KeyedSettings| {
        let left = it.settings.iter().filter(|(setting, _)| option(setting).is_none());
        let name = &it.device.name;
        left.map(|(setting, value)| format!("{name} {setting} {value}")).collect::<Vec<_>>()
    };
    devices.iter().flat_map(of).collect()
}

/// Makes tuned use a profile.
pub(crate) fn activate(profile: &str) -> Result<()> {
    let words = profile.split_whitespace();
    let output = own_group_command("tuned-adm").arg("profile").args(words).output();
    let problem = match output {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::Program {
        program: format!("tuned-adm profile {profile}"),
        problem,
        next: "see journalctl -u tuned".to_owned(),
    })
}
