//! Why a setting would not be taken: found before anything is written, with what is possible instead.

use crate::Setting;
use serde::{Deserialize, Serialize};

/// Why a setting would not be taken, before anything is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The device has no such scheduler.
    #[error("{device} has no scheduler '{asked}': it has {}{hint}", available.join(", "))]
    UnknownScheduler {
        /// The device.
        device: String,
        /// What was asked for.
        asked: String,
        /// What it has.
        available: Vec<String>,
        /// What was probably meant, or what became of it.
        hint: String,
    },
    /// The device passes its requests on.
    #[error("{device} has no scheduler: {why}")]
    NoScheduler {
        /// The device.
        device: String,
        /// Why, and where schedulers act instead.
        why: String,
    },
    /// More requests than the kernel gives.
    #[error(
        "nr_requests {asked} is more than {device} takes under {scheduler}: {ceiling}, because {why}"
    )]
    NrRequestsTooHigh {
        /// The device.
        device: String,
        /// What was asked for.
        asked: u64,
        /// Under which scheduler.
        scheduler: String,
        /// The most.
        ceiling: u32,
        /// Where the limit comes from.
        why: String,
    },
    /// The scheduler has no such setting.
    #[error("{scheduler} has no tunable '{asked}'; it has {}{hint}", list(available))]
    UnknownTunable {
        /// The scheduler.
        scheduler: String,
        /// What was asked for.
        asked: String,
        /// What it has.
        available: Vec<String>,
        /// What was probably meant.
        hint: String,
    },
    /// The device or kernel has no such setting.
    #[error("{device} has no {setting}: {why}")]
    NoSuchSetting {
        /// The device.
        device: String,
        /// The setting.
        setting: Setting,
        /// Why probably.
        why: String,
    },
    /// Without a scheduler the kernel does not let it be set.
    #[error("{setting} of {device} can be set under a scheduler only, and there is none")]
    NeedsScheduler {
        /// The device.
        device: String,
        /// The setting.
        setting: Setting,
    },
    /// Not a whole number, or out of range.
    #[error("'{asked}' is not a value of {setting}: {needed}")]
    BadValue {
        /// The setting.
        setting: Setting,
        /// What was asked for.
        asked: String,
        /// What it takes.
        needed: String,
    },
    /// We may not write it.
    #[error(
        "{setting} of {device} may not be changed by this user: run it with sudo, or leave this factor out"
    )]
    NotPermitted {
        /// The device.
        device: String,
        /// The setting.
        setting: Setting,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none at all".to_owned() } else { names.join(", ") }
}

/// "; did you mean …?" when one of the names is near.
pub(crate) fn meant<'a>(asked: &str, names: impl Iterator<Item = &'a String>) -> String {
    let nearest = names.map(|name| (strsim::levenshtein(asked, name), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 2 || name.contains(asked) && asked.len() > 2 => {
            format!("; did you mean {name}?")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names() {
        let names = ["none", "mq-deadline", "kyber", "bfq"].map(str::to_owned);
        assert_eq!(meant("kiber", names.iter()), "; did you mean kyber?");
        assert_eq!(meant("mq_deadline", names.iter()), "; did you mean mq-deadline?");
        assert_eq!(meant("elevator", names.iter()), "");
    }
}
