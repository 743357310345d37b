//! Presets: what one stands for here, and what it leaves out.

use crate::{page::Page, words};
use plan::{Classic, Factor, LeftOut, Level, Plan, PresetUse};
use workload::{Preset, VariableSet};

/// All presets, each with what it compares.
pub fn presets(width: usize) -> String {
    let mut page = Page::new(width);
    page.line(0, "Presets, with a database workload (--workload oltp_read_write,server=mysql):");
    for preset in Preset::ALL {
        page.item(&format!("--preset {preset}"), preset.question());
    }
    page.line(
        0,
        "The variables and values depend on the server and its version: `spindle plan` shows them.",
    );
    page.line(0, "More: spindle explain flush (doublewrite, aio, capacity, durability)");
    page.text()
}

/// All classics, each with what it compares.
pub fn classics(width: usize) -> String {
    let mut page = Page::new(width);
    page.line(
        0,
        "Published experiments and variants of them, with published figures where there are some:",
    );
    for classic in Classic::ALL {
        page.item(classic.name, classic.question);
    }
    page.line(0, "What one runs: `spindle plan --classic NAME`. More: docs/guide/classics.md");
    page.text()
}

/// A preset in a plan: the flags that it stands for, what flags beside it change, what is left out.
pub(crate) fn of_plan(used: &PresetUse, width: usize) -> String {
    let mut text = format!("Preset: {} on {}, which stands for\n", used.preset, used.server);
    for flag in flags(&used.factors) {
        // To be copied: not broken into lines.
        text.push_str(&format!("    {flag}\n"));
    }
    let mut line = |words: String| {
        text.push_str(&words::wrap_after("  ", &words, width, 4));
        text.push('\n');
    };
    if !used.overridden.is_empty() {
        let names = used.overridden.join(", ");
        line(format!("Named beside the preset, and left to that: {names}"));
    }
    if !used.added.is_empty() {
        let names: Vec<String> = used.added.iter().map(Factor::to_string).collect();
        line(format!("Added to the preset: {}", names.join(", ")));
    }
    used.left_out.iter().for_each(|it| line(left_out(it)));
    text
}

/// The same in a report: which preset it was, and what it left out.
pub(crate) fn of_report(used: &PresetUse) -> Vec<String> {
    let mut lines = vec![format!("Preset {} on {}.", used.preset, used.server)];
    lines.extend(used.left_out.iter().map(|it| format!("{}.", left_out(it))));
    lines
}

/// What the names of variables that are set together stand for; those of a preset are in its flags,
/// where these are shown.
pub(crate) fn names(plan: &Plan, flags_shown: bool) -> Vec<String> {
    let mut sets: Vec<VariableSet> = Vec::new();
    let used = plan.preset.iter().filter(|_| flags_shown).flat_map(|used| &used.factors);
    let shown: Vec<&Level> = used.flat_map(|(_, levels)| levels).collect();
    let levels = plan.cells.iter().filter_map(|cell| cell.level(&Factor::Variables));
    for Level(text) in levels.filter(|level| !shown.contains(level)) {
        if let Ok(set) = text.parse::<VariableSet>()
            && set.name.is_some()
            && !sets.contains(&set)
        {
            sets.push(set);
        }
    }
    let named = |set: &VariableSet| match set.variables.is_empty() {
        true => format!("{}: nothing is set", set.label()),
        false => format!("{}: {}", set.label(), set.settings()),
    };
    sets.iter().map(named).collect()
}

fn left_out(it: &LeftOut) -> String {
    let label = it.set.label();
    let settings = it.set.settings();
    let what = if label == settings { label } else { format!("{label} ({settings})") };
    format!("Left out: {what}: {}", it.reason)
}

/// Factors as the flags that name them.
fn flags(factors: &[(Factor, Vec<Level>)]) -> Vec<String> {
    let mut all = Vec::new();
    for (factor, levels) in factors {
        match factor {
            Factor::Variable { name } => {
                let values: Vec<&str> = levels.iter().map(|level| level.0.as_str()).collect();
                all.push(format!("--variable {}", quoted(&format!("{name}={}", values.join(",")))));
            }
            _ => all.extend(levels.iter().map(|level| format!("--variables {}", quoted(&level.0)))),
        }
    }
    all
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.=,+/:".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_words_of_a_shell() {
        let level = |text: &str| Level(text.to_owned());
        let factors = [
            (Factor::Variable { name: "log_bin".to_owned() }, vec![level("binlog")]),
            (Factor::Variables, vec![level("a: x=1+y=2"), level("it's: x=2+y=2")]),
        ];
        assert_eq!(
            flags(&factors),
            [
                "--variable log_bin=binlog",
                "--variables 'a: x=1+y=2'",
                r"--variables 'it'\''s: x=2+y=2'"
            ]
        );
    }

    #[test]
    fn the_list_names_every_preset_within_the_width() {
        let text = presets(80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for preset in Preset::ALL {
            assert!(text.contains(&format!("--preset {preset}")), "{text}");
        }
    }
}
