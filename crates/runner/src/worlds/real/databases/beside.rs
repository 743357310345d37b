//! The job beside a database: block load on a file of its own, beside the server's data.

use super::{Stage, beside_file};
use load::Target;
use workload::Workload;

/// The job, as a workload of its own, and its file.
pub struct Beside {
    pub workload: Workload,
    pub target: Target,
}

impl Beside {
    /// Of a database workload that has such a job.
    pub fn of(workload: &Workload, stage: Option<&Stage>) -> Option<Beside> {
        let target = beside_file(&stage?.folder, workload.beside_size()?);
        let job = workload.background.clone()?;
        Some(Beside { workload: Workload { job, ..Workload::default() }, target })
    }
}
