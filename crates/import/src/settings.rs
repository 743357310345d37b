//! What the commands of a transcript set, and what they ask of a program.

use plan::{Factor, Level};
use std::collections::BTreeMap;

/// Settings in force at a place of a transcript, each with the line that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Factor to level and line.
    pub levels: BTreeMap<Factor, (Level, u64)>,
    /// Variables of servers that were shown, and the lines.
    pub variables: BTreeMap<String, String>,
}

/// A command of a transcript, its continuation lines joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Its words, without quotes.
    pub words: Vec<String>,
    /// Its first line, from 1.
    pub line: u64,
}

/// Programs whose commands say something, or end what stands before.
const PROGRAMS: [&str; 24] = [
    "echo",
    "sysbench",
    "fio",
    "iostat",
    "vmstat",
    "pgbench",
    "cat",
    "go-tpc",
    "tiup",
    "tpcc_start",
    "blockdev",
    "mount",
    "umount",
    "mkfs",
    "mkfs.ext4",
    "mkfs.xfs",
    "mkfs.ext3",
    "mkfs.btrfs",
    "set",
    "show",
    "cd",
    "time",
    "for",
    "done",
];

/// Words that may stand before a program.
const BEFORE: [&str; 8] = ["sudo", "time", "nohup", "env", "nice", "do", "then", "numactl"];

/// The command of a line, without the prompt before it; `None` when the line is none.
pub(crate) fn command(line: &str) -> Option<String> {
    let line = line.trim();
    let rest = without_prompt(line).unwrap_or(line);
    let rest = dashes(rest);
    let mut words = rest.split_whitespace().skip_while(|word| BEFORE.contains(word));
    let program = words.next()?.rsplit('/').next()?.trim_end_matches(';').to_ascii_lowercase();
    let has_prompt = without_prompt(line).is_some();
    let is_known = PROGRAMS.contains(&program.as_str());
    // `sysbench 1.0.20 (using …)` and `Time: …` are no commands; without a prompt flags or a path must follow.
    let says = match program.as_str() {
        "echo" | "cat" | "blockdev" => rest.contains('/'),
        "set" => rest.to_ascii_lowercase().contains("global"),
        "show" => rest.to_ascii_lowercase().contains(" like ") || has_prompt,
        _ => rest.contains(" -") || (has_prompt && !rest.contains("multi-threaded")),
    };
    (is_known && says).then(|| rest.clone())
}

/// What stands behind a prompt: `[root@db1 ~]# `, `root@db1:/data# `, `$ `, `mysql> `.
fn without_prompt(line: &str) -> Option<&str> {
    for mark in ["# ", "$ ", "% ", "> "] {
        let Some(at) = line.find(mark) else { continue };
        let before = line[..at].trim();
        let is_prompt = before.is_empty()
            || (before.starts_with('[') && before.ends_with(']'))
            || ((before.contains('@') || before.ends_with('~')) && !before.contains(' '))
            || matches!(before, "mysql" | "sh" | "bash")
            || before.starts_with("MariaDB [")
            || before.starts_with("postgres=");
        if is_prompt && before.len() < 80 {
            return Some(line[at + mark.len()..].trim_start());
        }
    }
    None
}

/// Long dashes that an editor made of two short ones, where an option begins.
fn dashes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for character in text.chars() {
        match character {
            '\u{2013}' | '\u{2014}' | '\u{2015}' if begins => out.push_str("--"),
            '\u{2013}' | '\u{2014}' | '\u{2015}' => out.push('-'),
            other => out.push(other),
        }
        begins = character.is_whitespace();
    }
    // `—-threads`: the dash stood for one, and a second is there.
    while out.contains(" ---") {
        out = out.replace(" ---", " --");
    }
    out
}

impl Command {
    /// From its text.
    pub(crate) fn of(text: &str, line: u64) -> Command {
        let words = text
            .split_whitespace()
            .map(|word| word.replace(['"', '\'', '`'], ""))
            .filter(|word| !word.is_empty() && word != "\\")
            .collect();
        Command { words, line }
    }

    /// Whether it runs a program.
    pub fn runs(&self, program: &str) -> bool {
        let mut words = self.words.iter().skip_while(|word| BEFORE.contains(&word.as_str()));
        words.next().is_some_and(|word| word.rsplit('/').next() == Some(program))
    }

    /// An option's value: `--threads=24`, `--threads 24`, `-c 8`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let with = format!("{name}=");
        self.words.iter().enumerate().find_map(|(place, word)| {
            word.strip_prefix(&with).or_else(|| {
                (word == name).then(|| self.words.get(place + 1).map(String::as_str))?
            })
        })
    }

    /// The first of several options that is there.
    pub fn any(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.option(name))
    }

    /// Whether a word stands in it.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|it| it == word)
    }
}

impl Settings {
    /// Takes what a command sets.
    pub(crate) fn apply(&mut self, text: &str, line: u64) {
        for part in text.split([';']).flat_map(|part| part.split("&&")) {
            self.apply_one(part.trim(), line);
        }
    }

    fn apply_one(&mut self, part: &str, line: u64) {
        if let Some((value, name)) = written(part) {
            self.queue(name, value, line);
        } else if let Some(rest) = part.split("--setra").nth(1) {
            // In sectors of 512 bytes.
            let sectors = rest.split_whitespace().next().and_then(|it| it.parse::<u64>().ok());
            if let Some(sectors) = sectors {
                self.set(Factor::ReadAheadKb, &(sectors / 2).to_string(), line);
            }
        } else if let Some(kind) = part.split("mkfs.").nth(1).and_then(|it| it.split(' ').next()) {
            self.set(Factor::Filesystem, kind, line);
        } else {
            let lower = part.to_ascii_lowercase();
            let rest = lower.find("set global ").map(|at| &part[at + "set global ".len()..]);
            if let Some((name, value)) = rest.and_then(|rest| rest.split_once('=')) {
                let value = value.trim().trim_matches(['"', '\'']);
                if workload::is_variable_name(name.trim()) {
                    let factor = Factor::Variable { name: name.trim().to_owned() };
                    self.set(factor, value, line);
                }
            }
        }
    }

    /// A file of `/sys/block/DEVICE/queue`.
    fn queue(&mut self, name: &str, value: &str, line: u64) {
        let factor = match name.rsplit('/').next().unwrap_or_default() {
            "scheduler" => Factor::Scheduler,
            "nr_requests" => Factor::NrRequests,
            "async_depth" if !name.contains("iosched") => Factor::AsyncDepth,
            "read_ahead_kb" => Factor::ReadAheadKb,
            "wbt_lat_usec" => Factor::WbtLatUsec,
            "nomerges" => Factor::Nomerges,
            "rq_affinity" => Factor::RqAffinity,
            tunable if name.contains("iosched/") => {
                let Some((Level(scheduler), _)) = self.levels.get(&Factor::Scheduler) else {
                    return;
                };
                Factor::Tunable { scheduler: scheduler.clone(), name: tunable.to_owned() }
            }
            _ => return,
        };
        self.set(factor, value, line);
    }

    fn set(&mut self, factor: Factor, value: &str, line: u64) {
        // A shell's variable is not known here.
        if value.is_empty() || value.contains('$') {
            return;
        }
        let Ok(level) = factor.level(value) else { return };
        if factor == Factor::Scheduler {
            // The tunables of the one before went with it.
            self.levels.retain(|factor, _| !matches!(factor, Factor::Tunable { .. }));
        }
        self.levels.insert(factor, (level, line));
    }

    /// Takes what `cat …/scheduler` printed: `noop [deadline] cfq`.
    pub(crate) fn shown(&mut self, text: &str, line: u64) -> bool {
        let words: Vec<&str> = text.split_whitespace().collect();
        let chosen: Vec<&str> =
            words.iter().filter_map(|word| word.strip_prefix('[')?.strip_suffix(']')).collect();
        let known = |word: &str| scheduler_named(word).is_some();
        match chosen[..] {
            [name] if words.len() >= 2 && words.len() <= 8 => {
                let plain = words.iter().map(|word| word.trim_matches(['[', ']']));
                if plain.clone().filter(|word| known(word)).count() * 2 < words.len() {
                    return false;
                }
                self.set(Factor::Scheduler, name, line);
                true
            }
            _ => false,
        }
    }

    /// Takes a heading that names one scheduler and little else.
    pub(crate) fn heading(&mut self, text: &str, line: u64) {
        const FILLERS: [&str; 18] = [
            "scheduler",
            "schedulers",
            "elevator",
            "io",
            "i",
            "o",
            "the",
            "with",
            "using",
            "under",
            "test",
            "tests",
            "results",
            "result",
            "for",
            "of",
            "and",
            "mode",
        ];
        let text = text.trim();
        if text.is_empty() || text.chars().count() > 60 || text.contains('|') {
            return;
        }
        let separators = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
        let mut found = None;
        let (mut others, mut numbers) = (0, 0);
        for word in text.split(separators).filter(|word| !word.trim_matches('-').is_empty()) {
            let word = word.trim_matches('-').to_ascii_lowercase();
            match scheduler_named(&word) {
                Some(_) if found.as_ref().is_some_and(|other| *other != word) => return,
                Some(_) => found = Some(word),
                None if FILLERS.contains(&word.as_str()) => {}
                None if word.parse::<u32>().is_ok() => numbers += 1,
                None => others += 1,
            }
        }
        if let Some(name) = found
            && others == 0
            // A row of a table has more.
            && numbers <= 1
        {
            self.set(Factor::Scheduler, &name, line);
        }
    }
}

/// A scheduler by its name.
pub(crate) fn scheduler_named(word: &str) -> Option<scheduler::SchedulerKind> {
    word.parse().ok()
}

/// `echo noop > /sys/block/sda/queue/scheduler`, or through tee: the value and the path below `queue/`.
fn written(part: &str) -> Option<(&str, &str)> {
    let at = part.find("echo ")?;
    let rest = &part[at + "echo ".len()..];
    let (value, path) = rest.split_once(['>', '|'])?;
    let path = path.split("/queue/").nth(1)?;
    let path = path.split([' ', '"', '\'']).next()?;
    let value = value.trim().trim_start_matches("-n ").trim();
    Some((value.trim_matches(['"', '\'', '`']).trim(), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> BTreeMap<String, String> {
        let mut settings = Settings::default();
        for (place, line) in lines.iter().enumerate() {
            match command(line) {
                Some(text) => settings.apply(&text, place as u64),
                None if settings.shown(line, place as u64) => {}
                None => settings.heading(line, place as u64),
            }
        }
        let levels = settings.levels.into_iter();
        levels.map(|(factor, (level, _))| (factor.to_string(), level.0)).collect()
    }

    #[test]
    fn commands_of_every_prompt_set_what_they_say() {
        let one = |line: &str| after(&[line]).remove("scheduler");
        for line in [
            "[root@db1 ~]# echo noop > /sys/block/sda/queue/scheduler",
            "echo \"noop\" >/sys/block/sda/queue/scheduler",
            "$ echo 'noop' | sudo tee /sys/block/vdb/queue/scheduler",
            "# echo noop > /sys/block/sda/queue/scheduler",
            "root@host:/data# echo noop > /sys/block/nvme0n1/queue/scheduler && sync",
            "[noop] deadline cfq",
            "deadline [noop]",
            "## 2. noop",
            "I/O scheduler: noop",
        ] {
            assert_eq!(one(line).as_deref(), Some("noop"), "{line}");
        }
        for line in [
            "noop is 2 % faster than the others",
            "noop deadline cfq",
            "echo $s > /sys/block/sda/queue/scheduler",
            "we compare noop and deadline",
        ] {
            assert_eq!(one(line), None, "{line}");
        }
    }

    #[test]
    fn other_settings_follow() {
        let found = after(&[
            "# echo bfq > /sys/block/sda/queue/scheduler",
            "# echo 0 > /sys/block/sda/queue/iosched/slice_idle",
            "# echo 1024 > /sys/block/sda/queue/nr_requests",
            "# blockdev --setra 8192 /dev/sda",
            "mysql> set global innodb_io_capacity = 2000;",
        ]);
        assert_eq!(found["bfq.slice_idle"], "0");
        assert_eq!(found["nr_requests"], "1024");
        assert_eq!(found["read_ahead_kb"], "4096");
        assert_eq!(found["server.innodb_io_capacity"], "2000");
        let found = after(&[
            "# echo bfq > /sys/block/sda/queue/scheduler",
            "# echo 0 > /sys/block/sda/queue/iosched/slice_idle",
            "# echo noop > /sys/block/sda/queue/scheduler",
        ]);
        assert!(!found.contains_key("bfq.slice_idle"));
    }

    #[test]
    fn options_are_read_with_damaged_dashes() {
        let text =
            command("$ sysbench \u{2013}threads=24 \u{2014}time=180 \"fileio\" run").unwrap();
        let command = Command::of(&text, 1);
        assert_eq!(command.option("--threads"), Some("24"));
        assert_eq!(command.option("--time"), Some("180"));
        assert!(command.has("fileio"));
    }
}
