//! Models of Linux's two block layers and their I/O schedulers, before one device.
//!
//! What lives here: bios in, requests built from them by plugging and merging, the pool or the tags
//! that limit them, the schedulers that choose among them, and the driver's depth. What does not:
//! clocks, threads, files, page cache, filesystems, striping over several devices (those are
//! several [`BlockLayer`]s). Data flows one way: bios and the caller's time go in, requests go down
//! to a [`device::Device`], completed bios come out.
//!
//! The usual loop: move the clock to the earlier of [`BlockLayer::next_event`] and the next
//! arrival; [`BlockLayer::advance`] to it; [`BlockLayer::submit`] what arrives or was set free, and
//! [`BlockLayer::unplug`] when a task has handed over what it has and goes to sleep. Times never go
//! back, and `advance(now)` comes before `submit(.., now)`.
//!
//! The policies follow Documentation/block and published descriptions; each scheduler's page in
//! docs/reference/schedulers says what it does here, and where the documentation was silent.

mod admission;
mod bio;
mod config;
mod counters;
mod flush;
mod kernel;
mod layer;
mod merge;
mod merging;
mod order;
mod plug;
mod requests;
mod scheduler;
mod schedulers;
mod tags;
mod tunable;

pub use bio::{AdvanceOutput, Bio, BioDone, Context, IoClass, Submitted};
pub use config::{Config, ConfigError, Resolved, Tunables, nr_requests_range};
pub use counters::{Counters, LayerView};
pub use kernel::{Kernel, UnknownKernel};
pub use layer::BlockLayer;
pub use tunable::tunables;
