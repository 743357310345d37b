//! The hidden verb that makes this program one client of a load.

use crate::exit::Exit;
use anyhow::Context;

/// Is the client that standard input describes.
pub fn run() -> anyhow::Result<Exit> {
    load::serve_client().context("making a load")?;
    Ok(Exit::Done)
}
