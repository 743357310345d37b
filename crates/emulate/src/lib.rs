//! The emulated world's devices: real block devices whose data are real and whose timing is that of a
//! model of `device`, in wall time.
//!
//! A server process holds data and model. With ublk, the kernel sends its requests to the server;
//! without, the server provides one file through FUSE, below a loop device with direct I/O. Over ublk and
//! over FUSE's io_uring, one thread takes requests, runs the model and answers (`queue`, with the
//! transports `ublk` and `fuse`); over plain FUSE, a thread of `filesystem` reads requests and one of
//! `pacer` answers them. What lives here: the server, its pacing, the transports, and the controller that
//! brings devices up and takes them down through `host`'s change journal. What does not: the models
//! (`device`), comparing (`runner`), text (`cli`). RequestCounts flow from the kernel through the pacer to the
//! model, completions back; counts flow to the controller.

mod clock;
mod data;
mod emulation;
mod error;
mod filesystem;
mod fuse;
mod lateness;
mod mailbox;
mod mover;
mod pacer;
mod protocol;
mod queue;
mod server;
mod server_error;
mod softirq;
mod transport;
mod ublk;

pub use data::Storage;
pub use emulation::{
    DataPlace, Emulation, Wanted, default_nr_requests, default_scheduler, size_of,
};
pub use error::{DataFileError, EmulateError, Lost};
pub use lateness::{DEFAULT_MEAN, DEFAULT_P99, LateStatistic, Lateness, RequestCounts, TooLate};
pub use protocol::ServerStats;
pub use server::{SERVER_VERB, preempted_share, processor_share, serve};
pub use server_error::{Resource, ServerError};
pub use transport::{Transport, UnknownTransport};
