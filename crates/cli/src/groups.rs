//! The list of verbs in `spindle --help`, by what they are for.

use clap::Command;
use std::fmt::Write;

/// Headings, and the verbs below each.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Look", &["inspect", "explain", "runs", "report", "diff", "merge"]),
    ("Measure", &["plan", "compare", "resume", "check"]),
    ("Act", &["recommend", "apply", "status", "undo"]),
    ("Bring in what others measured", &["import", "record"]),
    ("Model devices", &["emulate", "fit", "profiles", "validate"]),
    ("Other", &["completions", "help"]),
];

/// Where the description of a verb begins.
const COLUMN: usize = 15;

/// The program's help with its verbs in groups.
pub fn grouped(command: Command) -> Command {
    let mut text = String::new();
    for (heading, verbs) in GROUPS {
        let _ = writeln!(text, "{heading}:");
        for verb in verbs {
            let about = command.get_subcommands().find(|it| it.get_name() == *verb);
            let about = about.and_then(Command::get_about).map(ToString::to_string);
            // clap adds `help` when it builds the command.
            let about = about.unwrap_or_else(|| "Print the help of a verb".to_owned());
            let lines = report::wrap(&about, crate::WIDTH - COLUMN, 0);
            let lines = lines.replace('\n', &format!("\n{:COLUMN$}", ""));
            let _ = writeln!(text, "  {verb:0$}{lines}", COLUMN - 2);
        }
        text.push('\n');
    }
    command
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}",
        )
        .after_help(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_verb_that_people_use_is_in_one_group() {
        let command = crate::Spindle::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut verbs: Vec<&str> = shown.map(Command::get_name).collect();
        verbs.push("help");
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, all)| *all).copied().collect();
        verbs.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, verbs);
    }

    #[test]
    fn help_is_no_wider_than_a_terminal() {
        let text = grouped(crate::Spindle::command()).render_help().to_string();
        assert!(text.lines().all(|line| line.chars().count() <= crate::WIDTH), "{text}");
        for word in ["Measure:", "compare", "Options:", "--version"] {
            assert!(text.contains(word), "no '{word}' in:\n{text}");
        }
    }
}
