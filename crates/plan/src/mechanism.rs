//! Mechanisms that the simulated world can switch off, to show what each of them does.

use std::{collections::BTreeSet, fmt, str::FromStr};
use workload::{WordError, word_serde};

/// Something that makes a difference, and that only a model can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Requests that lie side by side become one.
    Merging,
    /// The scheduler sorts by sector; without it, what has waited longest goes first.
    Sorting,
    /// The scheduler keeps the device for a process that has nothing queued (cfq, anticipatory, bfq).
    Waiting,
    /// Platters turn; without it, a sector is under the head when the seek ends.
    Rotation,
    /// Write-back holds off when the queue is congested.
    Congestion,
    /// The drives see only what host queue and controller let through; without it they see all.
    ColdDrives,
    /// Direct writers exclude one another from a file.
    InodeLock,
    /// A write of less than a page first reads the page.
    ReadBeforeWrite,
    /// The filesystem's journal: its commits, and the data that goes before them.
    Journal,
}

impl Mechanism {
    /// All, in the order in which reports show them.
    pub const ALL: [Mechanism; 9] = [
        Mechanism::Merging,
        Mechanism::Sorting,
        Mechanism::Waiting,
        Mechanism::Rotation,
        Mechanism::Congestion,
        Mechanism::ColdDrives,
        Mechanism::InodeLock,
        Mechanism::ReadBeforeWrite,
        Mechanism::Journal,
    ];
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mechanism::Merging => "merging",
            Mechanism::Sorting => "sorting",
            Mechanism::Waiting => "waiting",
            Mechanism::Rotation => "rotation",
            Mechanism::Congestion => "congestion",
            Mechanism::ColdDrives => "cold-drives",
            Mechanism::InodeLock => "inode-lock",
            Mechanism::ReadBeforeWrite => "read-before-write",
            Mechanism::Journal => "journal",
        })
    }
}

/// What is switched off: `nothing`, or mechanisms joined by `+`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Without(BTreeSet<Mechanism>);

impl Without {
    /// Of these.
    pub fn of(mechanisms: impl IntoIterator<Item = Mechanism>) -> Self {
        Without(mechanisms.into_iter().collect())
    }
    /// Whether it is switched off.
    pub fn has(&self, mechanism: Mechanism) -> bool {
        self.0.contains(&mechanism)
    }
    /// Whether all is as it is.
    pub fn is_nothing(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Without {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        if text == "nothing" {
            return Ok(Without::default());
        }
        let one = |word: &str| {
            let found = Mechanism::ALL.into_iter().find(|known| known.to_string() == word);
            found.ok_or_else(|| {
                let all = Mechanism::ALL.map(|known| known.to_string()).join(", ");
                WordError::new(format!(
                    "without '{word}': that is no mechanism that can be switched off; there are \
                     {all}, or several joined by '+', or nothing"
                ))
            })
        };
        text.split('+').map(one).collect::<Result<_, _>>().map(Without)
    }
}

impl fmt::Display for Without {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(Mechanism::to_string).collect();
        f.pad(if words.is_empty() { "nothing".to_owned() } else { words.join("+") }.as_str())
    }
}

word_serde!(Without);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_switched_off_reads_back_as_written() {
        for text in ["nothing", "merging", "merging+sorting", "cold-drives"] {
            assert_eq!(text.parse::<Without>().unwrap().to_string(), text);
        }
        let error = "gravity".parse::<Without>().unwrap_err().to_string();
        assert!(error.contains("gravity") && error.contains("rotation"), "{error}");
    }
}
