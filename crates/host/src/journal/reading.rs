//! What can be read of a journal, whatever became of it.

use super::{Entry, Event};
use crate::HostIdentity;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// What could be read of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The entries whose checksum holds, in order.
    pub entries: Vec<Entry>,
    /// What is wrong with the rest.
    pub damage: Vec<Damage>,
}

/// A part of a journal that cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Which line, from 1.
    pub line: usize,
    /// How many good entries come before it.
    pub after_entries: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// How a part is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// The last line has no end: a write was interrupted, or the file was cut short.
    Torn,
    /// A line's checksum is not that of its text.
    Garbled,
    /// Lines are missing before this one, or it is out of order.
    Gap,
    /// The file does not begin with a journal's first line.
    NoStart,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let problem = match self.problem {
            Problem::Torn => "is cut off: a write was interrupted, or the file was cut short",
            Problem::Garbled => "is garbled: its checksum does not hold",
            Problem::Gap => "does not follow the one before: lines are missing",
            Problem::NoStart => "is not the first line of a journal",
        };
        write!(f, "line {} {problem}", self.line)
    }
}

impl Reading {
    /// Reads a journal's bytes, whatever became of them.
    pub fn of(bytes: &[u8]) -> Reading {
        let mut reading = Reading::default();
        let mut expected = 0;
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        for (index, line) in &mut lines {
            let mut damage = |problem, after_entries| {
                reading.damage.push(Damage { line: index + 1, after_entries, problem });
            };
            let whole = line.ends_with(b"\n");
            let Some(entry) = entry_of(line).filter(|_| whole) else {
                let problem = if whole { Problem::Garbled } else { Problem::Torn };
                damage(problem, reading.entries.len());
                // A garbled line was one entry: the next number is not a gap as well.
                expected += 1;
                continue;
            };
            if entry.n != expected {
                damage(Problem::Gap, reading.entries.len());
            }
            expected = entry.n + 1;
            reading.entries.push(entry);
        }
        if !matches!(reading.entries.first(), Some(Entry { event: Event::Started { .. }, .. })) {
            reading
                .damage
                .insert(0, Damage { line: 1, after_entries: 0, problem: Problem::NoStart });
        }
        reading
    }

    /// When it was begun, if that was in this boot and it says so.
    pub(super) fn begun_in(&self, boot: &str) -> Option<Nanos> {
        match &self.entries.first()?.event {
            Event::Started { boot_id, at, .. } if boot_id == boot => Some(*at),
            _ => None,
        }
    }

    /// The host that wrote it, where that is another than this.
    pub fn other_host(&self, here: &HostIdentity) -> Option<&HostIdentity> {
        match &self.entries.first()?.event {
            Event::Started { host, .. } => host.as_ref().filter(|host| host.is_other_than(here)),
            _ => None,
        }
    }

    /// Its first line: version, boot, process and command.
    pub fn started(&self) -> Option<(u32, &str, u32, &str)> {
        match &self.entries.first()?.event {
            Event::Started { version, boot_id, pid, command, .. } => {
                Some((*version, boot_id, *pid, command))
            }
            _ => None,
        }
    }
}

fn entry_of(line: &[u8]) -> Option<Entry> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (sum, json) = line.split_once(' ')?;
    (sum.len() == 8 && u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(json.as_bytes()))
        .then(|| serde_json::from_str(json).ok())?
}
