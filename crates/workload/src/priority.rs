//! I/O priorities, as ioprio_set(2) knows them.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// A class, and a level within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoPriority {
    /// The class.
    pub class: IoClass,
    /// 0 (first) to 7 (last); 0 for the idle class, which has no levels.
    pub level: u8,
}

/// The kernel's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoClass {
    /// IOPRIO_CLASS_RT: before all others.
    RealTime,
    /// IOPRIO_CLASS_BE: what everybody has.
    BestEffort,
    /// IOPRIO_CLASS_IDLE: when nobody else wants the device.
    Idle,
}

/// `idle`, `be` (level 4), `be:0`, `rt:7`.
impl FromStr for IoPriority {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let wrong = || {
            WordError::new(format!(
                "I/O priority '{text}' is not known: write idle, be:0 to be:7, or rt:0 to rt:7"
            ))
        };
        let (class, level) = match text.split_once(':') {
            Some((class, level)) => (class, Some(level.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        match (class, level) {
            ("idle", None) => Ok(IoPriority { class: IoClass::Idle, level: 0 }),
            ("be", level @ (None | Some(0..=7))) => {
                Ok(IoPriority { class: IoClass::BestEffort, level: level.unwrap_or(4) })
            }
            ("rt", level @ (None | Some(0..=7))) => {
                Ok(IoPriority { class: IoClass::RealTime, level: level.unwrap_or(4) })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for IoPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self.class {
            IoClass::Idle => "idle".to_owned(),
            IoClass::BestEffort => format!("be:{}", self.level),
            IoClass::RealTime => format!("rt:{}", self.level),
        })
    }
}

word_serde!(IoPriority);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_read_back_as_written() {
        for text in ["idle", "be:0", "rt:7"] {
            assert_eq!(text.parse::<IoPriority>().unwrap().to_string(), text);
        }
        assert_eq!("be".parse::<IoPriority>().unwrap().to_string(), "be:4");
        for text in ["", "idle:3", "be:8", "nice"] {
            assert!(text.parse::<IoPriority>().is_err(), "{text}");
        }
    }
}
