//! What a world says of a target before anything is planned.

use crate::{Factor, Level, Refusal, SizeLimit};
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, Nanos};

/// What a world says of a target before anything is planned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// Levels of host settings as they are now.
    pub current: BTreeMap<Factor, Level>,
    /// What the word `all` stands for.
    pub all: BTreeMap<Factor, Vec<Level>>,
    /// Factors that cannot be set here, and why. `Tunable` factors follow `Scheduler`.
    pub missing: BTreeMap<Factor, Refusal>,
    /// The largest size the scratch span may have, and what limits it.
    pub size_limit: Option<(Bytes, SizeLimit)>,
    /// The scratch span's size when nothing is said.
    pub default_size: Bytes,
    /// Whether the scratch file gets a loop device of its own: asked for, or needed by a factor.
    pub own_loop: bool,
    /// Bytes a second at which a scratch file is laid out, for the time estimate.
    pub layout_bytes_per_second: u64,
    /// The same for databases' data.
    pub databases: LoadingPace,
    /// Factors of which one level exists at a time: files are laid out anew at each change.
    pub slow: BTreeSet<Factor>,
    /// Whether trials take virtual time: how long they take of the host's is not known.
    pub virtual_time: bool,
    /// Whether the servers of databases are run, so that cells can be switched inside one.
    pub runs_servers: bool,
    /// The largest write that the device does atomically where databases' data will be, when it is
    /// asked for.
    pub atomic_write: Option<Bytes>,
}

/// How long databases take beside what is measured; nothing where none is loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadingPace {
    /// Bytes a second at which data are loaded.
    pub load_bytes_per_second: u64,
    /// Bytes a second at which they are copied for a trial.
    pub copy_bytes_per_second: u64,
    /// Making a server, or starting and ending one.
    pub server: Nanos,
}
