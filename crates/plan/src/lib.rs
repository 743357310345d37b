//! What is compared: factors and their levels, the cells they span, the workload, the order of
//! trials, the time it all takes, and the TOML that says so.
//!
//! What lives here is pure: no clock, no file, no host. What a host can and cannot set is asked of a
//! world by `runner`. Data flows: words → [`RawPlan`] → [`RawPlan::resolve`] → [`Plan`] → order of
//! trials.

mod cell;
mod classic;
mod factor;
mod filesystem;
mod intention;
mod loss;
mod matrix;
mod mechanism;
mod offer;
mod order;
mod preset;
mod published;
mod raw;
mod refusal;
mod resolve;
mod screening;
mod timing;

pub use cell::Cell;
pub use classic::Classic;
pub use factor::{Factor, Level, Role};
pub use filesystem::{Filesystem, FilesystemKind};
pub use intention::{EmulatedTransport, Intention};
pub use loss::{Loss, LossKind, Window, losses};
pub use matrix::Matrix;
pub use mechanism::{Mechanism, Without};
pub use offer::{LoadingPace, Offer};
pub use order::Slot;
pub use preset::{LeftOut, PresetFacts, PresetUse};
pub use published::{OPERATIONS, Published};
pub use raw::{RawJob, RawLevel, RawPlan, RawPublished};
pub use refusal::{Refusal, SizeLimit};
pub use resolve::{DroppedFactor, Plan, RefusedCell};
pub use screening::Setting;
pub use timing::{
    BudgetClock, MIN_ROUNDS, TRIAL_OVERHEAD, Timing, TimingError, TimingWish, TrialLength,
};
