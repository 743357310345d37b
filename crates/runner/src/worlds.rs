//! The worlds.

mod emulated;
mod real;
mod recorded;
mod simulated;

pub(crate) use emulated::{EmulatedTarget, EmulatedWorld};
pub use real::{ApplyError, ApplyObjection, Deviation, Intended, IntendedChange, IntendedDevice};
pub(crate) use real::{RealWorld, new_file};
pub(crate) use simulated::{SimulatedTarget, SimulatedWorld};
