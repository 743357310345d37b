//! What can go wrong in a validation.

use crate::Step;
use record::{Outcome, VoidReason};
use runner::{BaselineFailed, Cause, RunError, WorldError};
use std::path::PathBuf;

/// What can go wrong in a validation.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// A target, or what a plan asks of it.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A run file.
    #[error(transparent)]
    Store(#[from] record::StoreError),
    /// A profile.
    #[error(transparent)]
    Profile(#[from] device::profile::ProfileError),
    /// A plan.
    #[error(transparent)]
    Plan(#[from] workload::WordError),
    /// The device on which the transport is measured.
    #[error(transparent)]
    Device(#[from] emulate::EmulateError),
    /// The change journal.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// Again and again the host was too busy.
    #[error(
        "{step}: in {tries} attempts the host was too busy to keep the model's time; try again when \
         it is quieter"
    )]
    TooBusy {
        /// What was measured.
        step: Step,
        /// How often.
        tries: u32,
    },
    /// A run gave no trial for a cell that its plan has.
    #[error("{step}: no trial of the cell counts: {why}")]
    NoTrial {
        /// What was measured.
        step: Step,
        /// Why the last one does not count.
        why: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why; no source, because the message has it.
        cause: Cause,
    },
    /// What would be written is there.
    #[error("{} exists already: name a folder without it", path.display())]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// The user interrupted; everything has been taken down.
    #[error("interrupted")]
    Interrupted,
}

impl ValidateError {
    /// Of a file or folder.
    pub(crate) fn write(path: impl Into<PathBuf>, cause: impl Into<Cause>) -> ValidateError {
        ValidateError::Write { path: path.into(), cause: cause.into() }
    }

    /// Whether the run ended because the host did not keep the model's time, which may be different a
    /// while later.
    pub(crate) fn is_of_a_busy_host(&self) -> bool {
        let ValidateError::Run(RunError::World(WorldError::Fatal(cause))) = self else {
            return false;
        };
        matches!(
            cause.downcast_ref::<BaselineFailed>(),
            Some(BaselineFailed {
                last: Outcome::Void { reason: VoidReason::CompletionsLate(_) },
                ..
            })
        )
    }
}
