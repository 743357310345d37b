//! What settings can lose.

use plan::{Loss, Window};
use std::collections::BTreeSet;

/// What can be lost, each as the rest of a sentence that begins with "can lose".
pub(crate) fn losses(losses: &BTreeSet<Loss>) -> Vec<String> {
    losses.iter().filter(|loss| !is_said(loss, losses)).map(sentence).collect()
}

/// Who can lose what, of cells by their labels; without a full stop.
pub(crate) fn risks(cells: Vec<(String, BTreeSet<Loss>)>) -> Vec<String> {
    let count = cells.iter().map(|(label, _)| label).collect::<BTreeSet<_>>().len();
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    for (label, of_cell) in cells {
        for lost in losses(&of_cell) {
            match all.iter_mut().find(|(other, _)| *other == lost) {
                Some((_, labels)) if labels.contains(&label) => {}
                Some((_, labels)) => labels.push(label.clone()),
                None => all.push((lost, vec![label.clone()])),
            }
        }
    }
    let said = |(lost, labels): (String, Vec<String>)| match labels.len() {
        all if all == count && count > 1 => format!("Every cell can lose {lost}"),
        _ => format!("{} can lose {lost}", labels.join("; ")),
    };
    all.into_iter().map(said).collect()
}

/// Whether another loss of the same says it too: what is lost when the server crashes is lost when power
/// fails.
fn is_said(loss: &Loss, all: &BTreeSet<Loss>) -> bool {
    match loss {
        Loss::CommitsAtPowerFailure(window) => all.contains(&Loss::CommitsAtCrash(*window)),
        _ => false,
    }
}

fn sentence(loss: &Loss) -> String {
    match loss {
        Loss::Everything { variable } => {
            format!("all data when power fails: with this {variable} nothing is flushed")
        }
        Loss::TornPages => {
            "pages that are being written when power fails: a torn page cannot be repaired".to_owned()
        }
        Loss::TornPagesUnlessAsked => {
            "pages that are being written when power fails, unless the server asks for atomic writes \
             (RWF_ATOMIC), which the kernel promises here to those who ask"
                .to_owned()
        }
        Loss::TornPagesNoticed => {
            "pages that are being written when power fails: a torn page is noticed, and cannot be \
             repaired"
                .to_owned()
        }
        Loss::DataFiles => {
            "pages of data files when power fails: the files are not flushed before the log that \
             covers them is reused"
                .to_owned()
        }
        Loss::FileGrowth => {
            "what a file grew by when power fails, where the filesystem does not make that durable by \
             itself"
                .to_owned()
        }
        Loss::CommitsAtCrash(window) => format!(
            "{} when the server or the operating system crashes, or power fails",
            commits(*window)
        ),
        Loss::CommitsAtPowerFailure(window) => {
            format!("{} when the operating system crashes or power fails", commits(*window))
        }
        Loss::Binlog { groups: None } => {
            "what the operating system had not yet written of the binary log when it crashes or power \
             fails: replicas may then differ from their source"
                .to_owned()
        }
        Loss::Binlog { groups: Some(groups) } => format!(
            "up to {groups} groups of commits in the binary log when the operating system crashes or \
             power fails: replicas may then differ from their source"
        ),
        Loss::Mount { option } => {
            format!("writes that were reported as complete when power fails (mounted with {option})")
        }
    }
}

fn commits(window: Window) -> String {
    match window {
        Window::LogTimeout => {
            "about a second of commits (innodb_flush_log_at_timeout)".to_owned()
        }
        Window::WalWriter => "about 0.6 s of commits (three times wal_writer_delay)".to_owned(),
        Window::Checkpoint => "all commits since the last checkpoint".to_owned(),
        Window::Binlog(None) => {
            "commits that are not yet on the storage in the binary log (recovery rolls back what the \
             binary log does not have)"
                .to_owned()
        }
        Window::Binlog(Some(groups)) => format!(
            "up to {groups} groups of commits (recovery rolls back what the binary log does not have)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_can_lose_the_same_say_it_together() {
        let torn = BTreeSet::from([Loss::TornPages]);
        let cell = |name: &str, losses: &BTreeSet<Loss>| (name.to_owned(), losses.clone());
        let none = BTreeSet::new();
        let said = risks(vec![cell("on", &none), cell("off", &torn), cell("off", &torn)]);
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("off can lose pages"), "{}", said[0]);
        let said = risks(vec![cell("a", &torn), cell("b", &torn)]);
        assert!(said[0].starts_with("Every cell can lose"), "{}", said[0]);
    }

    #[test]
    fn one_window_of_commits_is_said_once() {
        let window = Window::LogTimeout;
        let all = [Loss::CommitsAtCrash(window), Loss::CommitsAtPowerFailure(window)].into();
        let said = losses(&all);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("the server or the operating system"), "{}", said[0]);
    }
}
