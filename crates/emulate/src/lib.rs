//! The emulated world's devices: real block devices whose data are real and whose timing is that of a
//! model of `device`, in wall time.
//!
//! A server process holds data and model. Where the kernel has ublk, it hands its requests to the
//! server itself; elsewhere the server shows one file through FUSE, on which a loop device with direct
//! I/O stands. Over ublk, and over FUSE's io_uring, one thread takes requests, runs the model and
//! answers (`queue`, whose ports are `ublk` and `fuse`); over plain FUSE a thread of `filesystem` reads
//! and one of `pacer` answers. What lives here: the server, its pacing, the transports, and the
//! controller that brings devices up and takes them down through `host`'s change journal. What does
//! not: the models (`device`), comparing (`runner`), words (`cli`). Data flows from the kernel's
//! requests through the pacer to the model and back; counts flow to the controller.

mod clock;
mod data;
mod emulation;
mod filesystem;
mod fuse;
mod lateness;
mod mover;
mod pacer;
mod protocol;
mod queue;
mod server;
mod softirq;
mod transport;
mod ublk;

pub use data::Place;
pub use emulation::{
    DataPlace, EmulateError, Emulation, Wanted, default_nr_requests, default_scheduler, size_of,
};
pub use lateness::{DEFAULT_MEAN, DEFAULT_P99, LateStatistic, Lateness, Requests, TooLate};
pub use protocol::Sight;
pub use server::{SERVER_WORD, processor_share, serve, spun_taken_share};
pub use transport::Transport;
