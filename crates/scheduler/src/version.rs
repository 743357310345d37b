//! Kernel versions, and ranges of them.

use std::{fmt, str::FromStr};

/// A kernel's version, as far as schedulers depend on it: `2.6.18`, `6.12`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelVersion {
    parts: (u16, u16, u16),
}

impl KernelVersion {
    /// `major.minor.patch`.
    pub const fn new(major: u16, minor: u16, patch: u16) -> Self {
        KernelVersion { parts: (major, minor, patch) }
    }
}

impl fmt::Display for KernelVersion {
    /// Without a patch level of 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts {
            (major, minor, 0) => f.pad(&format!("{major}.{minor}")),
            (major, minor, patch) => f.pad(&format!("{major}.{minor}.{patch}")),
        }
    }
}

/// This is no kernel version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a kernel version such as 2.6.18 or 6.12")]
pub struct NotAVersion(pub String);

impl FromStr for KernelVersion {
    type Err = NotAVersion;
    /// Reads releases as `uname -r` prints them, too: what follows the numbers is ignored.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let wrong = || NotAVersion(text.to_owned());
        let digits = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count();
        let mut parts = text.split('.');
        let mut next = || {
            let part = parts.next()?;
            part[..digits(part)].parse::<u16>().ok()
        };
        let (major, minor) = (next().ok_or_else(wrong)?, next().ok_or_else(wrong)?);
        Ok(KernelVersion::new(major, minor, next().unwrap_or(0)))
    }
}

/// The versions from one to before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The first that belongs to it; `None`: all before `until`.
    pub since: Option<KernelVersion>,
    /// The first that does not belong to it any more; `None`: all from `since` on.
    pub until: Option<KernelVersion>,
}

impl Versions {
    /// Every version.
    pub const ALL: Versions = Versions { since: None, until: None };

    /// From this one on.
    pub const fn since(version: KernelVersion) -> Self {
        Versions { since: Some(version), until: None }
    }

    /// All before this one.
    pub const fn before(version: KernelVersion) -> Self {
        Versions { since: None, until: Some(version) }
    }

    /// From `since` on, and before `until`.
    pub const fn between(since: KernelVersion, until: KernelVersion) -> Self {
        Versions { since: Some(since), until: Some(until) }
    }

    /// Whether a version belongs to it.
    pub fn contain(&self, version: KernelVersion) -> bool {
        self.since.is_none_or(|since| since <= version)
            && self.until.is_none_or(|until| version < until)
    }
}
