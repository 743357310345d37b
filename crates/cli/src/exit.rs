//! Exit codes: 0 done, 1 failed, 2 usage, 3 done but a threshold was missed, 130 interrupted.

use runner::{RunError, WorldError};
use std::{fmt, process::ExitCode};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Failed.
    Failed,
    /// Usage error: the flags or the plan do not fit.
    Usage,
    /// Done, but a threshold that the user set was missed.
    Missed,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// All, by number.
    pub const ALL: [Exit; 5] =
        [Exit::Done, Exit::Failed, Exit::Usage, Exit::Missed, Exit::Interrupted];

    /// The number that the shell sees.
    pub fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Missed => 3,
            Exit::Interrupted => 130,
        }
    }

    /// What it means, as docs/reference/exit-codes.md prints it.
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "The command did what it was asked to do.",
            Exit::Failed => {
                "The command failed: the environment did not allow it, or something broke. The \
                 message on stderr says what, where, and what to do."
            }
            Exit::Usage => {
                "Usage error: a flag, a plan file or a target is not valid here. Nothing was changed."
            }
            Exit::Missed => {
                "The command finished, and found something amiss that you asked about: with `--settled`, at \
                 least one verdict is still open; with `recommend --slo`, a limit is not shown to be kept; \
                 `status` and `apply --persist`: what was applied is no longer in force."
            }
            Exit::Interrupted => {
                "Interrupted by Ctrl-C or a signal. Settings are restored, and `spindle resume last` \
                 continues the run. Also where Ctrl-C was pressed again, a second or more after the first: \
                 then `spindle undo` restores what is left."
            }
        }
    }

    /// As the process's exit code.
    pub fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

/// A usage error: exit code 2.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The exit code of an error.
pub fn of_error(error: &anyhow::Error) -> Exit {
    let world = error.chain().find_map(|cause| {
        cause.downcast_ref::<WorldError>().or_else(|| match cause.downcast_ref::<RunError>() {
            Some(RunError::World(world)) => Some(world),
            _ => None,
        })
    });
    match world {
        Some(WorldError::Usage(_)) => Exit::Usage,
        Some(WorldError::Interrupted) => Exit::Interrupted,
        _ if error.chain().any(|cause| cause.is::<Usage>()) => Exit::Usage,
        _ => Exit::Failed,
    }
}
