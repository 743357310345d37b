//! The command `spindle`: words → plan → run → output.
//!
//! What lives here: flags, exit codes, the progress bar, where run files are kept. What does not:
//! anything that measures, sets, computes or lays out text. `commands/` has one file for each verb.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod exit;
mod flags;
mod fleet_file;
mod groups;
mod interrupt;
mod live;
mod manual;
mod pending;
mod progress;
mod runs_folder;
mod say;

use clap::{CommandFactory, FromArgMatches, Parser};
use commands::Command;
use std::process::ExitCode;

/// Columns of everything that is printed.
const WIDTH: usize = 80;

/// What `--version` says; `-V` says the number alone.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("SPINDLE_COMMIT"),
    "\nbuilt for ",
    env!("SPINDLE_TARGET")
);

/// Which Linux I/O settings make this database fastest on this storage, and why.
#[derive(Debug, Parser)]
#[command(name = "spindle", version, long_version = LONG_VERSION, max_term_width = 80)]
struct Spindle {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let given = groups::grouped(Spindle::command()).get_matches();
    let words = Spindle::from_arg_matches(&given).unwrap_or_else(|error| error.exit());
    match words.command.run() {
        Ok(exit) => exit.code(),
        Err(error) => {
            say::note(&runner::with_sources(error.as_ref()));
            exit::of_error(&error).code()
        }
    }
}
