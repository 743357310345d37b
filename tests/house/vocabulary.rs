//! Names are the field's, sentences are no types, and no document is a diary.

use crate::source;
use std::collections::HashMap;

/// Names that had a private meaning once, and what to say instead.
const PRIVATE_NAMES: &[(&str, &str)] = &[
    ("Slip", "Answer"),
    ("Desk", "Mailbox"),
    ("Hands", "Clients"),
    ("Crew", "ClientHandles"),
    ("Crowd", "Clients"),
    ("Orders", "JobSpec"),
    ("Vigil", "CpuLatencyGuard"),
    ("hurry", "set_realtime"),
    ("Goon", "ControlFlow"),
    ("go_on", "run_rounds, resume"),
    ("USUAL", "DEFAULT"),
    ("MOST", "MAX"),
    ("LEAST", "MIN"),
];

/// Words of comments, messages and documents.
const PRIVATE: &[(&str, &str)] = &[
    ("sleepers", "tag waiters"),
    ("losers", "tag waiters"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("evening", "no hours of the day"),
    ("tonight", "no hours of the day"),
    ("whoever", "who"),
    ("nought", "zero"),
];

/// A drive's sectors slip past defects: there the word is the field's.
const FIELDS_OWN: &[(&str, &str)] = &[("crates/device/src/disk/geometry", "Slip")];

/// Ordinary words that are no names.
const NO_NAMES: &[(&str, &str)] = &[("usual", "default"), ("told", "what it is"), ("way", "path")];

/// Whether a line gives something this name.
fn names(line: &str, word: &str) -> bool {
    let code = line.split("//").next().unwrap_or("");
    if !code.contains(word) {
        return false;
    }
    let defines = ["fn ", "let ", "let mut ", "mod ", "self."].iter().any(|before| {
        code.match_indices(&format!("{before}{word}")).any(|(at, found)| {
            let after = code[at + found.len()..].chars().next();
            !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
        })
    });
    let part = words(code).any(|it| it.contains('_') && it.split('_').any(|part| part == word));
    defines || part
}

/// Parts of an identifier or a sentence.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// A word, and what it is made of: `DEFAULT_SIZE` has DEFAULT and SIZE.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let several = word.contains('_').then(|| word.split('_')).into_iter().flatten();
    std::iter::once(word).chain(several)
}

#[test]
fn no_private_vocabulary() {
    let mut found = Vec::new();
    let [private_names, private] =
        [PRIVATE_NAMES, PRIVATE].map(|all| all.iter().copied().collect::<HashMap<_, _>>());
    let mut look = |place: String, text: &str| {
        for (line, content) in text.lines().enumerate() {
            for (name, instead) in NO_NAMES {
                if names(content, name) {
                    found.push(format!("{place}:{}: named '{name}': say {instead}", line + 1));
                }
            }
            let code = content.split("//").next().unwrap_or("");
            for name in words(code).flat_map(parts) {
                let own = FIELDS_OWN
                    .iter()
                    .any(|(folder, word)| place.starts_with(folder) && *word == name);
                if let Some(instead) = private_names.get(name).filter(|_| !own) {
                    found.push(format!("{place}:{}: '{name}': say {instead}", line + 1));
                }
            }
            for name in words(content).flat_map(parts) {
                if let Some(instead) = private.get(name) {
                    found.push(format!("{place}:{}: '{name}': say {instead}", line + 1));
                }
            }
        }
    };
    for name in source::crates() {
        for (path, text) in source::of_crate(&name) {
            look(format!("crates/{name}/src/{}", path.display()), &text);
        }
    }
    let root = source::root();
    for (path, text) in source::files(&root.join("docs"), ".md") {
        look(path.strip_prefix(&root).unwrap().display().to_string(), &text);
    }
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

#[test]
fn an_error_is_a_type_and_no_sentence() {
    let mut found = Vec::new();
    for name in source::crates() {
        for (path, text) in source::of_crate(&name) {
            let code = source::without_comments(&text);
            // A signature may go over several lines.
            let flat = code.split_whitespace().collect::<Vec<_>>().join(" ");
            let result = |at: usize| {
                let rest = &flat[at..];
                let mut depth = 0;
                let end = rest.char_indices().find(|(_, c)| {
                    match c {
                        '<' => depth += 1,
                        '>' => depth -= 1,
                        _ => {}
                    }
                    *c == '>' && depth == 0
                });
                end.is_some_and(|(end, _)| {
                    let inside = rest[..end].trim_end().trim_end_matches(',');
                    inside.ends_with(", String")
                })
            };
            let count = flat.match_indices("Result<").filter(|(at, _)| result(*at)).count();
            if count > 0 {
                found.push(format!("crates/{name}/src/{}: {count}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "Result<_, String> in\n{}", found.join("\n"));
}

/// A string that goes on in the next line loses the space between two words unless it stands before the backslash.
#[test]
fn no_word_runs_into_the_next_at_a_lines_end() {
    let mut places = Vec::new();
    for name in crate::source::crates() {
        for (path, text) in crate::source::of_crate(&name) {
            let lines: Vec<&str> = text.lines().collect();
            for (place, pair) in lines.windows(2).enumerate() {
                let Some(before) = pair[0].strip_suffix('\\') else { continue };
                let ends_in_word =
                    before.ends_with(char::is_alphanumeric) && !before.ends_with("\\n");
                if ends_in_word && pair[1].trim_start().starts_with(char::is_alphanumeric) {
                    places.push(format!("{name}/{}:{}", path.display(), place + 1));
                }
            }
        }
    }
    assert!(places.is_empty(), "a space is lost: {places:#?}");
}
