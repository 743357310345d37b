//! What the clients of a storage device or a database do: the job, the pattern of its operations, the
//! rate that is offered, and the clock of a trial.
//!
//! What lives here is pure and the same in every world: no clock is read, no file opened. What is
//! compared with what is `plan`'s; how operations are carried out is `load`'s, `database`'s and
//! `simulate`'s.
//!
//! Data flows: words (`randread,block_size=16KiB`) → [`Job`], [`DatabaseJob`] or [`Replay`] →
//! [`Workload`] → a client's [`Offsets`] and [`Schedule`], stamped on a [`TrialClock`].

mod clock;
mod database;
mod distribution;
mod engine;
mod job;
mod offsets;
mod pattern;
mod preset;
mod preset_limit;
mod priority;
mod progress;
mod rate;
mod replay;
mod schedule;
mod server;
mod sync;
mod variable_set;
mod word;
mod workload;

pub use clock::TrialClock;
pub use database::{DatabaseFamily, DatabaseJob, DatabaseKind, Statements};
pub use distribution::Distribution;
pub use engine::EngineKind;
pub use job::{ClientKind, HAND_OVER_AFTER, Job};
pub use offsets::Offsets;
pub use pattern::{Order, Pattern};
pub use preset::Preset;
pub use preset_limit::{AtomicLimit, Presence, PresetLimit};
pub use priority::{IoClass, IoPriority};
pub use progress::{Live, Phase};
pub use rate::{Arrivals, BURST, BURST_PERIOD, Rate};
pub use replay::{Replay, ReplayMode};
pub use schedule::Schedule;
pub use server::{Dialect, PrivateServer, Server, ServerSpec, StorageEngine};
pub use sync::{AfterWrite, OpenSync, SyncMode};
pub use variable_set::{VariableSet, is_variable_name};
pub use word::WordError;
pub use workload::Workload;
