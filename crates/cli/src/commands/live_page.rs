//! The hidden verb that makes this program the page of a run that goes on.

use crate::{exit::Exit, live};
use clap::Args;
use std::path::PathBuf;

/// The words of `live-page`.
#[derive(Debug, Args)]
pub struct LivePageArgs {
    /// The run file
    file: PathBuf,
}

impl LivePageArgs {
    /// Serves the page until standard input ends.
    pub fn run(self) -> anyhow::Result<Exit> {
        live::serve(&self.file)?;
        Ok(Exit::Done)
    }
}
