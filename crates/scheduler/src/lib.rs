//! Linux's I/O schedulers: which kernels have them, and what can be set on them.
//!
//! What lives here: facts, in one table for each scheduler (`kinds/`). Who makes a scheduler run is
//! `blocklayer`, who sets one on a real device is `host`. A kernel may offer schedulers that no table
//! here knows (out-of-tree or BPF ones): those are named by strings, and [`SchedulerKind`] does not
//! stand in their way. Pure.

mod kinds;
mod near;
mod tunable;
mod version;

pub use near::nearest;
pub use tunable::{Tunable, Unit};
pub use version::{KernelVersion, NotAVersion, Versions};

use std::{fmt, str::FromStr};
use strum::VariantArray;

/// An I/O scheduler that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, VariantArray)]
pub enum SchedulerKind {
    /// First in, first out; single-queue.
    Noop,
    /// Sector order with deadlines; single-queue.
    Deadline,
    /// Deadline that waits for the next read of the same process; single-queue.
    Anticipatory,
    /// Time slices for processes; single-queue.
    Cfq,
    /// No scheduler; multi-queue.
    None,
    /// Deadline; multi-queue.
    MqDeadline,
    /// Token buckets held to target latencies; multi-queue.
    Kyber,
    /// Budgets for processes; multi-queue.
    Bfq,
}

/// The two block layers that Linux has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// One request queue a device, until Linux 4.20.
    SingleQueue,
    /// blk-mq, since Linux 3.13; with schedulers since 4.11.
    MultiQueue,
}

/// What is known of a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The kernel's name for it (in `queue/scheduler`).
    pub name: &'static str,
    /// What it does, in one sentence.
    pub description: &'static str,
    /// The block layer it belongs to.
    pub generation: Generation,
    /// The kernels that have it.
    pub versions: Versions,
    /// What can be set on it; see [`SchedulerKind::tunables`] for those of one kernel.
    pub tunables: &'static [Tunable],
    /// The kernel module that contains it, where it can be one.
    pub module: Option<&'static str>,
    /// What to use in its place on kernels that do not have it any more.
    pub successor: Option<SchedulerKind>,
    /// Its page below docs/reference/schedulers, without the suffix.
    pub page: &'static str,
}

impl SchedulerKind {
    /// All of them, those of the single-queue block layer first.
    pub const ALL: &'static [SchedulerKind] = SchedulerKind::VARIANTS;

    /// What is known of it.
    pub const fn spec(self) -> &'static Spec {
        match self {
            SchedulerKind::Noop => &kinds::noop::SPEC,
            SchedulerKind::Deadline => &kinds::deadline::SPEC,
            SchedulerKind::Anticipatory => &kinds::anticipatory::SPEC,
            SchedulerKind::Cfq => &kinds::cfq::SPEC,
            SchedulerKind::None => &kinds::none::SPEC,
            SchedulerKind::MqDeadline => &kinds::mq_deadline::SPEC,
            SchedulerKind::Kyber => &kinds::kyber::SPEC,
            SchedulerKind::Bfq => &kinds::bfq::SPEC,
        }
    }

    /// The kernel's name for it.
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Whether it holds the device for a process that has nothing queued while others wait.
    pub const fn idles(self) -> bool {
        match self {
            SchedulerKind::Anticipatory | SchedulerKind::Cfq | SchedulerKind::Bfq => true,
            SchedulerKind::Noop
            | SchedulerKind::Deadline
            | SchedulerKind::None
            | SchedulerKind::MqDeadline
            | SchedulerKind::Kyber => false,
        }
    }

    /// Whether a kernel has it, on devices that go through this block layer.
    pub fn is_in(self, generation: Generation, version: KernelVersion) -> bool {
        self.spec().generation == generation && self.spec().versions.contain(version)
    }

    /// What can be set on it at a kernel, in the order of its table.
    pub fn tunables(self, version: KernelVersion) -> impl Iterator<Item = &'static Tunable> {
        self.spec().tunables.iter().filter(move |tunable| tunable.versions.contain(version))
    }
}

impl fmt::Display for SchedulerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No table knows a scheduler of this name. A real kernel may still have it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown scheduler '{name}'{}", match .nearest {
    Some(nearest) => format!(", did you mean '{nearest}'?"),
    None => String::new(),
})]
pub struct UnknownScheduler {
    /// The name.
    pub name: String,
    /// A known scheduler with a similar name.
    pub nearest: Option<SchedulerKind>,
}

impl FromStr for SchedulerKind {
    type Err = UnknownScheduler;
    fn from_str(name: &str) -> Result<Self, UnknownScheduler> {
        let all = SchedulerKind::ALL.iter().copied();
        all.clone().find(|kind| kind.name() == name).ok_or_else(|| {
            let nearest = nearest(name, all.clone().map(SchedulerKind::name));
            UnknownScheduler {
                name: name.to_owned(),
                nearest: nearest.and_then(|near| all.clone().find(|kind| kind.name() == near)),
            }
        })
    }
}

#[cfg(test)]
mod tests;
