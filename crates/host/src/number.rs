//! What identifies a block device while names are handed out again.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A block device, written as sysfs and mountinfo write it: `254:0`. A path of an NVMe device with
/// several controllers is hidden and has no number; it is written by its name, `nvme0c1n1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceNumber {
    /// Major and minor number.
    Node {
        /// The driver's number; 0 for filesystems without a device.
        major: u32,
        /// The device's number within its driver.
        minor: u32,
    },
    /// A path of an NVMe device: a hidden disk, which the kernel names by these three.
    NvmePath {
        /// The subsystem.
        subsystem: u32,
        /// The controller through which this path goes.
        controller: u32,
        /// The namespace.
        namespace: u32,
    },
}

impl DeviceNumber {
    /// From major and minor number.
    pub fn new(major: u32, minor: u32) -> Self {
        DeviceNumber::Node { major, minor }
    }

    /// From a `dev_t` as stat gives it.
    pub fn from_raw(raw: u64) -> Self {
        DeviceNumber::new(rustix::fs::major(raw), rustix::fs::minor(raw))
    }

    /// Whether it stands for a filesystem without a block device of its own.
    pub fn is_anonymous(self) -> bool {
        matches!(self, DeviceNumber::Node { major: 0, .. })
    }

    /// How people are told of the device with this name: `vda (254:0)`.
    pub(crate) fn title(self, name: &str) -> String {
        match self {
            DeviceNumber::Node { .. } => format!("{name} ({self})"),
            DeviceNumber::NvmePath { .. } => name.to_owned(),
        }
    }

    /// From the name of a hidden disk: `nvme0c1n1`.
    pub(crate) fn of_nvme_path(name: &str) -> Option<Self> {
        let (subsystem, rest) = name.strip_prefix("nvme")?.split_once('c')?;
        let (controller, namespace) = rest.split_once('n')?;
        Some(DeviceNumber::NvmePath {
            subsystem: subsystem.parse().ok()?,
            controller: controller.parse().ok()?,
            namespace: namespace.parse().ok()?,
        })
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            DeviceNumber::Node { major, minor } => format!("{major}:{minor}"),
            DeviceNumber::NvmePath { subsystem, controller, namespace } => {
                format!("nvme{subsystem}c{controller}n{namespace}")
            }
        })
    }
}

/// The text is not `major:minor`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a device number such as 254:0")]
pub struct NotADeviceNumber(String);

impl FromStr for DeviceNumber {
    type Err = NotADeviceNumber;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NotADeviceNumber(text.to_owned());
        if let Some(path) = DeviceNumber::of_nvme_path(text) {
            return Ok(path);
        }
        let (major, minor) = text.trim().split_once(':').ok_or_else(wrong)?;
        let number = |part: &str| part.parse().map_err(|_| wrong());
        Ok(DeviceNumber::new(number(major)?, number(minor)?))
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = NotADeviceNumber;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> String {
        number.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_hidden_paths_are_written_and_read() {
        for text in ["254:0", "0:42", "nvme0c1n1", "nvme10c3n12"] {
            assert_eq!(text.parse::<DeviceNumber>().unwrap().to_string(), text);
        }
        for text in ["", "254", "nvme0n1", "nvme0c1", "nvmec1n1", "254:x"] {
            assert!(text.parse::<DeviceNumber>().is_err(), "{text}");
        }
    }
}
