//! What a server says in its log.

use std::path::{Path, PathBuf};

/// Lines of a log that are quoted in a message.
const QUOTED_LINES: usize = 3;

/// A private server's log.
#[derive(Clone, Debug)]
pub struct Log {
    path: PathBuf,
    /// Words that tell of trouble.
    signs: &'static [&'static str],
    /// Words of lines that tell of no trouble though they have a sign.
    harmless: &'static [&'static str],
}

impl Log {
    /// The file at `path`, in which any of `signs` tells of trouble unless the line has one of `harmless`.
    pub fn of(
        path: PathBuf,
        signs: &'static [&'static str],
        harmless: &'static [&'static str],
    ) -> Log {
        Log { path, signs, harmless }
    }

    /// The first lines that tell of trouble, in the server's own words.
    pub fn trouble(&self) -> Option<String> {
        let text = read(&self.path);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| self.signs.iter().any(|sign| line.contains(sign)))
            .filter(|line| !self.harmless.iter().any(|words| line.contains(words)))
            .take(QUOTED_LINES)
            .map(str::trim)
            .collect();
        (!lines.is_empty()).then(|| lines.join(" / "))
    }

    /// What it says of trouble, or last.
    pub fn words(&self) -> String {
        self.trouble().unwrap_or_else(|| last_words(&self.path))
    }
}

/// Why a program ended: the lines that say ERROR, or else its last ones.
pub fn complaint(log: &Path) -> String {
    let text = read(log);
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("ERROR"))
        .take(QUOTED_LINES)
        .map(str::trim)
        .collect();
    match errors.is_empty() {
        true => last_words(log),
        false => errors.join(" / "),
    }
}

/// The last lines.
fn last_words(log: &Path) -> String {
    let text = read(log);
    let mut lines: Vec<&str> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(QUOTED_LINES).collect();
    lines.reverse();
    match lines.is_empty() {
        true => "its log is empty".to_owned(),
        false => lines.join(" / "),
    }
}

fn read(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_trouble_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::of(path.clone(), &["[ERROR]", "No space left"], &["error 123"]);
        std::fs::write(&path, "[Note] ready\nERROR:  deadlock detected\n").unwrap();
        assert_eq!(log.trouble(), None);
        assert_eq!(complaint(&path), "ERROR:  deadlock detected");
        assert_eq!(log.words(), "[Note] ready / ERROR:  deadlock detected");
        std::fs::write(&path, "[ERROR] Got error 123 when reading table\n").unwrap();
        assert_eq!(log.trouble(), None);
        std::fs::write(&path, "[Note] x\n[ERROR] InnoDB: Page [page id: 1] is corrupted\n")
            .unwrap();
        assert_eq!(log.trouble().unwrap(), "[ERROR] InnoDB: Page [page id: 1] is corrupted");
    }
}
