//! What can go wrong in a world, by what it means for the run.

use record::VoidReason;
use std::error::Error;

/// What went wrong: the error of the part of the program that saw it.
pub type Cause = Box<dyn Error + Send + Sync>;

/// What can go wrong in a world. The variant says what it means for the run.
#[derive(Debug, thiserror::Error)]
pub enum WorldError {
    /// What the user asked for does not fit the target; nothing was changed. The run does not begin.
    #[error(transparent)]
    Usage(Cause),
    /// One trial could not be measured; others may be.
    #[error(transparent)]
    Trial(Cause),
    /// One trial was measured and must not count.
    #[error("the trial does not count")]
    Void(VoidReason),
    /// Nothing more can be measured: the run ends.
    #[error(transparent)]
    Fatal(Cause),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The run ended with one error, and putting things back with another.
    #[error("{ended}; and not everything could be put back: {left}")]
    NotRestored {
        /// What ended the run.
        #[source]
        ended: Box<WorldError>,
        /// What could not be put back.
        left: Box<WorldError>,
    },
    /// The device hangs, and every step of putting things back would wait for it.
    #[error(
        "nothing was put back, because each step would wait for the device: once it answers again, or \
         after a restart, run `spindle undo`"
    )]
    NothingPutBack,
    /// Settings, devices or files are left changed.
    #[error("{}; `spindle undo` tries again", steps.join("; "))]
    LeftBehind {
        /// Each step of the undo that failed, and why.
        steps: Vec<String>,
    },
}

/// An error with what caused it, as far as its message does not have that already: messages of other
/// libraries sometimes do.
pub fn with_sources(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = cause.source();
    }
    text
}

impl WorldError {
    /// Of what the user asked for.
    pub fn usage(cause: impl Into<Cause>) -> Self {
        WorldError::Usage(cause.into())
    }

    /// Of one trial.
    pub fn trial(cause: impl Into<Cause>) -> Self {
        WorldError::Trial(cause.into())
    }

    /// Of the whole run.
    pub fn fatal(cause: impl Into<Cause>) -> Self {
        WorldError::Fatal(cause.into())
    }

    /// What an undo could not put back.
    pub(crate) fn left_behind(report: &host::UndoReport) -> Self {
        let failed = report.steps.iter().filter(|step| !step.outcome.is_right());
        WorldError::LeftBehind {
            steps: failed.map(|step| format!("{}: {}", step.what, step.outcome)).collect(),
        }
    }
}
