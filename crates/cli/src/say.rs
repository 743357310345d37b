//! What the program says: results on stdout, everything else on stderr. Neither may break a run
//! that has yet to put the host back: a terminal or a reader that is gone is nobody to tell.

use anyhow::Context;
use rustix::{fs::FileType, io::Errno};
use serde::Serialize;
use std::io::{Error, ErrorKind, Write};

/// Prints a result.
pub fn result(text: &str) -> anyhow::Result<()> {
    bytes(without_controls(text).as_bytes())
}

/// Names that users and devices have may hold what a terminal takes for commands.
fn without_controls(text: &str) -> String {
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}")
}

/// The same of one that is no text. A reader that closed stdout (`| head`) has enough, and a
/// terminal that was closed has no reader: neither is a failure.
pub fn bytes(result: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(result).and_then(|()| out.flush()) {
        Err(error) if is_nobody_there(&error) => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}

/// Of a terminal that is gone the kernel says EIO, as of a disk that fails: only the latter has
/// files.
fn is_nobody_there(error: &Error) -> bool {
    let closed = || {
        let about = rustix::fs::fstat(std::io::stdout());
        about.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::CharacterDevice)
    };
    error.kind() == ErrorKind::BrokenPipe
        || (error.raw_os_error() == Some(Errno::IO.raw_os_error()) && closed())
}

/// Prints a result and ends the line.
pub fn line(text: &str) -> anyhow::Result<()> {
    result(&format!("{text}\n"))
}

/// Prints a result as JSON.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Tells something beside the result, on stderr.
pub fn aside(text: &str) {
    let text = without_controls(text);
    let mut err = std::io::stderr().lock();
    // Where stderr is gone there is nobody to tell, nor a way to say so.
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Tells a sentence on stderr, in the program's name.
pub fn note(text: &str) {
    aside(&format!("spindle: {text}\n"));
}
