//! Replays of recorded traces.

use crate::WordError;
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A recorded trace in place of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The trace's file.
    pub file: String,
    /// When its requests are issued.
    #[serde(default)]
    pub mode: ReplayMode,
    /// Its format, where its first lines do not tell, by the names of `--replay-format`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The unit of its times, where it is not its format's own: s, ms, us, 100ns, ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Leave out lines that do not fit the format, and count them.
    #[serde(default)]
    pub skip_bad: bool,
    /// Requests beyond the span are moved into it; without this, such a trace is refused.
    #[serde(default)]
    pub wrap: bool,
}

/// When a trace's requests are issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayMode {
    /// When they were recorded, however long they take.
    #[default]
    Open,
    /// Each process issues its next when one is done, after the time it took to think.
    Closed,
    /// In their order, as fast as possible: so many outstanding as clients times depth.
    Asap,
}

impl fmt::Display for ReplayMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ReplayMode::Open => "open",
            ReplayMode::Closed => "closed",
            ReplayMode::Asap => "asap",
        })
    }
}

impl FromStr for ReplayMode {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "open" => Ok(ReplayMode::Open),
            "closed" => Ok(ReplayMode::Closed),
            "asap" => Ok(ReplayMode::Asap),
            other => Err(WordError::new(format!(
                "replay mode '{other}' is not known: there are open (at the recorded times), closed \
                 (each process waits for its own) and asap (as fast as possible)"
            ))),
        }
    }
}
