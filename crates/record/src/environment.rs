//! Where a run was made.

use serde::{Deserialize, Serialize};

/// Where a run was made: enough to tell, later and elsewhere, what the figures speak of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// `real`, `emulated` or `simulated`.
    pub world: String,
    /// Version of the program that measured.
    pub spindle_version: String,
    /// The host's name.
    pub hostname: String,
    /// The kernel's release, or the simulated level.
    pub kernel: String,
    /// The processor's model.
    pub cpu: String,
    /// Processors online.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// The target as the user wrote it.
    pub target: String,
    /// The whole chain from the target to the device that has a scheduler, one line.
    pub device: String,
    /// The device's settings before the run, by the kernel's names.
    pub settings: Vec<(String, String)>,
    /// What somebody who reads the figures must know of this host, in sentences.
    pub caveats: Vec<String>,
    /// All that inspection found, as it prints with `--json`; null in a world without a host.
    pub inspection: serde_json::Value,
}

impl Environment {
    /// What makes `other` another place than this, so that trials made there cannot be compared with
    /// trials made here; `None` when nothing does.
    pub fn difference(&self, other: &Environment) -> Option<String> {
        let told = [
            ("host", &self.hostname, &other.hostname),
            ("kernel", &self.kernel, &other.kernel),
            ("processor", &self.cpu, &other.cpu),
            ("device", &self.device, &other.device),
        ];
        let (what, was, is) = told.into_iter().find(|(_, was, is)| was != is)?;
        Some(format!("{what} was {was} and is {is}"))
    }
}
