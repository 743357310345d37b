//! One trial's load, and why it is not possible.

use crate::buffer::Buffers;
use crate::client_program::ClientProgram;
use crate::error::LoadError;
use crate::replay::ReplayLoad;
use crate::target::Target;
use record::JobRole;
use std::sync::Arc;
use units::{Bytes, Nanos};
use workload::{ClientKind, EngineKind, Job, Workload};

/// One trial's load.
#[derive(Clone, Copy, Debug)]
pub struct LoadSpec<'a> {
    /// The job to measure, and the one beside it.
    pub workload: &'a Workload,
    /// A trace in place of the job to measure.
    pub replay: Option<&'a Arc<ReplayLoad>>,
    /// What it goes to.
    pub target: &'a Target,
    /// What moves the bytes.
    pub engine: EngineKind,
    /// Time before measuring, in which the load already runs.
    pub warmup: Nanos,
    /// Time that is measured.
    pub measure: Nanos,
    /// How often what was done is noted: a second, but for a pilot.
    pub tick: Nanos,
    /// Decides every random choice: the same seed gives each client the same offsets.
    pub seed: u64,
    /// What is started for clients that are processes.
    pub client_program: &'a ClientProgram,
}

/// Of the memory available, the share that buffers may take.
const MEMORY_SHARE: f64 = 0.5;

impl LoadSpec<'_> {
    /// The jobs with their roles, the measured first.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (JobRole, &Job)> {
        let measured = self.replay.map_or(&self.workload.job, |replay| replay.job());
        [
            (JobRole::Measured, Some(measured)),
            (JobRole::Background, self.workload.background.as_ref()),
        ]
        .into_iter()
        .filter_map(|(role, job)| job.map(|job| (role, job)))
    }

    /// Why this cannot be run, found before anything begins.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        if self.measure == Nanos::ZERO {
            return Err(LoadError::Refused("the measured time is zero".to_owned()));
        }
        for (_, job) in self.jobs() {
            self.check_job(job)?;
        }
        if let Some(replay) = self.replay {
            self.check_replay(replay)?;
        }
        self.check_memory()
    }

    fn check_job(&self, job: &Job) -> Result<(), LoadError> {
        job.check().map_err(|error| LoadError::Refused(error.to_string()))?;
        if self.engine == EngineKind::Sync && job.depth > 1 {
            return Err(LoadError::Refused(format!(
                "the engine sync has one operation outstanding a client, and depth {} was asked: \
                 use {} clients, or the engine io_uring",
                job.depth, job.depth
            )));
        }
        if self.target.size < job.block_size {
            return Err(LoadError::Refused(format!(
                "a target of {} has no room for one block of {}",
                self.target.size, job.block_size
            )));
        }
        match self.engine {
            EngineKind::Null => Ok(()),
            _ => self.target.check(job),
        }
    }

    fn check_replay(&self, replay: &ReplayLoad) -> Result<(), LoadError> {
        if replay.job().client_kind == ClientKind::Processes || self.engine == EngineKind::Fio {
            let refused =
                "a trace is replayed by threads of this program, with the engine io_uring or sync";
            return Err(LoadError::Refused(refused.to_owned()));
        }
        // Requests differ in length: each must be a multiple of what direct I/O goes in.
        let smallest = Job { block_size: replay.multiple(), ..replay.job().clone() };
        match self.engine {
            EngineKind::Null => Ok(()),
            _ => self.target.check(&smallest),
        }
    }

    fn check_memory(&self) -> Result<(), LoadError> {
        let needed = self
            .jobs()
            .map(|(_, job)| {
                let (reads, writes) = (job.pattern.reads(), job.pattern.writes());
                let one = Buffers::size(job.block_size.0, job.depth, reads, writes);
                one.saturating_mul(job.clients.into())
            })
            .fold(0, u64::saturating_add);
        let available = memory_available().unwrap_or(Bytes(u64::MAX));
        if needed as f64 > available.0 as f64 * MEMORY_SHARE {
            return Err(LoadError::Refused(format!(
                "buffers for clients × depth × block size need {}, and {available} of memory are \
                 available: use fewer clients, less depth or smaller blocks",
                Bytes(needed)
            )));
        }
        Ok(())
    }
}

/// MemAvailable, as the kernel estimates it.
fn memory_available() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok().map(Bytes::from_kib)
}
