//! What was applied to stay, and on what ground.

use crate::{Identity, Setting};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What was applied, and on what ground.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// The run that recommended it.
    pub run: String,
    /// When that was measured, in seconds since 1970.
    pub measured_at: i64,
    /// What was set, for people: `scheduler kyber`.
    pub label: String,
    /// When it was applied, in seconds since 1970.
    pub applied_at: i64,
    /// The kernel's release when it was measured.
    pub kernel: String,
    /// The run's file, which has what else the verdict holds for.
    pub run_file: PathBuf,
    /// What has to be in force.
    pub settings: Vec<KeptSetting>,
    /// Until when it has to be confirmed, in seconds since 1970; then it is taken back.
    pub confirm_by: Option<i64>,
    /// The name of the journal of the earlier application in whose place this is. That journal stays, with what was
    /// before it: taking this back leaves the earlier one in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
}

/// A setting that has to be in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSetting {
    /// Of which device.
    pub device: Identity,
    /// Which setting.
    pub setting: Setting,
    /// What the kernel said when it was set.
    pub value: String,
}
