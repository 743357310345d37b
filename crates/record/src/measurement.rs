//! What one trial gave.

use crate::{EventLog, Histogram, Imported, SharePermille, Transactions, Warning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Bytes, Nanos};

/// What one trial gave, raw. Warm-up is left out of everything but [`Measurement::seconds`] and
/// [`Measurement::counters`], where its samples have negative times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// How long the measured part lasted.
    pub span: Nanos,
    /// The measured job.
    pub job: JobMeasurement,
    /// What a database's clients did; with it, `job` is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<Transactions>,
    /// The job beside it.
    pub background: Option<JobMeasurement>,
    /// The measured job, second by second.
    pub seconds: Vec<Second>,
    /// Host, device and server counters on the same time axis.
    pub counters: Vec<CounterSample>,
    /// What making the load cost.
    pub generator: GeneratorCost,
    /// What a reader of the figures must know.
    pub warnings: Vec<Warning>,
    /// What happened, event by event: in a simulation.
    #[serde(default)]
    pub events: Option<EventLog>,
    /// What another program printed of it; with it, jobs, transactions and seconds are empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// What a job's clients did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobMeasurement {
    /// Reads.
    pub reads: OperationMeasurement,
    /// Writes; with a sync mode that calls fsync or fdatasync after each write, that call is in the
    /// write's latency.
    pub writes: OperationMeasurement,
    /// Calls of fsync and fdatasync, by themselves.
    pub syncs: OperationMeasurement,
    /// Each client's share: what fairness is computed from.
    pub clients: Vec<ClientShare>,
    /// Operations that failed, by the kernel's word for it, such as `EIO`.
    pub errors: BTreeMap<String, u64>,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationMeasurement {
    /// How many completed.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: Bytes,
    /// From submission to completion, time blocked in submission included.
    pub service: Histogram,
    /// From the intended start to completion, where a rate was offered.
    pub response: Option<Histogram>,
}

/// One client's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientShare {
    /// Operations that it completed (reads and writes).
    pub operations: u64,
    /// Bytes that they moved.
    pub bytes: Bytes,
}

/// One second of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// The second's end, in seconds from the end of warm-up; zero or less during warm-up.
    pub at: f64,
    /// Reads completed in it.
    pub reads: u64,
    /// Writes completed in it.
    pub writes: u64,
    /// Transactions completed in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub transactions: u64,
    /// Bytes moved in it.
    pub bytes: Bytes,
    /// Median latency of its reads and writes, or transactions (response time where a rate was offered).
    pub p50: Nanos,
    /// 99th percentile of the same.
    pub p99: Nanos,
    /// The longest of the same.
    pub max: Nanos,
}

/// Named counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterSample {
    /// Seconds from the end of warm-up; negative during it.
    pub at: f64,
    /// Counter to value. Names and units are those of docs/run-file.md.
    pub values: BTreeMap<String, f64>,
}

/// What making the load cost this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GeneratorCost {
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// Threads (or processes) that made the load.
    pub threads: u32,
    /// The largest share of the measured span that one of them spent on a CPU, 0 to 1: near 1, the
    /// generator may be what limits.
    pub busiest: SharePermille,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Measurement {
    /// What verdicts count: transactions, or reads and writes.
    pub fn operations(&self) -> u64 {
        match &self.transactions {
            Some(transactions) => transactions.completed(),
            None => self.job.operations(),
        }
    }

    /// Their latencies: response time where a rate was offered, else service time.
    pub fn latency(&self) -> Histogram {
        match &self.transactions {
            Some(transactions) => transactions.latency(),
            None => self.job.latency(),
        }
    }

    /// Whether [`Measurement::latency`] is response time.
    pub fn is_response(&self) -> bool {
        let job = &self.job;
        let mut types = self.transactions.iter().flat_map(|all| all.types.values());
        job.reads.response.is_some()
            || job.writes.response.is_some()
            || types.any(|of_type| of_type.response.is_some())
    }

    /// What each client completed.
    pub fn shares(&self) -> Vec<u64> {
        match &self.transactions {
            Some(transactions) => transactions.clients.clone(),
            None => self.job.clients.iter().map(|share| share.operations).collect(),
        }
    }

    /// What estimates and verdicts are made of, in as little memory as it takes: no series, counters or
    /// events, and histograms packed.
    pub fn for_verdicts(mut self) -> Measurement {
        self.warnings.shrink_to_fit();
        Measurement {
            job: self.job.packed(),
            transactions: self.transactions.map(Transactions::packed),
            background: self.background.map(JobMeasurement::packed),
            seconds: Vec::new(),
            counters: Vec::new(),
            events: None,
            ..self
        }
    }
}

impl Second {
    /// What was completed in it: transactions, or reads and writes.
    pub fn operations(&self) -> u64 {
        self.reads + self.writes + self.transactions
    }
}

impl JobMeasurement {
    /// Reads and writes.
    pub fn operations(&self) -> u64 {
        self.reads.operations + self.writes.operations
    }

    /// Bytes of reads and writes.
    pub fn bytes(&self) -> Bytes {
        self.reads.bytes + self.writes.bytes
    }

    /// Latencies of reads and writes together: response time where a rate was offered, else
    /// service time.
    pub fn latency(&self) -> Histogram {
        let mut all = Histogram::new();
        for operations in [&self.reads, &self.writes] {
            all.merge(operations.response.as_ref().unwrap_or(&operations.service));
        }
        all
    }

    fn packed(mut self) -> JobMeasurement {
        self.clients.shrink_to_fit();
        let (reads, writes, syncs) =
            (self.reads.packed(), self.writes.packed(), self.syncs.packed());
        JobMeasurement { reads, writes, syncs, ..self }
    }

    /// Adds what other clients of the same job did.
    pub fn merge(&mut self, other: &JobMeasurement) {
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
        self.syncs.merge(&other.syncs);
        self.clients.extend_from_slice(&other.clients);
        for (error, count) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += count;
        }
    }
}

impl OperationMeasurement {
    fn packed(self) -> OperationMeasurement {
        let response = self.response.map(Histogram::packed);
        OperationMeasurement { service: self.service.packed(), response, ..self }
    }

    /// Adds what others did.
    pub fn merge(&mut self, other: &OperationMeasurement) {
        self.operations += other.operations;
        self.bytes = self.bytes + other.bytes;
        self.service.merge(&other.service);
        if let Some(response) = &other.response {
            self.response.get_or_insert_default().merge(response);
        }
    }
}
