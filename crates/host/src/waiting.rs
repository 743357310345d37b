//! What waits to take settings back, and how it is ended.

use crate::{Host, Outcome, own_group_command, process_identity::end_process};
use serde::{Deserialize, Serialize};

/// What waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// A transient timer of systemd.
    Timer {
        /// Its unit.
        unit: String,
    },
    /// A process.
    Process {
        /// Its number.
        pid: u32,
        /// When it began, in clock ticks since boot.
        started_ticks: u64,
    },
}

impl Waiting {
    pub(crate) fn title(&self) -> String {
        match self {
            Waiting::Timer { unit } => format!("timer {unit}"),
            Waiting::Process { pid, .. } => format!("process {pid} that takes settings back"),
        }
    }

    /// Ends it, unless it is this process.
    pub(crate) fn end(&self, host: &Host) -> Outcome {
        match self {
            Waiting::Process { pid, .. } if *pid == std::process::id() => Outcome::Done,
            Waiting::Process { pid, started_ticks } => end_process(host, *pid, *started_ticks),
            Waiting::Timer { unit } => {
                let stopped = own_group_command("systemctl").args(["stop", unit]).output();
                match stopped {
                    Ok(output) if output.status.success() => Outcome::Done,
                    // A transient unit is gone once it has done its work.
                    Ok(output) if output.status.code() == Some(5) => Outcome::AlreadyRight,
                    Ok(output) => {
                        Outcome::failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())
                    }
                    Err(error) => Outcome::failed(format!("cannot run systemctl: {error}")),
                }
            }
        }
    }
}
