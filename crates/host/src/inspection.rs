//! Everything that is known of a target and the machine around it, as one value.

use crate::{Chain, DriveHealth, FileRoom, GroupLimits, Machine, Owner, Probe, Setting, Trap};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What `spindle inspect` shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// The target as it was given.
    pub target: PathBuf,
    /// The machine.
    pub machine: Machine,
    /// From the target to its devices.
    pub chain: Chain,
    /// What the drives say of their own state, those that say something.
    #[serde(default)]
    pub health: Vec<DriveHealth>,
    /// Of a file as target, and of the file behind a loop device: how long it is and how much of it
    /// was ever written.
    pub files: Vec<FileRoom>,
    /// Read-ahead of the target's filesystem, KiB, where that is not its device's.
    pub filesystem_read_ahead_kb: Option<u32>,
    /// What else sets queue settings of these devices.
    pub owners: Vec<Owner>,
    /// Limits on our own control group.
    pub limits: GroupLimits,
    /// Other mounts on the device whose settings would be varied: they feel every change.
    pub shared_with: Vec<PathBuf>,
    /// The settings of that device that we may change as this user.
    pub changeable: Vec<Setting>,
    /// Journals of ended runs that have not been undone.
    pub pending: Vec<PathBuf>,
    /// What a second of random reads showed.
    pub probe: Option<Probe>,
    /// What could not be found out, and what it needs.
    pub missing: Vec<String>,
    /// What to beware of here.
    #[serde(with = "crate::traps::words::described")]
    pub traps: Vec<Trap>,
}
