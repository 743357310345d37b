//! udev rules: a device by what it is and not by its name, its settings, and whether udev sets them.

use crate::{
    BlockDevice, DeviceNumber, Host, Identity, Result, Setting,
    error::{Error, io_error},
    own_group_command,
    tree::text,
};
use serde::{Deserialize, Serialize};

/// What tells a device from all others in a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceKey {
    /// The match's key: `ATTR{wwid}`, `ENV{ID_SERIAL_SHORT}`.
    pub key: String,
    /// What it must be.
    pub value: String,
}

/// Why no rule can be written for a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum NoKey {
    /// Nothing in it is its own.
    #[error(
        "{device} has neither a world-wide name nor a serial number, and a rule by its name would hit \
         another device after the next reboot"
    )]
    Nameless {
        /// Its name and number.
        device: String,
    },
    /// udev does not see it.
    #[error("{device} is a hidden path of a multipath device, of which udev gets no events")]
    Hidden {
        /// Its name.
        device: String,
    },
}

/// The settings of a device, and how a rule knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedSettings {
    /// The device.
    pub device: Identity,
    /// How a rule knows it.
    pub key: DeviceKey,
    /// Its settings, each before those that it moves.
    pub settings: Vec<(Setting, String)>,
}

/// Whether udev sets what a rule says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "proof")]
pub enum UdevProof {
    /// A `change` event set all of it.
    Proven,
    /// It did not set these; they read so.
    NotSet {
        /// Setting and what it reads.
        settings: Vec<(Setting, String)>,
    },
    /// There is no udevadm.
    NoProgram,
    /// udev does not run.
    NotRunning,
}

/// Files that name a device, below its folder in sysfs, and the match of each. The first that is there
/// is used; a parent's attribute is matched by `ATTRS`.
const KEYS: [(&str, &str); 8] = [
    ("wwid", "ATTR{wwid}"),
    ("device/wwid", "ATTRS{wwid}"),
    ("uuid", "ATTR{uuid}"),
    ("dm/uuid", "ATTR{dm/uuid}"),
    ("device/cid", "ATTRS{cid}"),
    ("serial", "ATTR{serial}"),
    ("device/serial", "ATTRS{serial}"),
    ("loop/backing_file", "ATTR{loop/backing_file}"),
];

impl DeviceKey {
    /// Of a whole disk.
    pub fn of(host: &Host, device: &BlockDevice) -> std::result::Result<DeviceKey, NoKey> {
        let title = device.title();
        if matches!(device.number, DeviceNumber::NvmePath { .. }) {
            return Err(NoKey::Hidden { device: title });
        }
        let nameless = || NoKey::Nameless { device: title.clone() };
        let folder = host.disk_folder(device.number).map_err(|_| nameless())?;
        let known = KEYS.iter().find_map(|(file, key)| {
            let value = text(folder.join(file)).filter(|it| !it.is_empty())?;
            Some(DeviceKey { key: (*key).to_owned(), value })
        });
        // SCSI's serial number is in binary data; udev's own program reads it.
        let by_udev = || {
            let found = host.text(format!("/run/udev/data/b{}", device.number))?;
            let property = |name: &str| {
                let line = found.lines().find_map(|it| it.strip_prefix(&format!("E:{name}=")))?;
                Some(DeviceKey { key: format!("ENV{{{name}}}"), value: line.to_owned() })
            };
            property("ID_WWN_WITH_EXTENSION").or_else(|| property("ID_SERIAL"))
        };
        known.or_else(by_udev).ok_or_else(nameless)
    }

    /// As a rule's match. What a pattern would take for more than itself is matched by any one letter.
    fn matching(&self) -> String {
        let plain =
            |c: char| !matches!(c, '*' | '?' | '[' | ']' | '|' | '"' | '\\') && c.is_ascii();
        let value: String = self.value.chars().map(|c| if plain(c) { c } else { '?' }).collect();
        format!("{}==\"{value}\"", self.key)
    }
}

/// A file of rules, one for each device. `about` is a line for people who find it.
pub fn udev_rule(about: &str, devices: &[KeyedSettings]) -> String {
    let about = about.replace(['\n', '\r'], " ");
    let mut text = format!("# {about}\n");
    for KeyedSettings { device, key, settings } in devices {
        text.push_str(&format!("# {}\n", device.title()));
        let mut parts = vec![
            "ACTION==\"add|change\"".to_owned(),
            "SUBSYSTEM==\"block\"".to_owned(),
            "ENV{DEVTYPE}==\"disk\"".to_owned(),
            key.matching(),
        ];
        parts.extend(
            settings.iter().map(|(setting, value)| format!("ATTR{{queue/{setting}}}=\"{value}\"")),
        );
        text.push_str(&parts.join(", "));
        text.push('\n');
    }
    text
}

/// Why nothing can be proven here; `None` where udev runs.
pub(crate) fn missing(host: &Host) -> Option<UdevProof> {
    if own_group_command("udevadm").arg("--version").output().is_err() {
        return Some(UdevProof::NoProgram);
    }
    (!host.path("/run/udev/control").exists()).then_some(UdevProof::NotRunning)
}

/// Makes udev read its rules again; it would by itself, within seconds.
pub(crate) fn reload() {
    let _it_reads_them_anyway = own_group_command("udevadm").args(["control", "--reload"]).output();
}

/// Waits until all events are handled that udev has begun. A worker that has read a rule applies it, even
/// where its file has been removed since.
pub(crate) fn settle() -> Result<()> {
    let words = ["settle", "--timeout=60"];
    let output = own_group_command("udevadm")
        .args(words)
        .output()
        .map_err(io_error("run udevadm settle on", "/run/udev"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Program {
            program: format!("udevadm {}", words.join(" ")),
            problem: "udev has not handled all its events within a minute".to_owned(),
            next: "see journalctl -u systemd-udevd, and try again".to_owned(),
        }),
    }
}

/// Fires a `change` event and waits until it is handled.
pub(crate) fn fire_change(host: &Host, number: DeviceNumber) -> Result<()> {
    let folder = host.disk_folder(number)?;
    let words = ["trigger", "--action=change", "--settle"];
    let output = own_group_command("udevadm")
        .args(words)
        .arg(&folder)
        .output()
        .map_err(io_error("run udevadm trigger on", &folder))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Program {
            program: format!("udevadm {} {}", words.join(" "), folder.display()),
            problem: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            next: "see journalctl -u systemd-udevd".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    fn keyed(value: &str) -> KeyedSettings {
        let device = Identity {
            number: DeviceNumber::new(8, 16),
            name: "sdb".to_owned(),
            serial: None,
            wwid: Some(value.to_owned()),
            size: Bytes::from_gib(1),
            sequence: None,
            backing_file: None,
        };
        let key = DeviceKey { key: "ATTRS{wwid}".to_owned(), value: value.to_owned() };
        let settings = vec![
            (Setting::Scheduler, "bfq".to_owned()),
            (Setting::NrRequests, "64".to_owned()),
            (Setting::Tunable("slice_idle".to_owned()), "0".to_owned()),
        ];
        KeyedSettings { device, key, settings }
    }

    #[test]
    fn a_rule_names_the_device_by_what_it_is() {
        let text = udev_rule("made by a test\nof two lines", &[keyed("naa.5000c500a1b2c3d4")]);
        assert_eq!(
            text,
            "# made by a test of two lines\n# sdb (8:16)\nACTION==\"add|change\", \
             SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", ATTRS{wwid}==\"naa.5000c500a1b2c3d4\", \
             ATTR{queue/scheduler}=\"bfq\", ATTR{queue/nr_requests}=\"64\", \
             ATTR{queue/iosched/slice_idle}=\"0\"\n"
        );
        let odd = udev_rule("", &[keyed("t10.ATA \"x\" *[1]|ü\\")]);
        assert!(odd.contains(", ATTRS{wwid}==\"t10.ATA ?x? ??1????\", "), "{odd}");
    }

    #[test]
    fn a_device_without_a_name_of_its_own_gets_no_rule() {
        let root = tempfile::tempdir().unwrap();
        let disk = root.path().join("sys/devices/virtual/block/x");
        std::fs::create_dir_all(disk.join("queue")).unwrap();
        std::fs::create_dir_all(root.path().join("sys/dev/block")).unwrap();
        std::fs::write(disk.join("dev"), "240:0\n").unwrap();
        std::os::unix::fs::symlink(&disk, root.path().join("sys/dev/block/240:0")).unwrap();
        let host = Host::at(root.path());
        let number = DeviceNumber::new(240, 0);
        let of = || DeviceKey::of(&host, &BlockDevice::read(&host, number).unwrap());
        assert!(matches!(of(), Err(NoKey::Nameless { .. })));
        std::fs::write(disk.join("serial"), "S1\n").unwrap();
        assert_eq!(of().unwrap(), DeviceKey { key: "ATTR{serial}".into(), value: "S1".into() });
    }
}
