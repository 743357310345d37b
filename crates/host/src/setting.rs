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
    /// How many of them may be asynchronous, of kernels since 7.0.
    AsyncDepth,
    /// One of the scheduler's own, by the kernel's name.
    Tunable(String),
    /// Target of write-back throttling, µs; 0 is off.
    WbtLatUsec,
    /// The largest request, KiB.
    MaxSectorsKb,
    /// Whether the kernel takes it for a disk with a head.
    Rotational,
    /// Read-ahead, KiB.
    ReadAheadKb,
    /// How much is merged.
    Nomerges,
    /// Where completions run.
    RqAffinity,
}

/// mq-deadline's own, before Linux 7.0 made it the queue's.
pub const ASYNC_DEPTH: &str = "async_depth";

/// Attributes of a queue whose writing, even of the value that is there, renews the queue's limits: the kernel then raises
/// read_ahead_kb to twice the optimal size of a request where it is less (seen on Linux 6.18 and 7.2; a test writes each).
pub(crate) const RAISE_READ_AHEAD: [&str; 6] =
    ["iostats", "add_random", "rotational", "stable_writes", "write_cache", "max_sectors_kb"];

/// All settings but the schedulers' own.
pub(crate) const PLAIN: [(Setting, &str); 9] = [
    (Setting::Scheduler, "scheduler"),
    (Setting::NrRequests, "nr_requests"),
    (Setting::AsyncDepth, ASYNC_DEPTH),
    (Setting::WbtLatUsec, "wbt_lat_usec"),
    (Setting::MaxSectorsKb, "max_sectors_kb"),
    (Setting::Rotational, "rotational"),
    (Setting::ReadAheadKb, "read_ahead_kb"),
    (Setting::Nomerges, "nomerges"),
    (Setting::RqAffinity, "rq_affinity"),
];

impl Setting {
    /// Whether the kernel may give this another value when `other` is written.
    ///
    /// Another scheduler begins with a queue length, an async_depth and tunables of its own, and bfq
    /// turns write-back throttling off. Another queue length rescales async_depth, wherever the kernel
    /// has it. New limits of the queue may raise read-ahead to the kernel's default.
    pub fn is_moved_by(&self, other: &Setting) -> bool {
        match other {
            Setting::Scheduler => matches!(
                self,
                Setting::NrRequests
                    | Setting::AsyncDepth
                    | Setting::Tunable(_)
                    | Setting::WbtLatUsec
            ),
            Setting::NrRequests => match self {
                Setting::AsyncDepth => true,
                Setting::Tunable(name) => name == ASYNC_DEPTH,
                _ => false,
            },
            Setting::MaxSectorsKb | Setting::Rotational => *self == Setting::ReadAheadKb,
            _ => false,
        }
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
    "'{0}' is not a setting: they are scheduler, nr_requests, async_depth, iosched/NAME, \
         wbt_lat_usec, max_sectors_kb, rotational, read_ahead_kb, nomerges and rq_affinity"
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

#[cfg(test)]
mod tests {
    use super::*;

    fn every() -> Vec<Setting> {
        let tunables = ["async_depth", "fifo_batch"].map(|name| Setting::Tunable(name.to_owned()));
        PLAIN.iter().map(|(setting, _)| setting.clone()).chain(tunables).collect()
    }

    #[test]
    fn settings_are_written_as_their_files() {
        for setting in every() {
            assert_eq!(setting.to_string().parse::<Setting>().unwrap(), setting);
        }
        assert!("iosched/../nr_requests".parse::<Setting>().is_err());
        assert!("write_cache".parse::<Setting>().is_err(), "loses data");
    }

    #[test]
    fn what_moves_others_is_restored_before_them() {
        let all = every();
        for (setting, other) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
            if setting.is_moved_by(other) {
                assert!(other < setting, "{other} moves {setting}");
                // What moves the one that moves is known to move this one, too.
                for first in all.iter().filter(|first| other.is_moved_by(first)) {
                    assert!(setting.is_moved_by(first), "{first} moves {setting}");
                }
            }
        }
    }
}
