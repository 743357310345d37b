//! What a database's clients did in one trial.

use crate::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a database's clients did: transactions are the operations that verdicts are given on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// By type: `oltp_read_write`; `new_order`, `payment` and so on; `insert`.
    pub types: BTreeMap<String, TransactionMeasurement>,
    /// Statements that the clients sent within them.
    pub queries: Queries,
    /// Transactions that each client completed: what fairness is computed from.
    pub clients: Vec<u64>,
    /// Transactions that were begun anew, by why: `deadlock (1213)`. The time of all attempts is
    /// within the latency of the one that came through.
    pub retries: BTreeMap<String, u64>,
    /// Transactions that failed and were given up, by the server's word for it.
    pub errors: BTreeMap<String, u64>,
    /// What was checked after the trial, such as TPC-C's consistency conditions and its input audit.
    pub checks: Vec<Check>,
}

/// Transactions of one type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionMeasurement {
    /// How many completed, those that ended in an intended rollback among them.
    pub transactions: u64,
    /// How many of them ended in an intended rollback.
    pub rolled_back: u64,
    /// From the first statement to the last answer, retries included.
    pub service: Histogram,
    /// From the intended start, where a rate was offered.
    pub response: Option<Histogram>,
}

/// Statements, in sysbench's three kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queries {
    /// Those that read.
    pub reads: u64,
    /// Those that write.
    pub writes: u64,
    /// BEGIN, COMMIT, ROLLBACK.
    pub others: u64,
}

/// Something checked after a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Which: `condition 3`, `audit: rolled back`.
    pub name: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was found, in figures.
    pub found: String,
}

impl Queries {
    /// All.
    pub fn all(self) -> u64 {
        self.reads + self.writes + self.others
    }
}

impl Transactions {
    /// How many completed, of all types.
    pub fn completed(&self) -> u64 {
        self.types.values().map(|of_type| of_type.transactions).sum()
    }

    /// Latencies of all types together: response time where a rate was offered, else service time.
    pub fn latency(&self) -> Histogram {
        let mut all = Histogram::new();
        for of_type in self.types.values() {
            all.merge(of_type.response.as_ref().unwrap_or(&of_type.service));
        }
        all
    }

    /// The same, to be kept rather than counted with.
    pub(crate) fn packed(mut self) -> Transactions {
        for of_type in self.types.values_mut() {
            of_type.service = std::mem::take(&mut of_type.service).packed();
            of_type.response = of_type.response.take().map(Histogram::packed);
        }
        self.clients.shrink_to_fit();
        self
    }

    /// Adds what other clients did.
    pub fn merge(&mut self, other: &Transactions) {
        for (name, theirs) in &other.types {
            self.types.entry(name.clone()).or_default().merge(theirs);
        }
        self.queries.reads += other.queries.reads;
        self.queries.writes += other.queries.writes;
        self.queries.others += other.queries.others;
        self.clients.extend_from_slice(&other.clients);
        for (ours, theirs) in
            [(&mut self.retries, &other.retries), (&mut self.errors, &other.errors)]
        {
            for (why, count) in theirs {
                *ours.entry(why.clone()).or_default() += count;
            }
        }
        self.checks.extend_from_slice(&other.checks);
    }
}

impl TransactionMeasurement {
    /// Adds what others did.
    pub fn merge(&mut self, other: &TransactionMeasurement) {
        self.transactions += other.transactions;
        self.rolled_back += other.rolled_back;
        self.service.merge(&other.service);
        if let Some(response) = &other.response {
            self.response.get_or_insert_default().merge(response);
        }
    }
}
