//! What came of putting something back.

use serde::{Deserialize, Serialize};

/// What came of one step of an undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Done, and verified.
    Done,
    /// There was nothing left to do.
    AlreadyRight,
    /// Not done, because it would be a guess or somebody else's; trying again will not help.
    Refused {
        /// Why.
        why: String,
    },
    /// Tried and not reached; trying again may help.
    Failed {
        /// Why, and what to do.
        why: String,
    },
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Outcome::Done => f.write_str("done"),
            Outcome::AlreadyRight => f.write_str("was right already"),
            Outcome::Refused { why } => write!(f, "refused: {why}"),
            Outcome::Failed { why } => write!(f, "failed: {why}"),
        }
    }
}

impl Outcome {
    pub(crate) fn refused(why: impl Into<String>) -> Outcome {
        Outcome::Refused { why: why.into() }
    }

    pub(crate) fn failed(why: impl Into<String>) -> Outcome {
        Outcome::Failed { why: why.into() }
    }

    /// Whether the thing is now as it was.
    pub fn is_right(&self) -> bool {
        matches!(self, Outcome::Done | Outcome::AlreadyRight)
    }
}
