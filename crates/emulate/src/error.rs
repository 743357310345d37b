//! Why a device cannot be emulated.

use crate::server_error::ServerError;
use std::{io, path::PathBuf};
use units::Bytes;

/// Why a device cannot be emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] device::profile::ProfileError),
    /// The profile is no device.
    #[error(transparent)]
    Spec(#[from] device::SpecError),
    /// The device would be larger than its model.
    #[error("{asked} is more than {profile} has ({capacity}): a model ends at its capacity")]
    TooLarge {
        /// The profile.
        profile: String,
        /// Its capacity.
        capacity: Bytes,
        /// The requested size.
        asked: Bytes,
    },
    /// The device would have no block.
    #[error("{asked} is too small for a device: use 4 KiB or more")]
    TooSmall {
        /// The requested size.
        asked: Bytes,
    },
    /// The user's data file cannot be used.
    #[error("--data {}: {source}", path.display())]
    DataFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: DataFileError,
    },
    /// This host cannot do it, as it is.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// No server process could be started.
    #[error("cannot start a server: {0}")]
    Start(#[source] io::Error),
    /// The server could not do it.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server ended, or does not respond.
    #[error(
        "the server of the emulated device {lost}: was it killed? (`spindle undo` removes what is \
         left of the device)"
    )]
    Lost {
        /// How that showed.
        #[source]
        lost: Lost,
    },
    /// The server replied to another command: a fault of this program.
    #[error("the server sent an unexpected reply: {reply}")]
    Unexpected {
        /// The reply.
        reply: String,
    },
}

impl EmulateError {
    /// Whether it is a usage error: what the user asked for does not exist or does not fit.
    pub fn is_usage(&self) -> bool {
        match self {
            EmulateError::Profile(_)
            | EmulateError::Spec(_)
            | EmulateError::TooLarge { .. }
            | EmulateError::TooSmall { .. }
            | EmulateError::DataFile { .. } => true,
            EmulateError::Host(_)
            | EmulateError::Start(_)
            | EmulateError::Server(_)
            | EmulateError::Lost { .. }
            | EmulateError::Unexpected { .. } => false,
        }
    }
}

/// How the loss of a server showed.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// It closed its connection.
    #[error("has ended")]
    Ended,
    /// A command could not be sent.
    #[error("does not accept commands ({0})")]
    Send(#[source] io::Error),
    /// No reply was received.
    #[error("does not reply ({0})")]
    Receive(#[source] io::Error),
}

/// Why the user's file cannot hold a device's data.
#[derive(Debug, thiserror::Error)]
pub enum DataFileError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] io::Error),
    /// It is a folder or a device.
    #[error("not a regular file; use a folder for a scratch file in it")]
    NotAFile,
    /// It could not be given its size.
    #[error(
        "cannot make it {size} long: {source}; its filesystem may not support files that large"
    )]
    Extend {
        /// The size.
        size: Bytes,
        /// Why.
        source: io::Error,
    },
    /// It has another length than the device.
    #[error(
        "it is {length} long and the device would be {size}: use --size {length}, or another file"
    )]
    Length {
        /// The file's.
        length: Bytes,
        /// The device's.
        size: Bytes,
    },
}
