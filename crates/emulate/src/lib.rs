//! The emulated world's devices: real block devices whose data are real and whose timing is that of a
//! model of `device`, in wall time.
//!
//! A server process holds data and model and serves one file through FUSE; a loop device with direct
//! I/O stands on that file. What lives here: the server, its pacing, and the controller that brings
//! devices up and takes them down through `host`'s change journal. What does not: the models
//! (`device`), comparing (`runner`), words (`cli`). Data flows from the kernel's requests through the
//! pacer to the model and back; counts flow to the controller.

mod clock;
mod data;
mod emulation;
mod filesystem;
mod lateness;
mod pacer;
mod protocol;
mod server;

pub use data::Place;
pub use emulation::{
    DataPlace, EmulateError, Emulation, LOOP_TAGS, Wanted, check_host, rotates, size_of,
    usual_scheduler,
};
pub use lateness::{Lateness, MEAN_USUAL, P99_USUAL, Requests};
pub use protocol::Sight;
pub use server::{SERVER_WORD, processor_share, serve};
