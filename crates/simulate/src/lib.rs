//! A workload's clients before a model of the block layer and of a device, in virtual time.
//!
//! What lives here: the virtual clock, the clients, and the counting of what they did, under the
//! names that measurements on a real kernel have. What does not: schedulers and queues
//! (`blocklayer`), devices (`device`), the choice of settings and profiles (`runner`), wall time,
//! threads, files. Data flows one way: a [`Spec`] and a device go in, a [`Simulated`] comes out.
//!
//! The same spec and device give the same result, to the last event: events happen in the order of
//! (time, sequence), all that is random comes from streams named per client, and nothing iterates
//! over anything unordered. [`Simulated::event_hash`] tells two runs apart that are not the same.

mod arrivals;
mod client;
mod counters;
mod events;
mod log;
mod offsets;
mod simulation;
mod spec;
mod tally;
mod warnings;

pub use simulation::{Progress, Simulated, run};
pub use spec::{SimulateError, Spec, TURNAROUND_USUAL, refuse_job};
