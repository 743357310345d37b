//! What went wrong on the host: what, where, why probably, what to do next.

use std::{io, path::PathBuf};

/// Result of everything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An answer of the host that stops the caller.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call on a path failed.
    #[error("cannot {doing} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// The verb: "read", "attach", "mount".
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// There is nothing at the path.
    #[error("there is no {what} at {}: check the spelling, and that it is mounted here", path.display())]
    Missing {
        /// What was looked for.
        what: &'static str,
        /// Where.
        path: PathBuf,
    },
    /// The thing is there but is not of the kind needed.
    #[error("{} is {found}, and {needed} is needed", path.display())]
    WrongKind {
        /// Where.
        path: PathBuf,
        /// What it is.
        found: String,
        /// What it should be.
        needed: &'static str,
    },
    /// A setting that the kernel would not take, or that would not mean what was asked.
    #[error(transparent)]
    Refused(#[from] crate::Refusal),
    /// The device is not the one that it was.
    #[error("{device} is not the device it was: {difference}; nothing was written to it")]
    OtherDevice {
        /// Its name and number.
        device: String,
        /// What differs.
        difference: String,
    },
    /// Another process measures the device.
    #[error(
        "{device} is being measured by another run (process {pid}: {command}): each would measure the \
         other's load; wait until it ends, or end it"
    )]
    Measured {
        /// Its name and number.
        device: String,
        /// The other process.
        pid: u32,
        /// What its user had typed.
        command: String,
    },
    /// The kernel kept something else than what was written.
    #[error(
        "{device}: wrote '{wrote}' to {setting}, and it now reads '{reads}': \
         a udev rule or tuned may own this setting (spindle inspect names owners)"
    )]
    NotKept {
        /// Its name and number.
        device: String,
        /// The setting's file.
        setting: String,
        /// What was written.
        wrote: String,
        /// What is read back.
        reads: String,
    },
    /// A program that we need ended badly or is not there.
    #[error("{program} {problem}; {next}")]
    Program {
        /// Its name with its arguments.
        program: String,
        /// What happened, with its own words.
        problem: String,
        /// What to do: a package to install, an option to leave out.
        next: String,
    },
    /// The kernel's text was not in the form that its documentation gives.
    #[error("{} reads '{text}', which is not {expected}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What it said (shortened).
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A folder of ours is not any more where it was made.
    #[error(
        "{} is not the folder that was made there{}: somebody who may write in {} gave it another name or put \
         something in its place; nothing was written to what is there now; use a directory in which only you and \
         root may write",
        path.display(),
        .now.as_ref().map_or(String::new(), |now| format!(" (that one is {} now)", now.display())),
        path.parent().unwrap_or(path).display()
    )]
    Moved {
        /// Where it was made.
        path: PathBuf,
        /// Where it is, as far as that is known.
        now: Option<PathBuf>,
    },
    /// Scratch files would be among a database's.
    #[error(
        "{} is in a data folder of {server} ({}), where a scratch folder would count as the server's own: MySQL and \
         MariaDB show it as a database, and backups take it along; and {why}: name a folder beside it",
        path.display(), data.display()
    )]
    InDataFolder {
        /// What was named.
        path: PathBuf,
        /// The data folder.
        data: PathBuf,
        /// Whose.
        server: crate::DataServer,
        /// Why no folder above can be taken.
        why: crate::NoPlace,
    },
    /// Others could put something else in the place of what is mounted on.
    #[error(
        "nothing is mounted below {}: others than this user and root may rename what is in {}, and the mount \
         would be wherever they like; name a state folder in which only you may write (SPINDLE_STATE)",
        path.display(), shared.display()
    )]
    Shared {
        /// Where it was to be.
        path: PathBuf,
        /// The folder that others may change.
        shared: PathBuf,
    },
    /// This host lacks what was asked for.
    #[error("{what} is not possible here: {why}; {next}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it cannot be.
        why: String,
        /// What can be done instead.
        next: String,
    },
}

/// The probable cause of the errors that users meet most.
fn hint(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => " (this needs root: run it with sudo)",
        Some(libc::EBUSY) => " (something else holds it: see lsblk, lsof and fuser)",
        Some(libc::ENOSPC) => " (the filesystem is full: free some space or choose another folder)",
        Some(libc::EROFS) => " (the filesystem is mounted read-only)",
        _ => "",
    }
}

/// Turns an I/O error into ours, with the verb and the path.
pub(crate) fn io_error(
    doing: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> Error {
    let path = path.into();
    move |source| Error::Io { doing, path, source }
}
