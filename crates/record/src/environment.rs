//! Where a run was made.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Another program measured, and printed what was read.
    Imported,
}

impl std::fmt::Display for WorldKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            WorldKind::Real => "real",
            WorldKind::Emulated => "emulated",
            WorldKind::Simulated => "simulated",
            WorldKind::Imported => "imported",
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
    /// The target is in a server's data folder, and scratch files went beside it.
    ScratchBesideData {
        /// Whose data folder.
        server: String,
        /// Where that is.
        data: String,
        /// Where scratch files went: on the same filesystem.
        folder: String,
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
    /// Other programs measured: the figures are what they printed.
    Imported {
        /// The files that were read.
        files: Vec<String>,
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
    /// Requests of the trace reach beyond the span and were moved into it.
    TraceWrapped {
        /// How many.
        requests: u64,
        /// The span.
        span: Bytes,
    },
    /// Requests of the trace that are neither reads, writes nor flushes were left out.
    TraceOtherRequests {
        /// How many.
        requests: u64,
    },
    /// Requests were issued to the device again; each counts once.
    TraceReissued {
        /// How many.
        requests: u64,
    },
    /// Requests of a device below another whose own requests are in the trace, too, were left out.
    TraceBelow {
        /// How many.
        requests: u64,
    },
    /// Requests are the same as the one just before them.
    TraceDoubled {
        /// How many.
        requests: u64,
    },
    /// The recorder lost events.
    TraceLost {
        /// How many.
        events: u64,
    },
    /// Filesystems were compared, each in a file that was laid out once for all trials: what the place of a file on
    /// the disk does cannot be told from what its filesystem does.
    FilesystemsPlacedOnce {
        /// How many.
        filesystems: u32,
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
    /// Which boot of the host; empty where there is no host, and in files before version 4.
    pub boot_id: String,
    /// When that boot began, in seconds since 1970, where it is known.
    pub booted_at: Option<i64>,
    /// What else may bear on the figures and changes with a kernel or a server; none in files before
    /// version 4.
    pub facts: Vec<Fact>,
    /// All that inspection found, as it prints with `--json`; null in a world without a host.
    pub inspection: serde_json::Value,
}

/// Something about a host that may change between two boots, or with an upgrade.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is about.
    pub aspect: Aspect,
    /// Which, as the kernel or the server calls it.
    pub name: String,
    /// What it is.
    pub value: String,
}

impl Fact {
    /// The name of the fact about a server's version.
    pub const SERVER_VERSION: &str = "version";
    /// The name of the fact about a server's program.
    pub const SERVER_PROGRAM: &str = "program";
    /// The name of the fact about the kernel's package.
    pub const KERNEL_PACKAGE: &str = "kernel";
    /// The name of the fact about how the kernel was built.
    pub const KERNEL_BUILD: &str = "version";
}

/// What a [`Fact`] or an [`EnvironmentChange`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The kernel's release.
    Kernel,
    /// How the kernel was built.
    KernelBuild,
    /// The kernel's command line.
    BootLine,
    /// The processor, and how many there are.
    Processor,
    /// The processor's microcode.
    Microcode,
    /// What the kernel does about a vulnerability of the processor.
    Mitigation,
    /// Memory.
    Memory,
    /// The device, or its firmware.
    Device,
    /// A setting of the device before the run.
    Setting,
    /// The options with which the target's filesystem is mounted.
    MountOptions,
    /// A parameter of a kernel module.
    ModuleParameter,
    /// A sysctl.
    Sysctl,
    /// The database server.
    Server,
    /// A package of the distribution.
    Package,
    /// The program that measures.
    Spindle,
}

/// What is another in one environment than in an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvironmentChange {
    /// What it is about.
    pub aspect: Aspect,
    /// Which.
    pub name: String,
    /// What it was; `None` where it was not there.
    pub was: Option<String>,
    /// What it is.
    pub is: Option<String>,
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

    /// The kinds of device and filesystem below the target, without their names: `ext4 on (virtio, 256 GiB)`.
    /// A host's disk is another's, though one is sda and the other sdb. Files of every version have the line
    /// that this is made of.
    pub fn device_kind(&self) -> String {
        let own_loop = self.device.starts_with("a loop device on ");
        let line = self.device.trim_start_matches("a loop device on ");
        let below = line.strip_prefix(&self.target).unwrap_or(line);
        let kinds = below.split(" on ").filter(|layer| !layer.is_empty()).map(|layer| match layer
            .split_once(" (")
        {
            Some((name, kind)) if !name.contains(' ') => format!("({kind}"),
            _ => layer.to_owned(),
        });
        let start = if own_loop { vec!["a loop device".to_owned()] } else { Vec::new() };
        start.into_iter().chain(kinds).collect::<Vec<_>>().join(" on ")
    }

    /// What a fact says.
    pub fn fact(&self, aspect: Aspect, name: &str) -> Option<&str> {
        let wanted = |fact: &&Fact| fact.aspect == aspect && fact.name == name;
        self.facts.iter().find(wanted).map(|fact| fact.value.as_str())
    }

    /// What is another in `later` than here, by aspect. Where this one is of a file before version 4, which
    /// has no facts, nothing is known of them, and nothing is said.
    pub fn changes(&self, later: &Environment) -> Vec<EnvironmentChange> {
        let (was, is) = (self.all_facts(), later.all_facts());
        let known = |aspect: Aspect| !self.facts.is_empty() || !is_of_facts(aspect);
        let names: BTreeSet<&(Aspect, String)> = was.keys().chain(is.keys()).collect();
        names
            .into_iter()
            .filter(|key| was.get(key) != is.get(key) && known(key.0))
            .map(|key| EnvironmentChange {
                aspect: key.0,
                name: key.1.clone(),
                was: was.get(key).cloned(),
                is: is.get(key).cloned(),
            })
            .collect()
    }

    fn all_facts(&self) -> BTreeMap<(Aspect, String), String> {
        let mut all = BTreeMap::new();
        let mut add = |aspect, name: &str, value: &str| {
            all.insert((aspect, name.to_owned()), value.to_owned());
        };
        add(Aspect::Kernel, "release", &self.kernel);
        add(Aspect::Processor, "model", &self.cpu);
        add(Aspect::Processor, "online", &self.cpus.to_string());
        // Kernels keep more or less of it for themselves: to the nearest sixteenth of a GiB.
        let sixteenths = (self.memory_bytes + (1 << 25)) >> 26;
        add(Aspect::Memory, "size", &Bytes(sixteenths << 26).to_string());
        add(Aspect::Device, "chain", &self.device);
        add(Aspect::Spindle, "version", &self.spindle_version);
        for (name, value) in &self.settings {
            add(Aspect::Setting, name, value);
        }
        for fact in &self.facts {
            add(fact.aspect, &fact.name, &fact.value);
        }
        all
    }
}

/// Whether an aspect is known from facts alone, which older files do not have.
fn is_of_facts(aspect: Aspect) -> bool {
    !matches!(
        aspect,
        Aspect::Kernel
            | Aspect::Processor
            | Aspect::Memory
            | Aspect::Device
            | Aspect::Setting
            | Aspect::Spindle
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(target: &str, device: &str) -> String {
        let (target, device) = (target.to_owned(), device.to_owned());
        Environment { target, device, ..Environment::default() }.device_kind()
    }

    #[test]
    fn a_kind_of_device_has_no_names() {
        let there = kind("/srv/a", "/srv/a on ext4 on sda1 (scsi, 1 GiB) on sda (HGST X, 2 GiB)");
        let here = kind("/var/b", "/var/b on ext4 on sdc1 (scsi, 1 GiB) on sdc (HGST X, 2 GiB)");
        assert_eq!((there.as_str(), &there), ("ext4 on (scsi, 1 GiB) on (HGST X, 2 GiB)", &here));
        let own = kind("/srv/a", "a loop device on /srv/a on ext4 on vda (virtio, 1 GiB)");
        assert_eq!(own, "a loop device on ext4 on (virtio, 1 GiB)");
        assert_eq!(kind("simulated:hdd-15k", "a drive of 15,000 rpm"), "a drive of 15,000 rpm");
    }
}
