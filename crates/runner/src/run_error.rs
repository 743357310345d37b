//! What ends a run before its time.

use crate::WorldError;
use record::{Outcome, StoreError};

/// What ended a run that should have gone on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The world.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The run file.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// No trial of the baseline counts, so that nothing can be compared with it.
#[derive(Debug, thiserror::Error)]
#[error("the baseline failed in {rounds} rounds, so nothing can be compared with it")]
pub struct BaselineFailed {
    /// Rounds in which it was tried.
    pub rounds: u32,
    /// Why its last trial does not count: `report` has the words.
    pub last: Outcome,
}

impl RunError {
    /// Whether the user did not want to wait until others had read the file: what could not be written is made
    /// again by a resume.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(self, RunError::Store(StoreError::Held { .. }))
    }

    /// That the baseline never worked, if this is what ended the run.
    pub fn baseline_failed(&self) -> Option<&BaselineFailed> {
        match self {
            RunError::World(WorldError::Fatal(cause)) => cause.downcast_ref(),
            RunError::World(_) | RunError::Store(_) => None,
        }
    }
}
