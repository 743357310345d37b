//! The worlds, and which one a target names.

mod emulated;
mod real;
mod simulated;

use crate::{World, WorldError};
use plan::RawPlan;

/// The worlds that a target names by a prefix, as in `simulated:PROFILE`.
const NAMED: [&str; 2] = ["emulated", "simulated"];

/// `target` in a form that means the same from every folder.
pub fn lasting(target: &str) -> String {
    let named = target.split_once(':').is_some_and(|(world, _)| NAMED.contains(&world));
    match std::path::absolute(target) {
        Ok(path) if !named => path.to_string_lossy().into_owned(),
        _ => target.to_owned(),
    }
}

/// The world that `target` names. Nothing is changed by opening it.
pub fn open(target: &str, raw: &RawPlan) -> Result<Box<dyn World>, WorldError> {
    match target.split_once(':') {
        Some(("simulated", _)) => Ok(Box::new(simulated::SimulatedWorld::open(target, raw)?)),
        Some(("emulated", _)) => Ok(Box::new(emulated::EmulatedWorld::open(target, raw)?)),
        _ => Ok(Box::new(real::RealWorld::open(target, raw)?)),
    }
}

/// What a world could not undo in the end; `undone` is what should have been: put back, taken down.
fn left_behind(report: &host::UndoReport, undone: &str) -> WorldError {
    let left: Vec<String> = report
        .steps
        .iter()
        .filter(|step| !step.outcome.is_right())
        .map(|step| format!("{}: {}", step.what, step.outcome))
        .collect();
    WorldError::Fatal(format!(
        "not everything could be {undone}: {}; `spindle undo` tries again",
        left.join("; ")
    ))
}
