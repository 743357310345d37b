//! Where a run was made.

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// In which world a run was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorldKind {
    /// This host's storage as it is.
    #[default]
    Real,
    /// A model's timing under the real kernel.
    Emulated,
    /// Models alone, in virtual time.
    Simulated,
}

impl std::fmt::Display for WorldKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            WorldKind::Real => "real",
            WorldKind::Emulated => "emulated",
            WorldKind::Simulated => "simulated",
        })
    }
}

/// What a reader of all figures of a run must know. Data alone: `report` has the words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Caveat {
    /// A trap of the host that concerns figures, as `spindle inspect` shows it.
    Trap {
        /// Its page's name.
        id: String,
        /// Its title.
        title: String,
        /// What was seen.
        evidence: String,
    },
    /// The device is a model, paced in wall time.
    EmulatedModel {
        /// The profile.
        profile: String,
        /// What carries its requests.
        transport: String,
    },
    /// The transport passes fewer commands at once than the model takes.
    FewerTags {
        /// Commands that the model takes.
        model: u32,
        /// Commands that pass.
        passed: u32,
        /// What carries them.
        transport: String,
    },
    /// Models computed the figures, in virtual time.
    SimulatedModel {
        /// From a completion to the client's next request.
        turnaround: Nanos,
        /// The simulated page cache.
        page_cache: Bytes,
    },
    /// A recorded trace was replayed.
    Trace {
        /// Its format.
        format: String,
        /// Requests in it.
        requests: u64,
        /// Processes that made them.
        processes: u64,
        /// From the first to the last.
        length: Nanos,
    },
    /// Lines of the trace could not be read and were left out.
    TraceBadLines {
        /// How many.
        lines: u64,
    },
    /// The clock of the trace was set back, or jumped ahead and came back; requests after such a step
    /// follow without a gap.
    TraceClockSteps {
        /// How often.
        steps: u64,
    },
    /// The trace is longer than a trial: its end is not replayed.
    TraceCut {
        /// From its first request to its last.
        length: Nanos,
        /// How long a trial lasts at most.
        measure: Nanos,
    },
    /// Requests of the trace that are neither reads, writes nor flushes were left out.
    TraceOtherRequests {
        /// How many.
        requests: u64,
    },
    /// A sentence of a run file older than version 3.
    Recorded {
        /// The sentence.
        text: String,
    },
}

/// Where a run was made: enough to tell, later and elsewhere, what the figures speak of.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Environment {
    /// In which world.
    pub world: WorldKind,
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
    /// What a reader of the figures must know of where they were made.
    pub caveats: Vec<Caveat>,
    /// All that inspection found, as it prints with `--json`; null in a world without a host.
    pub inspection: serde_json::Value,
}

impl Environment {
    /// What makes `other` another place than this, so that trials made there cannot be compared with
    /// trials made here; `None` when nothing does.
    pub fn difference(&self, other: &Environment) -> Option<Difference> {
        let parts = [
            ("host", &self.hostname, &other.hostname),
            ("kernel", &self.kernel, &other.kernel),
            ("CPU", &self.cpu, &other.cpu),
            ("device", &self.device, &other.device),
        ];
        let (what, was, is) = parts.into_iter().find(|(_, was, is)| was != is)?;
        Some(Difference { what, was: was.clone(), is: is.clone() })
    }
}

/// How two places differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What differs.
    pub what: &'static str,
    /// In the first.
    pub was: String,
    /// In the other.
    pub is: String,
}
