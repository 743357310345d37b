//! `spindle documents`, for those who write documentation: brings the sections of docs/ that the
//! program writes up to date, or says which are not; and writes the manual's pages.

use crate::exit::Exit;
use crate::say;
use anyhow::Context;
use clap::{Args, Command, CommandFactory};
use documents::checks;
use documents::data::markdown_table;
use scheduler::{SchedulerKind, Versions};
use std::path::PathBuf;

/// The flags of `documents`.
#[derive(Debug, Args)]
pub struct DocumentsArgs {
    /// Name the pages that are out of date; exit code 1 if there are any
    #[arg(long, conflicts_with = "write", required_unless_present_any = ["write", "man"])]
    check: bool,
    /// Write the pages that are out of date
    #[arg(long)]
    write: bool,
    /// Write the manual pages into a folder that exists, and nothing else
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["check", "write"])]
    man: Option<PathBuf>,
    /// The folder that holds docs/ and data/
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
}

impl DocumentsArgs {
    /// Checks or writes.
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(folder) = &self.man {
            for (name, text) in crate::manual::pages()? {
                let path = folder.join(name);
                std::fs::write(&path, text)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
            return Ok(Exit::Done);
        }
        let stale = checks::stale(&self.root, self.write, &section)?;
        for page in &stale {
            say::line(&page.display().to_string())?;
        }
        Ok(if self.check && !stale.is_empty() { Exit::Failed } else { Exit::Done })
    }
}

/// The generated section of a name: `cli`, `exit-codes`, `profiles`, `counters`,
/// `schedulers`, or `tunable NAME`.
fn section(name: &str) -> Option<String> {
    match name {
        "cli" => Some(command_line()),
        "exit-codes" => Some(exit_codes()),
        "profiles" => Some(profiles()),
        "counters" => Some(counter_sections()),
        "schedulers" => Some(schedulers()),
        _ => name.strip_prefix("tunable ").and_then(tunable),
    }
}

/// The help of every verb.
fn command_line() -> String {
    let mut program = crate::groups::grouped(crate::Spindle::command()).term_width(80);
    program.build();
    let mut text = String::new();
    help(&program, &mut text);
    text
}

fn help(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let name = name.strip_prefix("spindle ").unwrap_or(name);
    text.push_str(&format!("## `{name}`\n\n```text\n"));
    for line in command.clone().render_help().to_string().lines() {
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    text.push_str("```\n\n");
    for verb in command.get_subcommands() {
        if !verb.is_hide_set() && verb.get_name() != "help" {
            help(verb, text);
        }
    }
}

fn exit_codes() -> String {
    Exit::ALL.iter().map(|exit| format!("## {}\n\n{}\n\n", exit.number(), exit.meaning())).collect()
}

/// Every counter of the catalogue.
fn counter_sections() -> String {
    let section = |counter: &&counters::Counter| {
        let unit = match counter.unit.symbol() {
            "" => "a number".to_owned(),
            symbol => symbol.to_owned(),
        };
        let aggregate = counter.aggregate.name();
        format!(
            "## `{}`\n\n{}. Unit: {unit}; a trial's figure is the {aggregate}. Source: {}.\n\n",
            counter.id, counter.meaning, counter.source
        )
    };
    counters::ALL.iter().map(section).collect()
}

/// Every profile: what it is, what it takes, and where its numbers come from.
fn profiles() -> String {
    let mut text = String::new();
    for name in device::profile::builtin_names() {
        let Ok(profile) = device::profile::find(name) else { continue };
        text.push_str(&format!("## {name}\n\n{} ({}).", profile.title, profile.kind_name()));
        if let Ok(device) = profile.build(1) {
            let (capacity, depth) = (device.capacity().bytes(), device.queue_depth());
            text.push_str(&format!(" Capacity {capacity}; takes {depth} requests at once."));
        }
        for note in &profile.notes {
            text.push_str(&format!(" {note}"));
        }
        let rows: Vec<Vec<&str>> = profile
            .sources
            .iter()
            .map(|(field, source)| vec![field.as_str(), source.as_str()])
            .collect();
        text.push_str(&format!("\n\n{}\n", markdown_table(&["field", "source"], &rows)));
    }
    text
}

/// Where a tunable exists, with its default and range.
fn tunable(name: &str) -> Option<String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for spec in SchedulerKind::ALL.iter().map(|kind| kind.spec()) {
        for tunable in spec.tunables.iter().filter(|tunable| tunable.name == name) {
            let with_unit = |value: u64| format!("{value} {}", tunable.unit).trim_end().to_owned();
            rows.push(vec![
                spec.name.to_owned(),
                kernels(common(spec.versions, tunable.versions)),
                with_unit(tunable.default),
                format!("{} to {}", tunable.min, with_unit(tunable.max)),
                tunable.description.to_owned(),
            ]);
        }
    }
    let heads = ["scheduler", "kernels", "default", "range", "meaning"];
    (!rows.is_empty()).then(|| table(&heads, &rows))
}

/// Every scheduler, with a link to its page.
fn schedulers() -> String {
    let rows: Vec<Vec<String>> = SchedulerKind::ALL
        .iter()
        .map(|kind| {
            let spec = kind.spec();
            let modelled = blocklayer::Kernel::ALL
                .iter()
                .filter(|kernel| kernel.schedulers().contains(kind))
                .map(|kernel| kernel.name());
            vec![
                format!("[{}]({}.md)", spec.name, spec.page),
                kernels(spec.versions),
                modelled.collect::<Vec<_>>().join(", "),
                spec.description.to_owned(),
            ]
        })
        .collect();
    table(&["scheduler", "kernels", "simulated kernels", "what it does"], &rows)
}

fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let cells: Vec<Vec<&str>> =
        rows.iter().map(|row| row.iter().map(String::as_str).collect()).collect();
    markdown_table(heads, &cells)
}

/// The kernels that belong to both.
fn common(one: Versions, other: Versions) -> Versions {
    let until = match (one.until, other.until) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    // None is before every version, as it has to be here.
    Versions { since: one.since.max(other.since), until }
}

/// A range of kernels, for people.
fn kernels(versions: Versions) -> String {
    match (versions.since, versions.until) {
        (None, None) => "all".to_owned(),
        (Some(since), None) => format!("{since} and later"),
        (None, Some(until)) => format!("before {until}"),
        (Some(since), Some(until)) => format!("from {since}, before {until}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands of a page: indented lines that begin with `spindle`, with their continuations.
    fn commands(text: &str) -> Vec<String> {
        let mut commands = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(line) = line.strip_prefix("    ") else { continue };
            let line = line.trim_start_matches("$ ").trim_start_matches("sudo ");
            if !line.starts_with("spindle ") {
                continue;
            }
            let mut command = line.to_owned();
            while let Some(first) = command.strip_suffix('\\') {
                command = format!("{first}{}", lines.next().unwrap_or_default());
            }
            let command = command.split(" #").next().unwrap_or_default();
            commands.push(command.replace('…', ""));
        }
        commands
    }

    /// A command's words as a shell has them: what is within single quotes is one.
    fn words(command: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (part, text) in command.split('\'').enumerate() {
            match part % 2 {
                0 => words.extend(text.split_whitespace().map(str::to_owned)),
                _ => words.push(text.to_owned()),
            }
        }
        words
    }

    #[test]
    fn every_command_of_a_page_is_one() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut count = 0;
        for page in checks::pages(&root).unwrap() {
            for command in commands(&checks::read(&root, &page).unwrap()) {
                let parsed = <crate::Spindle as clap::Parser>::try_parse_from(words(&command));
                if let Err(error) = parsed {
                    panic!("{}: {command}\n{error}", page.display());
                }
                count += 1;
            }
        }
        assert!(count > 40, "only {count} commands were found");
    }

    #[test]
    fn pages_agree_with_the_program_and_with_data() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let stale = checks::stale(&root, false, &section).unwrap();
        assert!(stale.is_empty(), "`spindle documents --write` brings up to date: {stale:?}");
    }
}
