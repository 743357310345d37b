//! The parts of a validation.

use std::fmt;

/// A part of a validation: one run, or the simulated runs of one set of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The transport's length is measured.
    Transport {
        /// With this pattern.
        pattern: String,
        /// With blocks of this size.
        block_size: String,
        /// Of so many clients.
        clients: u32,
    },
    /// The least time between two requests on the transport is measured.
    Gap {
        /// With blocks of this size.
        block_size: String,
        /// Of so many clients.
        clients: u32,
        /// Each with so many operations outstanding.
        depth: u32,
    },
    /// Cells run on an emulated device.
    Emulated {
        /// The profile.
        profile: String,
        /// The set of cells.
        set: String,
    },
    /// A cell runs in the simulated world.
    Simulated {
        /// The profile.
        profile: String,
        /// The set of cells, and the cell.
        cell: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |clients: u32| if clients == 1 { "1 client" } else { "several clients" };
        match self {
            Step::Transport { pattern, block_size, clients } => {
                write!(f, "transport: {pattern}, {block_size}, {}", of(*clients))
            }
            Step::Gap { block_size, clients, depth } => write!(
                f,
                "transport's smallest gap: randread, {block_size}, {}, depth {depth}",
                of(*clients)
            ),
            Step::Emulated { profile, set } => write!(f, "emulated {profile}: {set}"),
            Step::Simulated { profile, cell } => write!(f, "simulated {profile}: {cell}"),
        }
    }
}
