//! Why a server cannot serve. Errors cross the connection to the controller, so they carry text of theirs.

use serde::{Deserialize, Serialize};
use std::{fmt, io, path::PathBuf};

/// Why a server could not carry out a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum ServerError {
    /// The profile cannot be read, or is no device.
    #[error("{message}")]
    Model {
        /// The error of `device`, which names the profile.
        message: String,
    },
    /// It could not get what it needs of the system.
    #[error("{resource}: {message}")]
    Resource {
        /// What it needs.
        resource: Resource,
        /// The system's error.
        message: String,
    },
    /// It was told to serve twice.
    #[error("the server serves a device already")]
    ServesAlready,
}

/// What a server needs of the system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Memory for the data.
    Memory,
    /// The file with the data.
    DataFile {
        /// The file.
        path: PathBuf,
    },
    /// A thread and a timer for the pacer.
    Pacer,
    /// A socket.
    Socket,
    /// An eventfd.
    Eventfd,
    /// A mounted FUSE filesystem.
    Fuse {
        /// The mount point.
        point: PathBuf,
    },
    /// The queue of a ublk device.
    UblkQueue {
        /// The device's number.
        index: u32,
    },
}

impl ServerError {
    pub(crate) fn model(error: impl std::error::Error) -> ServerError {
        ServerError::Model { message: error.to_string() }
    }
}

impl Resource {
    pub(crate) fn failed(self, error: io::Error) -> ServerError {
        ServerError::Resource { resource: self, message: error.to_string() }
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Memory => f.write_str("no memory for the data"),
            Resource::DataFile { path } => path.display().fmt(f),
            Resource::Pacer => f.write_str("no thread or timer for the pacer"),
            Resource::Socket => f.write_str("a socket"),
            Resource::Eventfd => f.write_str("an eventfd"),
            Resource::Fuse { point } => write!(f, "FUSE on {}", point.display()),
            Resource::UblkQueue { index } => write!(f, "the queue of /dev/ublkc{index}"),
        }
    }
}
