//! What a command line, or a script that it runs, writes below `/sys`.
//!
//! Not a shell: redirections and `tee` are seen, words that are set in the same script are put in, and
//! what else a name depends on is left as it is written.

use super::{OwnedSetting, Owner, OwnerKind, Place, View, view::Meant};
use std::path::{Path, PathBuf};

/// Between alternatives of a pattern, where `|` would be a pipe.
const OR: char = '\u{1f}';

/// Scripts are short; what is longer is a program.
const SCRIPT_MAX: usize = 256 << 10;

/// A write to a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    /// The device's name, a pattern of names, or words with variables in them.
    pub device: String,
    pub setting: String,
    /// What is written, where it stands there.
    pub value: Option<String>,
}

/// The owners in a command that a rule or a unit runs at `place`; in the command itself, or in the
/// script that it runs.
pub(super) fn owners(
    view: &View<'_>,
    by: OwnerKind,
    place: &Place,
    (command, text): (&str, &str),
    active: bool,
) -> Vec<Owner> {
    let words = words(command);
    let mut found = Vec::new();
    if words.iter().any(|word| is_shell(word)) {
        let at = (place.file.as_path(), place.line);
        let command = put_in(command, &set_words(command));
        found.extend(owners_of(view, by, at, text, (&writes(&command), active)));
    }
    // The shell's script is its first word that is no option; else the command itself is one.
    for (index, word) in words.iter().enumerate() {
        let Some((file, script)) = script(view, word) else { continue };
        let arguments = &words[index + 1..];
        let run_by = Some(place.clone());
        for (line, text, writes) in script_writes(&script, arguments) {
            let all = owners_of(view, by, (file.as_path(), line), text, (&writes, active));
            found.extend(all.into_iter().map(|it| Owner { run_by: run_by.clone(), ..it }));
        }
        break;
    }
    found
}

/// The owners in a script.
pub(super) fn owners_of_script(
    view: &View<'_>,
    by: OwnerKind,
    file: &Path,
    script: &str,
    active: bool,
) -> Vec<Owner> {
    let all = script_writes(script, &[]);
    let owner = |(line, text, writes): (usize, &str, Vec<Write>)| {
        owners_of(view, by, (file, line), text, (&writes, active))
    };
    all.into_iter().flat_map(owner).collect()
}

/// What one line sets on the device, if anything; what it depends on is told with it.
fn owners_of(
    view: &View<'_>,
    by: OwnerKind,
    at: (&Path, usize),
    text: &str,
    (writes, active): (&[Write], bool),
) -> Option<Owner> {
    let mut unknown = Vec::new();
    let mut settings = Vec::new();
    for write in writes {
        match view.is_named(&write.device) {
            Meant::No => continue,
            Meant::Yes => {}
            Meant::Perhaps(condition) if unknown.contains(&condition) => {}
            Meant::Perhaps(condition) => unknown.push(condition),
        }
        let value = write.value.clone().filter(|value| !value.contains(['$', '`']));
        settings.push(OwnedSetting { name: write.setting.clone(), value });
    }
    if settings.is_empty() {
        return None;
    }
    Some(Owner { unknown, ..view.owner(by, at, text, settings, active) })
}

fn is_shell(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    matches!(name, "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh" | "busybox")
}

/// The text of a script that this word names.
fn script(view: &View<'_>, word: &str) -> Option<(PathBuf, String)> {
    if !word.starts_with('/') || word.starts_with("/sys/") || word.starts_with("/dev/") {
        return None;
    }
    let path = view.host.path(word);
    let size = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?.len();
    let text = (size <= SCRIPT_MAX as u64).then(|| view.host.text(word))??;
    text.starts_with("#!").then(|| (PathBuf::from(word), text))
}

/// The lines of a script that write settings.
fn script_writes<'a>(script: &'a str, arguments: &[String]) -> Vec<(usize, &'a str, Vec<Write>)> {
    let mut known: Vec<(String, String)> = arguments
        .iter()
        .take(9)
        .enumerate()
        .map(|(index, argument)| ((index + 1).to_string(), argument.clone()))
        .collect();
    let mut found = Vec::new();
    for (index, line) in script.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with('#') {
            continue;
        }
        let line = put_in(trimmed, &known);
        known.extend(set_words(&line));
        let line = put_in(&line, &known);
        let writes = writes(&line);
        if !writes.is_empty() {
            found.push((index + 1, trimmed, writes));
        }
    }
    found
}

/// `name=word`, and `for name in words`, whose words become alternatives of a pattern.
fn set_words(line: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let all = words(line);
    for (index, word) in all.iter().enumerate() {
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if let Some((name, value)) = word.split_once('=')
            && is_name(name)
            && index == 0
        {
            found.push((name.to_owned(), value.to_owned()));
        }
        if word == "for"
            && let [name, is_in, rest @ ..] = &all[index + 1..]
            && is_in == "in"
        {
            let end = rest.iter().position(|word| word == ";" || word == "do");
            let values = &rest[..end.unwrap_or(rest.len())];
            found.push((name.clone(), alternatives(values)));
        }
    }
    found
}

/// `/sys/block/sda /sys/block/sdb` as the one and the other.
fn alternatives(words: &[String]) -> String {
    let Some(first) = words.first() else { return String::new() };
    let trimmed = |word: &String| word.trim_end_matches('/').to_owned();
    let folder = trimmed(first).rsplit_once('/').map(|(folder, _)| format!("{folder}/"));
    let last = |word: &String| trimmed(word).rsplit('/').next().unwrap_or_default().to_owned();
    let names: Vec<String> = words.iter().map(last).collect();
    folder.unwrap_or_default() + &names.join(&OR.to_string())
}

/// Known words in the place of `$name` and `${name}`.
fn put_in(line: &str, known: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, length) = match after.strip_prefix('{') {
            Some(inside) => match inside.find('}') {
                Some(end) => (&inside[..end], end + 2),
                None => ("", 0),
            },
            None => {
                let end = after
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(after.len());
                (&after[..end], end)
            }
        };
        match known.iter().rev().find(|(it, _)| it == name) {
            Some((_, value)) if !name.is_empty() => out.push_str(value),
            _ => out.push_str(&rest[at..at + 1 + length]),
        }
        rest = &after[length..];
    }
    out + rest
}

/// Words, without quotation marks; `;`, `|`, `&`, `>`, `>>` and `<` are words of their own.
fn words(command: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut characters = command.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\'' | '"' => {}
            ';' | '|' | '&' | '<' | '(' | ')' => {
                all.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                all.push(c.to_string());
            }
            '>' => {
                // `2>` is of a word of its own.
                all.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
                if characters.peek() == Some(&'>') {
                    characters.next();
                }
                all.push(">".to_owned());
            }
            c if c.is_whitespace() => {
                all.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            }
            c => word.push(c),
        }
    }
    all.extend((!word.is_empty()).then_some(word));
    all
}

/// The settings that a command line writes.
pub(super) fn writes(command: &str) -> Vec<Write> {
    let words = words(command);
    let mut found = Vec::new();
    // What the command before a pipe, and this one, say.
    let (mut piped, mut said): (Option<String>, Option<String>) = (None, None);
    let (mut tee, mut redirected) = (false, false);
    let mut index = 0;
    while index < words.len() {
        let word = words[index].as_str();
        match word {
            ";" | "&" | "(" | ")" | "do" | "then" | "else" => {
                (piped, said, tee) = (None, None, false);
            }
            "|" => {
                piped = said.take();
                tee = false;
            }
            ">" => redirected = true,
            "<" => index += 1,
            "echo" | "printf" => {
                said = words[index + 1..].iter().find(|it| !is_option(it)).cloned()
            }
            "tee" => tee = true,
            _ => {
                let is_target = redirected || tee || word.starts_with("of=");
                if is_target && let Some((device, setting)) = View::setting_of_path(word) {
                    let value = if redirected { said.clone() } else { piped.clone() };
                    let value = value.map(|it| it.trim_end_matches("\\n").to_owned());
                    found.push(Write { device: device.replace(OR, "|"), setting, value });
                }
                redirected = false;
            }
        }
        index += 1;
    }
    found
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word.chars().skip(1).all(|c| c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(command: &str) -> Vec<String> {
        let one = |it: Write| {
            format!("{} {} {}", it.device, it.setting, it.value.as_deref().unwrap_or("?"))
        };
        writes(command).into_iter().map(one).collect()
    }

    #[test]
    fn writes_and_not_reads() {
        for (command, wanted) in [
            ("/bin/sh -c 'echo none > /sys/block/sda/queue/scheduler'", "sda scheduler none"),
            ("sh -c \"echo -n 64 >/sys/block/sda/queue/nr_requests\"", "sda nr_requests 64"),
            ("echo 0 | sudo tee /sys/block/vd*/queue/iosched/x", "vd* iosched/x 0"),
            ("printf 'bfq\\n' >> /sys/class/block/sdb/queue/scheduler", "sdb scheduler bfq"),
            ("echo $x > /sys/block/$1/queue/scheduler", "$1 scheduler $x"),
            ("echo 128 > /sys/block/md0/bdi/read_ahead_kb", "md0 read_ahead_kb 128"),
            ("cat /sys/block/sda/queue/scheduler", ""),
            ("cat /sys/block/sda/queue/scheduler > /tmp/x", ""),
            ("test -e /sys/block/sda/queue/scheduler && true", ""),
            ("cat < /sys/block/sda/queue/scheduler", ""),
        ] {
            assert_eq!(short(command).join("; "), wanted, "{command}");
        }
    }

    #[test]
    fn a_script_s_own_words_are_put_in() {
        let script = "#!/bin/sh\nDEV=$1\n# echo x > /sys/block/a/queue/scheduler\n\
                      echo none > /sys/block/$DEV/queue/scheduler\n\
                      for d in /sys/block/sd* /sys/block/vda; do\n\
                      echo 2 > $d/queue/rq_affinity\ndone\n";
        let found = script_writes(script, &["nvme0n1".to_owned()]);
        let short: Vec<String> = found
            .iter()
            .map(|(line, _, writes)| format!("{line} {} {}", writes[0].device, writes[0].setting))
            .collect();
        assert_eq!(short, ["4 nvme0n1 scheduler", "6 sd*|vda rq_affinity"]);
    }
}
