//! The worlds.

mod emulated;
mod real;
mod recorded;
mod simulated;

pub(crate) use emulated::{EmulatedTarget, EmulatedWorld};
pub(crate) use real::RealWorld;
pub use real::{ApplyError, ApplyObjection, Deviation, Intended, IntendedChange, IntendedDevice};
pub(crate) use simulated::{SimulatedTarget, SimulatedWorld};
