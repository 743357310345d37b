//! Presets: comparisons of a database server's variables by name.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// A question about a database server, for which the variables and values to compare are known by
/// server and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::VariantArray)]
pub enum Preset {
    /// How files are opened and flushed.
    Flush,
    /// How pages are protected from writes that power failure cuts short.
    Doublewrite,
    /// How reads and writes are handed to the kernel.
    Aio,
    /// How much is written in the background.
    Capacity,
    /// When a commit is safe.
    Durability,
}

impl Preset {
    /// All, in the order in which to list them.
    pub const ALL: &'static [Preset] = <Preset as strum::VariantArray>::VARIANTS;

    /// What it compares, in a sentence without a full stop.
    pub const fn question(self) -> &'static str {
        match self {
            Preset::Flush => {
                "how the server opens and flushes its files: innodb_flush_method, MariaDB's four \
                 booleans, wal_sync_method"
            }
            Preset::Doublewrite => {
                "how pages are protected from torn writes: innodb_doublewrite, full_page_writes; off \
                 only where atomic writes are proven"
            }
            Preset::Aio => {
                "how reads and writes are handed to the kernel: innodb_use_native_aio, \
                 innodb_linux_aio, io_method and io_workers"
            }
            Preset::Capacity => {
                "how much is written in the background: innodb_io_capacity, page cleaners, \
                 innodb_lru_scan_depth, bgwriter and checkpoints"
            }
            Preset::Durability => {
                "what waiting for each commit costs: innodb_flush_log_at_trx_commit, sync_binlog, \
                 synchronous_commit; shown with what each level can lose"
            }
        }
    }
}

impl FromStr for Preset {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        Preset::ALL.iter().copied().find(|preset| preset.to_string() == text).ok_or_else(|| {
            let each = |preset: &Preset| format!("\n  {preset}: {}", preset.question());
            let all: String = Preset::ALL.iter().map(each).collect();
            WordError::new(format!("preset '{text}' is not known; there are{all}"))
        })
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Preset::Flush => "flush",
            Preset::Doublewrite => "doublewrite",
            Preset::Aio => "aio",
            Preset::Capacity => "capacity",
            Preset::Durability => "durability",
        })
    }
}

word_serde!(Preset);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_read_back_as_written_and_an_unknown_one_lists_all() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse::<Preset>().unwrap(), *preset);
        }
        let error = "speed".parse::<Preset>().unwrap_err().to_string();
        for preset in Preset::ALL {
            assert!(error.contains(preset.question()), "{error}");
        }
    }
}
