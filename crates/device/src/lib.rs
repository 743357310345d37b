//! Models of storage devices as pure state machines: a disk, and what else stores data.
//!
//! What lives here: the models, their descriptions, and readers for descriptions. What does not:
//! clocks, threads, files, I/O. Data flows one way: description → model; then requests and the
//! caller's time go in, completions with the model's own times come out.

pub mod array;
mod demerit;
mod dirty;
pub mod disk;
pub mod disksim;
mod drive_files;
mod drive_format;
pub mod flash;
pub mod profile;
mod replay;
mod request;
mod spec_error;

pub use array::Array;
pub use demerit::demerit_ms;
pub use disk::Disk;
pub use drive_files::{DriveFileError, DriveFiles, Imported};
pub use drive_format::{DriveFormat, DriveFormatSpec};
pub use flash::Flash;
pub use profile::{Profile, ProfileError};
pub use replay::{Replay, replay};
pub use request::{Completion, Device, Op, Path, Request, View};
pub use spec_error::SpecError;
