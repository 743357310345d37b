//! The job beside a database: block load on a file of its own, beside the server's data.

use super::Stage;
use load::Target;
use workload::Workload;

/// The job, as a workload of its own, and its file.
pub struct Beside {
    pub workload: Workload,
    pub target: Target,
}

impl Beside {
    /// Of a database workload that has such a job.
    pub fn of(workload: &Workload, stage: Option<&Stage>) -> std::io::Result<Option<Beside>> {
        let file = stage.and_then(|stage| stage.beside.as_ref());
        let (Some(file), Some(size)) = (file, workload.beside_size()) else { return Ok(None) };
        let Some(job) = workload.background.clone() else { return Ok(None) };
        let target = Target { size, ..file.try_clone()? };
        Ok(Some(Beside { workload: Workload { job, ..Workload::default() }, target }))
    }
}
