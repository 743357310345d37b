//! The names of a queue's settings.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A setting below `queue/` of a device. What loses data when it is wrong (`write_cache`) is not
/// among them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Setting {
    // In the order in which they must be restored: each may reset those after it.
    /// The I/O scheduler.
    Scheduler,
    /// How many requests may be queued.
    NrRequests,
    /// One of the scheduler's own, by the kernel's name.
    Tunable(String),
    /// Target of write-back throttling, µs; 0 is off.
    WbtLatUsec,
    /// Read-ahead, KiB.
    ReadAheadKb,
    /// The largest request, KiB.
    MaxSectorsKb,
    /// How much is merged.
    Nomerges,
    /// Where completions run.
    RqAffinity,
    /// Whether the kernel takes it for a disk with a head.
    Rotational,
}

/// All settings but the schedulers' own.
pub(crate) const PLAIN: [(Setting, &str); 8] = [
    (Setting::Scheduler, "scheduler"),
    (Setting::NrRequests, "nr_requests"),
    (Setting::WbtLatUsec, "wbt_lat_usec"),
    (Setting::ReadAheadKb, "read_ahead_kb"),
    (Setting::MaxSectorsKb, "max_sectors_kb"),
    (Setting::Nomerges, "nomerges"),
    (Setting::RqAffinity, "rq_affinity"),
    (Setting::Rotational, "rotational"),
];

impl Setting {
    /// Whether choosing another scheduler sets this to a value of its own: the queue's length, the
    /// schedulers' own settings, and write-back throttling, which bfq turns off.
    pub fn is_reset_with_scheduler(&self) -> bool {
        matches!(self, Setting::NrRequests | Setting::Tunable(_) | Setting::WbtLatUsec)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Tunable(name) => f.pad(&format!("iosched/{name}")),
            plain => f.pad(PLAIN.iter().find(|(it, _)| it == plain).map_or("", |(_, name)| name)),
        }
    }
}

/// No setting has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a setting: they are scheduler, nr_requests, iosched/NAME, wbt_lat_usec, \
         read_ahead_kb, max_sectors_kb, nomerges, rq_affinity and rotational"
)]
pub struct NotASetting(String);

impl FromStr for Setting {
    type Err = NotASetting;
    fn from_str(text: &str) -> std::result::Result<Self, NotASetting> {
        if let Some(name) = text.strip_prefix("iosched/")
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Ok(Setting::Tunable(name.to_owned()));
        }
        let plain = PLAIN.iter().find(|(_, name)| *name == text);
        plain.map(|(setting, _)| setting.clone()).ok_or_else(|| NotASetting(text.to_owned()))
    }
}

impl TryFrom<String> for Setting {
    type Error = NotASetting;
    fn try_from(text: String) -> std::result::Result<Self, NotASetting> {
        text.parse()
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> String {
        setting.to_string()
    }
}
