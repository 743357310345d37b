//! What cannot change while a run goes on, and differs between its sessions.

use crate::{Aspect, Difference, Environment, Fact};
use serde::{Deserialize, Serialize};
use workload::WordError;

/// What differs between the sessions of a run on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionFactor {
    /// The kernel: a session needs a boot of its own.
    Kernel,
    /// The database server.
    Server,
}

impl std::str::FromStr for SessionFactor {
    type Err = WordError;
    fn from_str(word: &str) -> Result<Self, WordError> {
        match word {
            "kernel" => Ok(SessionFactor::Kernel),
            "server" => Ok(SessionFactor::Server),
            other => Err(WordError::new(format!(
                "'{other}' cannot differ between sessions: kernel and server can"
            ))),
        }
    }
}

impl std::fmt::Display for SessionFactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            SessionFactor::Kernel => "kernel",
            SessionFactor::Server => "server",
        })
    }
}

impl SessionFactor {
    /// The level that an environment is of: the kernel's release, the server's name and version; `None`
    /// where it was not recorded.
    pub fn level(self, environment: &Environment) -> Option<String> {
        match self {
            SessionFactor::Kernel => Some(environment.kernel.clone()),
            SessionFactor::Server => {
                environment.fact(Aspect::Server, Fact::SERVER_VERSION).map(str::to_owned)
            }
        }
    }

    /// What makes another environment a place with whose trials none of this can be compared, the factor
    /// apart; `None` when nothing does.
    pub fn difference(self, here: &Environment, other: &Environment) -> Option<Difference> {
        match self {
            SessionFactor::Kernel => {
                here.difference(&Environment { kernel: here.kernel.clone(), ..other.clone() })
            }
            SessionFactor::Server => here.difference(other),
        }
    }

    /// What tells two levels of the same name apart: how the kernel was built, where the server's
    /// program is.
    pub fn build(self, environment: &Environment) -> Option<&str> {
        match self {
            SessionFactor::Kernel => environment.fact(Aspect::KernelBuild, Fact::KERNEL_BUILD),
            SessionFactor::Server => environment.fact(Aspect::Server, Fact::SERVER_PROGRAM),
        }
    }
}
