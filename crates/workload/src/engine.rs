//! What moves the bytes.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// What moves a job's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::VariantArray)]
pub enum EngineKind {
    /// io_uring, one ring a client: any depth.
    #[default]
    IoUring,
    /// pread(2) and pwrite(2): one operation at a time a client.
    Sync,
    /// The program fio, run as a child with a job made from ours.
    Fio,
    /// Nothing: every operation completes at once. Measures the program itself.
    Null,
}

impl EngineKind {
    /// Every engine, in the order in which to list them.
    pub const ALL: &'static [EngineKind] = <EngineKind as strum::VariantArray>::VARIANTS;
}

/// `io_uring`, `sync`, `fio`, `null`.
impl FromStr for EngineKind {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        EngineKind::ALL.iter().copied().find(|engine| engine.to_string() == text).ok_or_else(|| {
            WordError::new(format!(
                "engine '{text}' is not known: write io_uring, sync, fio or null"
            ))
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_read_back_as_written() {
        for engine in EngineKind::ALL.iter().copied() {
            assert_eq!(engine.to_string().parse(), Ok(engine));
        }
        let error = "libaio".parse::<EngineKind>().unwrap_err().to_string();
        assert!(error.contains("io_uring"), "{error}");
    }
}
