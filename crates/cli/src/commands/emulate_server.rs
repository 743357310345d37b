//! The hidden verb that makes this program the server of an emulated device.

use crate::exit::Exit;
use anyhow::Context;
use std::os::{fd::AsFd, unix::net::UnixStream};

/// Serves the device that the controller at standard input asks for.
pub fn run() -> anyhow::Result<Exit> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().context("no standard input")?;
    emulate::serve(UnixStream::from(input)).context("serving an emulated device")?;
    Ok(Exit::Done)
}
