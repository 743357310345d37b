//! Which program text moves the bytes.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// What makes the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// io_uring, of our own.
    #[default]
    IoUring,
    /// pread(2) and pwrite(2), one client one thread, of our own.
    Sync,
    /// The program fio, for those who trust only fio.
    Fio,
    /// Nothing: completes at once, to measure ourselves.
    Null,
}

impl FromStr for EngineKind {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        match text {
            "io_uring" => Ok(EngineKind::IoUring),
            "sync" => Ok(EngineKind::Sync),
            "fio" => Ok(EngineKind::Fio),
            "null" => Ok(EngineKind::Null),
            other => Err(WordError::new(format!(
                "engine '{other}' is not known: there are io_uring, sync, fio and null"
            ))),
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            EngineKind::IoUring => "io_uring",
            EngineKind::Sync => "sync",
            EngineKind::Fio => "fio",
            EngineKind::Null => "null",
        })
    }
}

word_serde!(EngineKind);
