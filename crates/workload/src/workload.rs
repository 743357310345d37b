//! What a trial's clients do: a job, a database's work or a recorded trace, and perhaps a job in the
//! background.

use crate::{DatabaseJob, Job, Rate, Replay};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf};
use units::Bytes;

/// The job that is measured and the one that may run beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// What is measured, unless a database is.
    pub job: Job,
    /// What goes on at the same time (a backup, a bulk load); reported, but no verdict rests on it.
    #[serde(default)]
    pub background: Option<Job>,
    /// What a database's clients do; with it, `job` says only how many clients there are and at what
    /// rate, where this does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseJob>,
    /// A recorded trace in place of the job; with it, `job` says only how many requests are
    /// outstanding where the trace is replayed as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
    /// The program of the private database server; without it, it is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_program: Option<PathBuf>,
    /// The database server's variables, by its own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}

impl Workload {
    /// How many clients there are, of the database or of the job.
    pub fn clients(&self) -> u32 {
        self.database.as_ref().and_then(|database| database.clients).unwrap_or(self.job.clients)
    }

    /// The rate that is offered, to the database or by the job.
    pub fn rate(&self) -> Option<Rate> {
        self.database.as_ref().and_then(|database| database.rate).or(self.job.rate)
    }

    /// The size of the file of the job beside a database, where there is such a job.
    pub fn beside_size(&self) -> Option<Bytes> {
        self.background.as_ref()?;
        Some(self.database.as_ref()?.beside_size())
    }

    /// Its jobs on blocks, and what each goes over where `span` is used: the measured one, unless a database takes
    /// its place, and the one beside it.
    pub fn jobs(&self, span: Bytes) -> impl Iterator<Item = (&Job, Bytes)> {
        let measured = self.database.is_none().then_some((&self.job, span));
        let beside = self.beside_size().unwrap_or(span);
        measured.into_iter().chain(self.background.as_ref().map(|job| (job, beside)))
    }
}
