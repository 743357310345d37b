//! A block device's number: what identifies it while names are handed out again.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Major and minor number, written `254:0` as in sysfs and mountinfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceNumber {
    /// The driver's number; 0 for filesystems without a device.
    pub major: u32,
    /// The device's number within its driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// From a `dev_t` as stat gives it.
    pub fn from_raw(raw: u64) -> Self {
        DeviceNumber { major: rustix::fs::major(raw), minor: rustix::fs::minor(raw) }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.major, self.minor))
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
        let (major, minor) = text.trim().split_once(':').ok_or_else(wrong)?;
        let number = |part: &str| part.parse().map_err(|_| wrong());
        Ok(DeviceNumber { major: number(major)?, minor: number(minor)? })
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
