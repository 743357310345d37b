//! What is compared, and how long.

use crate::cells::{Cells, Load};
use emulate::Transport;
use std::path::PathBuf;
use units::Nanos;

/// Rounds of emulated trials when nothing is said.
pub const DEFAULT_ROUNDS: u32 = 5;

/// Time measured in each trial that measures the transport, when nothing is said.
pub const DEFAULT_TRANSPORT_MEASURE: Nanos = Nanos::from_secs(2);

/// What is compared, and how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Names or files of profiles.
    pub profiles: Vec<String>,
    /// Which cells.
    pub cells: Cells,
    /// The schedulers, where not all.
    pub schedulers: Vec<String>,
    /// Rounds of emulated trials.
    pub rounds: u32,
    /// Time measured in each trial, in place of what suits the profile and the cells.
    pub measure: Option<Nanos>,
    /// Time measured in each trial that measures the transport.
    pub transport_measure: Nanos,
    /// How requests reach emulated devices. FUSE is what the published figures were made with; ublk
    /// gives a device other tags, and passes FUA as FUA.
    pub transport: Transport,
    /// The folder in which emulated runs are kept and looked for: kernels are slow, models are not.
    pub keep: Option<PathBuf>,
    /// What the user typed, for the change journal and the manifest.
    pub command: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            profiles: crate::DEFAULT_PROFILES.map(str::to_owned).to_vec(),
            cells: Cells::Short,
            schedulers: Vec::new(),
            rounds: DEFAULT_ROUNDS,
            measure: None,
            transport_measure: DEFAULT_TRANSPORT_MEASURE,
            transport: Transport::Fuse,
            keep: None,
            command: String::new(),
        }
    }
}

impl Settings {
    /// The loads of the sets of cells, with the schedulers that are wanted.
    pub(crate) fn loads(&self) -> Vec<Load> {
        let loads = self.cells.sets().into_iter().map(|set| set.load(&self.schedulers));
        loads.filter(|load| !load.schedulers.is_empty()).collect()
    }
}
