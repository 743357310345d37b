//! A drive's files.

/// A drive's files: (name, text). Directories in names do not matter.
#[derive(Clone, Debug, Default)]
pub struct DriveFiles {
    /// Names and texts.
    pub files: Vec<(String, String)>,
}

impl DriveFiles {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let wanted = base(name);
        self.files.iter().find(|(n, _)| base(n) == wanted).map(|(_, text)| text.as_str())
    }

    pub(super) fn with_ending(&self, ending: &str) -> Vec<&(String, String)> {
        self.files.iter().filter(|(name, _)| name.ends_with(ending)).collect()
    }
}
