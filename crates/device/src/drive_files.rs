//! The files that describe a drive, and what comes of reading them, in any format.

use crate::disk::DiskSpec;

/// A drive's files: (name, text). Directories in names do not matter.
#[derive(Clone, Debug, Default)]
pub struct DriveFiles {
    /// Names and texts.
    pub files: Vec<(String, String)>,
}

impl DriveFiles {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let wanted = base(name);
        self.files.iter().find(|(n, _)| base(n) == wanted).map(|(_, text)| text.as_str())
    }

    pub(crate) fn with_ending(&self, ending: &str) -> Vec<&(String, String)> {
        self.files.iter().filter(|(name, _)| name.ends_with(ending)).collect()
    }
}

/// A drive that was read.
#[derive(Clone, Debug)]
pub struct Imported {
    /// As its file calls it.
    pub name: String,
    /// What it is.
    pub spec: DiskSpec,
    /// What its files ask for and this model does not do, a sentence each.
    pub notes: Vec<String>,
}

/// What is wrong in a drive's file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {what}")]
pub struct DriveFileError {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub what: String,
}

impl DriveFileError {
    /// An error in `file` at `line`.
    pub fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        DriveFileError { file: file.to_owned(), line, what: what.into() }
    }
}
