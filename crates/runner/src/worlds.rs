//! The worlds, and which one a target names.

mod real;
mod simulated;

use crate::{World, WorldError};
use plan::RawPlan;

/// The world that `target` names. Nothing is changed by opening it.
pub fn open(target: &str, raw: &RawPlan) -> Result<Box<dyn World>, WorldError> {
    match target.split_once(':') {
        Some(("simulated", _)) => Ok(Box::new(simulated::SimulatedWorld::open(target, raw)?)),
        Some((world @ "emulated", _)) => Err(WorldError::Usage(format!(
            "this version has no {world} world yet: name a directory, a file or a block device"
        ))),
        _ => Ok(Box::new(real::RealWorld::open(target, raw)?)),
    }
}
