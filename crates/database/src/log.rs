//! What a server says in its log.

use std::path::Path;

/// What the two servers write before trouble that makes a trial worthless. A deadlock or a duplicate
/// key is none: clients see those themselves.
const SIGNS: [&str; 12] = [
    "[ERROR]",
    "orrupt",
    "Assertion failure",
    "got signal",
    "PANIC:",
    "invalid page",
    "No space left",
    "disk is full",
    "could not extend",
    "could not write",
    "could not fsync",
    "was terminated by signal",
];

/// The first lines that tell of trouble, at most three, in the server's own words.
pub fn trouble(log: &Path) -> Option<String> {
    let text = std::fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| SIGNS.iter().any(|sign| line.contains(sign)))
        .take(3)
        .map(str::trim)
        .collect();
    (!lines.is_empty()).then(|| lines.join(" / "))
}

/// Why a program ended: the lines that say ERROR, at most three, or else its last ones.
pub fn complaint(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let errors: Vec<&str> =
        text.lines().filter(|line| line.contains("ERROR")).take(3).map(str::trim).collect();
    match errors.is_empty() {
        true => last_words(log),
        false => errors.join(" / "),
    }
}

/// The last lines, where there is no sign of trouble among them.
pub fn last_words(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<&str> =
        text.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
    lines.reverse();
    match lines.is_empty() {
        true => "its log is empty".to_owned(),
        false => lines.join(" / "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_from_the_usual() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "[Note] ready\nERROR:  deadlock detected\n").unwrap();
        assert_eq!(trouble(&log), None);
        assert_eq!(complaint(&log), "ERROR:  deadlock detected");
        assert_eq!(last_words(&log), "[Note] ready / ERROR:  deadlock detected");
        std::fs::write(&log, "[Note] x\n[ERROR] InnoDB: Page [page id: 1] is corrupted\n").unwrap();
        assert_eq!(trouble(&log).unwrap(), "[ERROR] InnoDB: Page [page id: 1] is corrupted");
    }
}
