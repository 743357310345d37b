//! A filesystem that is made for a trial.

use std::{fmt, str::FromStr};
use workload::{WordError, word_serde};

/// What to make and how to mount it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filesystem {
    /// Its kind.
    pub kind: FilesystemKind,
    /// Options for its mkfs program, as one would type them.
    pub mkfs: String,
    /// Options for mount(8) after `-o`.
    pub mount: String,
}

/// The kinds that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesystemKind {
    /// ext4 without a journal or extents, as ext2 had it.
    Ext2,
    /// ext4 with a journal and without extents, as ext3 had it.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl FilesystemKind {
    /// All, in the order of their age.
    pub const ALL: [FilesystemKind; 5] = [
        FilesystemKind::Ext2,
        FilesystemKind::Ext3,
        FilesystemKind::Ext4,
        FilesystemKind::Xfs,
        FilesystemKind::Btrfs,
    ];
}

impl fmt::Display for FilesystemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FilesystemKind::Ext2 => "ext2",
            FilesystemKind::Ext3 => "ext3",
            FilesystemKind::Ext4 => "ext4",
            FilesystemKind::Xfs => "xfs",
            FilesystemKind::Btrfs => "btrfs",
        })
    }
}

/// `xfs`, or with options after semicolons: `xfs;mkfs=-b size=1024;mount=noatime,nodiratime`.
impl FromStr for Filesystem {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        let mut parts = text.split(';').map(str::trim);
        let word = parts.next().unwrap_or("");
        let kind = FilesystemKind::ALL
            .into_iter()
            .find(|kind| kind.to_string() == word)
            .ok_or_else(|| {
                WordError::new(format!(
                    "filesystem '{word}' is not known: there are ext2, ext3, ext4, xfs and btrfs, with \
                     options such as 'xfs;mkfs=-b size=1024;mount=noatime'"
                ))
            })?;
        let mut filesystem = Filesystem { kind, mkfs: String::new(), mount: String::new() };
        for part in parts {
            match part.split_once('=') {
                Some(("mkfs", options)) => filesystem.mkfs = options.trim().to_owned(),
                Some(("mount", options)) => filesystem.mount = options.trim().to_owned(),
                _ => {
                    return Err(WordError::new(format!(
                        "'{part}' in filesystem '{text}' is neither mkfs=OPTIONS nor mount=OPTIONS"
                    )));
                }
            }
        }
        Ok(filesystem)
    }
}

impl fmt::Display for Filesystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if !self.mkfs.is_empty() {
            write!(f, ";mkfs={}", self.mkfs)?;
        }
        if !self.mount.is_empty() {
            write!(f, ";mount={}", self.mount)?;
        }
        Ok(())
    }
}

word_serde!(Filesystem);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filesystems_read_back_as_written() {
        for text in
            ["ext2", "xfs;mkfs=-b size=1024;mount=noatime,nodiratime", "btrfs;mount=nodatacow"]
        {
            assert_eq!(text.parse::<Filesystem>().unwrap().to_string(), text);
        }
        for text in ["", "ntfs", "xfs;noatime", "xfs;speed=fast"] {
            assert!(text.parse::<Filesystem>().is_err(), "{text}");
        }
    }
}
