//! The worlds.

mod emulated;
mod real;
mod simulated;

pub(crate) use emulated::{EmulatedTarget, EmulatedWorld};
pub(crate) use real::RealWorld;
pub(crate) use simulated::{SimulatedTarget, SimulatedWorld};
