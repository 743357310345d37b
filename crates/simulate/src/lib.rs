//! A workload's clients before a model of the block layer and of a device, in virtual time.
//!
//! What lives here: the virtual clock, the clients, the kernel between them and the block layer (page
//! cache, write-back, filesystems), models of database servers' I/O, and the counting of what was
//! done, under the names that measurements on a real kernel have. What does not: schedulers and queues
//! (`blocklayer`), devices (`device`), the choice of settings and profiles (`runner`), wall time,
//! threads, files. Data flows one way: a [`Spec`] and a device go in, a [`Simulated`] comes out.
//!
//! The same spec and device give the same result, to the last event: events happen in the order of
//! (time, sequence), all that is random comes from streams named per client, and nothing iterates
//! over anything unordered. [`Simulated::event_hash`] tells two runs apart that are not the same.

mod cache;
mod client;
mod counters;
mod database;
mod events;
mod log;
mod machine;
mod replay;
mod simulation;
mod spec;
mod stack;
mod stage;
mod tally;
mod transport;
mod volume;
mod warnings;

pub use database::{Database, DatabaseError, Insert};
pub use replay::ReplaySpec;
pub use simulation::{Progress, Simulated, run, run_striped};
pub use spec::{DEFAULT_TURNAROUND, MIN_PAGE_CACHE, SimulateError, Spec};
pub use stack::{
    DEFAULT_PAGE_CACHE, DEFAULT_READ_AHEAD, Interleaved, JOURNAL, Stack, refuse_filesystem,
};
pub use transport::{CHANCES, Chance, Transport, TransportDelay};
pub use volume::Striping;
