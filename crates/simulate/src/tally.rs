//! What a job's clients did: by operation, by client, by second.

use record::{
    ClientShare, Histogram, JobMeasurement, OperationMeasurement, Second, TransactionMeasurement,
    Transactions,
};
use std::collections::BTreeMap;
use units::{Bytes, Nanos};
use workload::DatabaseKind;

/// Operations of one kind.
struct Kind {
    bytes: u64,
    service: Histogram,
    response: Option<Histogram>,
}

impl Kind {
    fn new(open: bool) -> Self {
        Kind { bytes: 0, service: Histogram::new(), response: open.then(Histogram::new) }
    }

    fn measurement(self) -> OperationMeasurement {
        let operations = self.service.count();
        OperationMeasurement {
            operations,
            bytes: Bytes(self.bytes),
            service: self.service,
            response: self.response,
        }
    }
}

/// One job's counts.
pub(crate) struct Tally {
    reads: Kind,
    writes: Kind,
    syncs: Histogram,
    /// Operations of each client, and their bytes.
    shares: Vec<(u64, u64)>,
    failed: u64,
    /// Operations are a database's transactions, called so.
    transactions: Option<DatabaseKind>,
    second: CurrentSecond,
}

#[derive(Default)]
struct CurrentSecond {
    reads: u64,
    writes: u64,
    bytes: u64,
    latency: Histogram,
}

/// An operation that is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finished {
    /// Its client's place in the job.
    pub client: usize,
    pub reads: bool,
    pub bytes: u64,
    pub service: Nanos,
    pub response: Nanos,
}

impl Tally {
    pub fn new(clients: u32, open: bool) -> Self {
        Tally {
            reads: Kind::new(open),
            writes: Kind::new(open),
            syncs: Histogram::new(),
            shares: vec![(0, 0); clients as usize],
            failed: 0,
            transactions: None,
            second: CurrentSecond::default(),
        }
    }

    /// Of a database's clients.
    pub fn of_transactions(kind: DatabaseKind, clients: u32, open: bool) -> Self {
        Tally { transactions: Some(kind), ..Tally::new(clients, open) }
    }

    /// Counts one, into the whole only when `measuring`.
    #[inline]
    pub fn count(&mut self, done: Finished, measuring: bool) {
        let kind = if done.reads { &mut self.reads } else { &mut self.writes };
        let latency = if kind.response.is_some() { done.response } else { done.service };
        if measuring {
            kind.service.record(done.service);
            if let Some(response) = &mut kind.response {
                response.record(done.response);
            }
            kind.bytes += done.bytes;
            let share = &mut self.shares[done.client];
            *share = (share.0 + 1, share.1 + done.bytes);
        }
        self.second.bytes += done.bytes;
        self.second.reads += u64::from(done.reads);
        self.second.writes += u64::from(!done.reads);
        self.second.latency.record(latency);
    }

    /// Counts a flush that was a call of its own.
    pub fn count_sync(&mut self, took: Nanos) {
        self.syncs.record(took);
    }

    /// Counts an operation that the device refused.
    pub fn count_failure(&mut self) {
        self.failed += 1;
    }

    /// What was done since the last call; `at` is on the axis of [`Second::at`].
    pub fn take_second(&mut self, at: f64) -> Second {
        let CurrentSecond { reads, writes, bytes, latency } = &mut self.second;
        let all = *reads + *writes;
        if self.transactions.is_some() {
            (*reads, *writes, *bytes) = (0, 0, 0);
        }
        let second = Second {
            at,
            reads: *reads,
            writes: *writes,
            transactions: if self.transactions.is_some() { all } else { 0 },
            bytes: Bytes(*bytes),
            p50: latency.quantile(0.5).unwrap_or_default(),
            p99: latency.quantile(0.99).unwrap_or_default(),
            max: latency.max().unwrap_or_default(),
        };
        (*reads, *writes, *bytes) = (0, 0, 0);
        latency.clear();
        second
    }

    /// What the job did, or its database's clients.
    pub fn measurement(self) -> (JobMeasurement, Option<Transactions>) {
        let Some(kind) = self.transactions else { return (self.job(), None) };
        let mut all = self.reads;
        all.service.merge(&self.writes.service);
        if let (Some(all), Some(writes)) = (&mut all.response, &self.writes.response) {
            all.merge(writes);
        }
        let of_type = TransactionMeasurement {
            transactions: all.service.count(),
            rolled_back: 0,
            service: all.service,
            response: all.response,
        };
        let transactions = Transactions {
            types: [(kind.to_string(), of_type)].into(),
            clients: self.shares.iter().map(|(transactions, _)| *transactions).collect(),
            ..Transactions::default()
        };
        (JobMeasurement::default(), Some(transactions))
    }

    fn job(self) -> JobMeasurement {
        let share =
            |(operations, bytes): (u64, u64)| ClientShare { operations, bytes: Bytes(bytes) };
        let errors = match self.failed {
            0 => BTreeMap::new(),
            failed => [("EIO".to_owned(), failed)].into(),
        };
        JobMeasurement {
            clients: self.shares.iter().copied().map(share).collect(),
            reads: self.reads.measurement(),
            writes: self.writes.measurement(),
            syncs: Kind { bytes: 0, service: self.syncs, response: None }.measurement(),
            errors,
        }
    }
}
