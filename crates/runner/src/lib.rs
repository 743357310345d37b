//! The loop over trials: rounds in random order, each trial applied, verified, measured, verified
//! again and recorded, until all is done, settled or interrupted. And the measuring of a sync card.
//!
//! What lives here: the loop, the traits [`World`] and [`Session`] that it drives, and the worlds. What
//! does not: how a setting is written (`host`), how load is made (`load`), what figures mean
//! (`analysis`), what is printed (a [`Watcher`] of the caller's). Data flows: [`Target`] → [`World`] →
//! plan → [`Session`] → trials → run file.

mod error;
mod options;
mod pilot;
mod rounds;
mod run_error;
mod sync_card;
mod target;
mod wall_clock;
mod world;
mod worlds;

pub use error::{Cause, WorldError, with_sources};
pub use options::Options;
pub use rounds::{Ending, run_rounds};
pub use run_error::{BaselineFailed, RunError};
pub use sync_card::{
    DEFAULT_SYNC_TIME, MAX_SYNC_TIME, MIN_SYNC_TIME, SyncRefusal, SyncStep, sync_card,
};
pub use target::Target;
pub use world::{Measured, Session, TrialTimes, Watcher, World};
pub use worlds::{ApplyError, ApplyObjection, Deviation, Intended, IntendedChange, IntendedDevice};
