//! The manual's pages, one for the program and one for each verb, from the definition of the flags.

use crate::exit::Exit;
use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};
use std::io::{self, Write};

/// Each page's file name, as `spindle-compare.1`, and its text.
pub fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut program = crate::Spindle::command().disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    add(&program, &mut pages)?;
    Ok(pages)
}

fn add(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let man = Man::new(command.clone()).manual("Spindle");
    let mut text = Vec::new();
    man.render(&mut text)?;
    ending(&mut text)?;
    pages.push((man.get_filename(), text));
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        add(verb, pages)?;
    }
    Ok(())
}

/// What holds for every verb.
fn ending(page: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for exit in Exit::ALL {
        roff.control("TP", []);
        roff.text([bold(exit.number().to_string())]);
        roff.text([roman(exit.meaning())]);
    }
    roff.control("SH", ["FILES"]);
    roff.control("TP", []);
    roff.text([bold("/var/lib/spindle"), roman(", "), bold("~/.local/state/spindle")]);
    roff.text([roman(
        "Runs, and journals of changes that are to be undone: the first is root's, the second another user's.",
    )]);
    roff.control("SH", ["ENVIRONMENT"]);
    roff.control("TP", []);
    roff.text([bold("SPINDLE_STATE")]);
    roff.text([roman("The folder that takes the place of these.")]);
    roff.to_writer(page)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_verb_that_people_use_has_a_page() {
        let pages = pages().unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for verb in crate::Spindle::command().get_subcommands() {
            let page = format!("spindle-{}.1", verb.get_name());
            assert_eq!(names.contains(&page.as_str()), !verb.is_hide_set(), "{page}");
        }
        let (_, first) = &pages[0];
        let first = String::from_utf8_lossy(first);
        for part in
            [".TH spindle 1", "spindle\\-compare(1)", ".SH \"EXIT STATUS\"", "SPINDLE_STATE"]
        {
            assert!(first.contains(part), "{part} is not in:\n{first}");
        }
    }
}
