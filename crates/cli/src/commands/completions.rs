//! `spindle completions`.

use crate::{exit::Exit, say};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

/// The flags of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell that reads it: `source <(spindle completions bash)`
    shell: Shell,
}

impl CompletionsArgs {
    /// Prints the shell's script.
    pub fn run(self) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        let mut program = visible(&crate::Spindle::command());
        clap_complete::generate(self.shell, &mut program, "spindle", &mut script);
        say::result(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

/// The command with only those verbs that people use: shells would offer the hidden ones, too.
fn visible(command: &Command) -> Command {
    let mut copy = Command::new(command.get_name().to_owned())
        .args(command.get_arguments().cloned())
        .subcommands(command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible));
    if let Some(about) = command.get_about() {
        copy = copy.about(about.clone());
    }
    match command.get_version() {
        Some(version) => copy.version(version.to_owned()),
        None => copy,
    }
}
