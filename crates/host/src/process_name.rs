//! A process by name and number.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A process as the kernel calls it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessName {
    /// Its number.
    pub pid: u32,
    /// The kernel's name for it, 15 letters.
    pub name: String,
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}
