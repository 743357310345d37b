//! The job beside a database: block load on a file of its own, beside the server's data.

use super::Stage;
use crate::WorldError;
use load::{LayOut, LoadError, Target, lay_out};
use plan::{Cell, Plan};
use std::sync::atomic::AtomicBool;
use units::Bytes;
use workload::Workload;

/// The job, as a workload of its own, and its file.
pub struct Beside {
    pub workload: Workload,
    pub target: Target,
}

impl Beside {
    /// Of a database workload that has such a job.
    pub fn of(workload: &Workload, stage: Option<&Stage>) -> Option<Beside> {
        let size = size(workload)?;
        let job = workload.background.clone()?;
        let target = Target::new(stage?.folder.join("beside"), size);
        Some(Beside { workload: Workload { job, ..Workload::default() }, target })
    }
}

/// The size of its file, where a workload has one.
fn size(workload: &Workload) -> Option<Bytes> {
    workload.background.as_ref()?;
    Some(workload.database.as_ref()?.beside_size())
}

/// The size of the file that a plan's trials need for it, if any does.
pub fn beside(plan: &Plan) -> Option<Bytes> {
    let of = |cell| size(&plan.workload_of(cell).ok()?.0);
    plan.cells.iter().filter_map(of).max()
}

/// Lays the file out before the first trial that reads or writes it; later ones use it again.
pub fn lay_out_beside(plan: &Plan, cell: &Cell, stage: &Stage) -> Result<(), WorldError> {
    let (workload, _) = plan.workload_of(cell).map_err(WorldError::trial)?;
    let Some(beside) = Beside::of(&workload, Some(stage)) else { return Ok(()) };
    let what = LayOut { target: &beside.target, seed: plan.seed, reuse: true };
    match lay_out(&what, &mut |_| {}, &AtomicBool::new(false)) {
        Ok(_) => Ok(()),
        Err(LoadError::Stopped) => Err(WorldError::Interrupted),
        Err(error) => Err(WorldError::fatal(error)),
    }
}
