//! Excerpts in README.md and docs/guide: what the program prints today.

use crate::machine::Place;
use std::path::{Path, PathBuf};

/// A command of a page, `    $ spindle …`, and the lines that the page shows below it.
struct Excerpt {
    words: Vec<String>,
    shown: Vec<String>,
}

fn excerpts(page: &Path) -> Vec<Excerpt> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut excerpts = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("    $ spindle ") else { continue };
        let mut command = command.to_owned();
        while let Some(first) = command.strip_suffix('\\') {
            command = format!("{first}{}", lines.next().unwrap_or_default());
        }
        let mut shown = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("    ") || line.is_empty()) {
            shown.push(line.strip_prefix("    ").unwrap_or(line).to_owned());
        }
        shown.retain(|line| !line.is_empty() && line != "…");
        excerpts.push(Excerpt {
            words: command.split_whitespace().map(str::to_owned).collect(),
            shown,
        });
    }
    excerpts
}

#[test]
fn excerpts_are_what_the_program_prints() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = Place::new();
    let mut count = 0;
    for page in ["README.md", "docs/guide/verdict.md"] {
        for excerpt in excerpts(&root.join(page)) {
            let mut words: Vec<&str> = excerpt.words.iter().map(String::as_str).collect();
            // Another world would need this machine, and give other figures each time.
            assert!(words.iter().any(|word| word.starts_with("simulated:")), "{page}: {words:?}");
            words.push("--quiet");
            let ended = place.run(&words).expect(0);
            let mut printed = ended.out.lines();
            for line in &excerpt.shown {
                assert!(
                    printed.any(|other| other == line),
                    "{page} shows a line that `spindle {}` does not print there:\n{line}\n\
                     It prints:\n{}",
                    excerpt.words.join(" "),
                    ended.out
                );
            }
            count += 1;
        }
    }
    assert!(count >= 2, "no excerpts were found");
}
