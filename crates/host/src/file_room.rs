//! A file's length and what is allocated of it: parts that were never written have no place on a device.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::Bytes;

/// A file's length and what is allocated of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRoom {
    /// The file.
    pub path: PathBuf,
    /// Its length.
    pub size: Bytes,
    /// What the filesystem has allocated for it.
    pub allocated: Bytes,
}
