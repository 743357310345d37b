//! What can be set on a scheduler.

use crate::Versions;
use std::fmt;

/// A setting of a scheduler, a file in `queue/iosched`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// The kernel's name for it.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// The kernel's default.
    pub default: u64,
    /// The smallest value that makes sense.
    pub min: u64,
    /// The largest. Where the kernel takes any non-negative number, this bound is ours.
    pub max: u64,
    /// What it does, in one sentence.
    pub description: &'static str,
    /// The kernels that have it, with this default.
    pub versions: Versions,
    /// The simulated block layers have it. What they lack is another unit's view of one they have.
    pub modelled: bool,
}

/// The unit of a tunable's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number.
    Count,
    /// 0 is off, 1 is on.
    Flag,
    /// ms.
    Milliseconds,
    /// µs.
    Microseconds,
    /// ns.
    Nanoseconds,
    /// KiB.
    Kibibytes,
    /// 512 bytes.
    Sectors,
}

impl fmt::Display for Unit {
    /// Nothing for plain numbers and flags.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Unit::Count | Unit::Flag => "",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "µs",
            Unit::Nanoseconds => "ns",
            Unit::Kibibytes => "KiB",
            Unit::Sectors => "sectors",
        })
    }
}

impl Tunable {
    const fn new(
        name: &'static str,
        unit: Unit,
        default: u64,
        (min, max): (u64, u64),
        description: &'static str,
    ) -> Self {
        let versions = Versions::ALL;
        Tunable { name, unit, default, min, max, description, versions, modelled: true }
    }

    pub(crate) const fn ms(name: &'static str, default: u64, description: &'static str) -> Self {
        Tunable::new(name, Unit::Milliseconds, default, (0, 600_000), description)
    }

    pub(crate) const fn of(
        name: &'static str,
        unit: Unit,
        default: u64,
        range: (u64, u64),
        description: &'static str,
    ) -> Self {
        Tunable::new(name, unit, default, range, description)
    }

    pub(crate) const fn count(
        name: &'static str,
        default: u64,
        range: (u64, u64),
        description: &'static str,
    ) -> Self {
        Tunable::new(name, Unit::Count, default, range, description)
    }

    pub(crate) const fn flag(name: &'static str, default: u64, description: &'static str) -> Self {
        Tunable::new(name, Unit::Flag, default, (0, 1), description)
    }

    /// The same, of these kernels alone.
    pub(crate) const fn in_versions(self, versions: Versions) -> Self {
        Tunable { versions, ..self }
    }

    /// The same, without a model.
    pub(crate) const fn not_modelled(self) -> Self {
        Tunable { modelled: false, ..self }
    }
}
