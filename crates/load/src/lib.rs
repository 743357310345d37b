//! Block and file load on the real kernel, measured.
//!
//! What lives here: laying out a scratch file ([`lay_out`]), running a [`workload::Workload`] against a
//! [`Target`] ([`run`]), the engines that move the bytes, and the driver that stamps every time. What
//! does not: what to run and how often, the host's counters and settings, estimates and verdicts.
//!
//! Data flows: [`LoadSpec`] → clients (threads or processes), each with an engine and a page of
//! counts in memory that all share → [`record::Measurement`]. Sending and timing are apart: an engine
//! knows no clock, rate or statistics, so that a new engine cannot measure differently.

mod bank;
mod board;
mod buffer;
mod client;
mod client_main;
mod client_program;
mod clock;
mod commit;
mod cost;
mod direct_reads;
mod engines;
mod error;
mod fio;
mod forget;
mod handles;
mod lay_out;
mod priority;
mod process;
mod replay;
mod result;
mod run;
mod source;
mod spec;
mod sync_within;
mod target;
mod watch;

pub use client_program::{CLIENT_VERB, ClientProgram};
pub use commit::{CommitSpec, Commits, Place, commits, settle};
pub use direct_reads::{DirectRead, DirectReads};
pub use error::{FioProblem, LoadError, Stage};
pub use fio::fio_takes;
pub use forget::{CachedPart, forget_cached};
pub use lay_out::{LaidOut, LayOut, lay_out};
pub use process::serve_client;
pub use replay::ReplayLoad;
pub use run::run;
pub use spec::LoadSpec;
pub use target::{DirectAlignment, Target, direct_alignment, takes_dont_cache};
