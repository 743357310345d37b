//! The loop over trials: rounds in random order, each trial applied, verified, measured, verified
//! again and recorded, until all is done, settled or interrupted.
//!
//! What lives here: the loop, the trait [`World`] that it drives, and the worlds. What does not: how
//! a setting is written (`host`), how load is made (`load`), what figures mean (`analysis`), what is
//! printed (a [`Watcher`] of the caller's). Data flows: plan → trials → run file.

mod run;
mod world;
mod worlds;

pub use run::{Ending, RunError, go_on};
pub use world::{Goon, Live, Measured, Phase, Wanted, Watcher, World, WorldError};
pub use worlds::{lasting, open};
