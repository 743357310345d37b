//! Sync modes: what a database calls its flush method.

use crate::{WordError, word_serde};
use std::{fmt, str::FromStr};

/// How the file is opened and what follows each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncMode {
    /// O_DIRECT: past the page cache.
    pub direct: bool,
    /// RWF_DONTCACHE: through the page cache, whose pages are written at once and dropped when they are
    /// clean (Linux 6.14, where the filesystem has it).
    pub dont_cache: bool,
    /// O_SYNC or O_DSYNC at open.
    pub open: OpenSync,
    /// A call after writes.
    pub after: AfterWrite,
    /// Writes between two such calls, at least 1; 1 without such a call.
    pub every: u32,
}

/// The flag at open that makes each write durable before it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenSync {
    /// Neither flag.
    None,
    /// O_SYNC: data and all metadata.
    OSync,
    /// O_DSYNC: data, and what metadata is needed to read it back.
    ODsync,
}

/// The call that makes earlier writes durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterWrite {
    /// None.
    None,
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
}

impl SyncMode {
    /// Through the page cache, made durable whenever the kernel likes.
    pub const BUFFERED: SyncMode = SyncMode {
        direct: false,
        dont_cache: false,
        open: OpenSync::None,
        after: AfterWrite::None,
        every: 1,
    };
    /// Past the page cache, durable when the device's write cache is.
    pub const DIRECT: SyncMode = SyncMode { direct: true, ..SyncMode::BUFFERED };

    /// Whether writes stay in memory until the kernel likes to write them.
    pub fn leaves_dirty_pages(self) -> bool {
        self == SyncMode::BUFFERED
    }

    /// Whether each write is durable, by the kernel's word, when it is counted as done.
    pub fn durable(self) -> bool {
        self.open != OpenSync::None || (self.after != AfterWrite::None && self.every == 1)
    }
}

/// `buffered`, or words joined by `+`: `direct` or `dontcache`, `osync` or `odsync`, `fsync` or `fdatasync`
/// (after each write; `fsync:16` after every sixteenth).
impl FromStr for SyncMode {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let wrong = |why: &str| {
            WordError::new(format!(
                "sync mode '{text}' {why}: write buffered, direct, dontcache, osync, odsync, fsync, \
                 fdatasync, fsync:16, or several joined by '+', such as direct+osync"
            ))
        };
        let mut mode = SyncMode::BUFFERED;
        for word in text.split('+') {
            let (word, every) = match word.split_once(':') {
                Some((word, count)) => match count.parse() {
                    Ok(every @ 1..=1_000_000) => (word, Some(every)),
                    _ => return Err(wrong("has a count outside 1 to 1000000")),
                },
                None => (word, None),
            };
            match word {
                "buffered" if text == "buffered" => {}
                "buffered" => return Err(wrong("joins buffered with something else")),
                "direct" | "dontcache" if mode.direct || mode.dont_cache => {
                    return Err(wrong("goes past the page cache and through it, or twice one way"));
                }
                "direct" => mode.direct = true,
                "dontcache" => mode.dont_cache = true,
                "osync" | "odsync" if mode.open != OpenSync::None => {
                    return Err(wrong("names two flags at open"));
                }
                "osync" => mode.open = OpenSync::OSync,
                "odsync" => mode.open = OpenSync::ODsync,
                "fsync" | "fdatasync" if mode.after != AfterWrite::None => {
                    return Err(wrong("names two calls after writes"));
                }
                "fsync" => mode.after = AfterWrite::Fsync,
                "fdatasync" => mode.after = AfterWrite::Fdatasync,
                _ => return Err(wrong("is not known")),
            }
            match (every, word) {
                (Some(every), "fsync" | "fdatasync") => mode.every = every,
                (Some(_), _) => return Err(wrong("has a count where only a call takes one")),
                (None, _) => {}
            }
        }
        Ok(mode)
    }
}

impl fmt::Display for SyncMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if self.direct {
            words.push("direct".to_owned());
        }
        if self.dont_cache {
            words.push("dontcache".to_owned());
        }
        match self.open {
            OpenSync::None => {}
            OpenSync::OSync => words.push("osync".to_owned()),
            OpenSync::ODsync => words.push("odsync".to_owned()),
        }
        let every = if self.every > 1 { format!(":{}", self.every) } else { String::new() };
        match self.after {
            AfterWrite::None => {}
            AfterWrite::Fsync => words.push(format!("fsync{every}")),
            AfterWrite::Fdatasync => words.push(format!("fdatasync{every}")),
        }
        if words.is_empty() {
            words.push("buffered".to_owned());
        }
        f.pad(&words.join("+"))
    }
}

word_serde!(SyncMode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_back_as_written() {
        for text in
            ["buffered", "direct", "osync", "direct+osync", "fsync", "fdatasync:16", "direct+fsync"]
        {
            assert_eq!(text.parse::<SyncMode>().unwrap().to_string(), text);
        }
        for text in ["dontcache", "dontcache+osync", "dontcache+fsync:16"] {
            assert_eq!(text.parse::<SyncMode>().unwrap().to_string(), text);
        }
        for text in ["", "sync", "direct+buffered", "osync+odsync", "direct:4", "fsync:0"]
            .into_iter()
            .chain(["direct+dontcache", "dontcache+direct", "dontcache:2", "dontcache+buffered"])
        {
            assert!(text.parse::<SyncMode>().is_err(), "{text}");
        }
    }

    #[test]
    fn durable_is_what_the_kernel_promises() {
        assert!("osync".parse::<SyncMode>().unwrap().durable());
        assert!("fsync".parse::<SyncMode>().unwrap().durable());
        assert!(!"fsync:2".parse::<SyncMode>().unwrap().durable());
        assert!(!SyncMode::DIRECT.durable());
    }
}
