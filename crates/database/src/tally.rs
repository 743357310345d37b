//! What one client has done so far; the client writes it, the driver reads it once a second.

use record::{Histogram, TransactionMeasurement};
use std::collections::BTreeMap;
use units::Nanos;

/// What one client has done so far.
pub struct Tally {
    /// By type, in the workload's order.
    pub types: Vec<OfType>,
    /// Completed since the last look, warm-up included, and their latencies.
    pub second: (u64, Histogram),
    /// Completed in the measured span.
    pub completed: u64,
    /// Retries in the measured span, by their cause.
    pub retries: BTreeMap<String, u64>,
}

/// Transactions of one type in the measured span.
#[derive(Default)]
pub struct OfType {
    completed: u64,
    rolled_back: u64,
    service: Histogram,
    response: Option<Histogram>,
}

/// One transaction that came to its end.
pub struct Completed {
    /// Its type.
    pub kind: usize,
    /// Whether it ended in an intended rollback.
    pub rolled_back: bool,
    /// From its first statement to its last answer.
    pub service: Nanos,
    /// From its intended start, where a rate is offered.
    pub response: Option<Nanos>,
}

impl Tally {
    /// For a workload with so many types.
    pub fn new(types: usize) -> Tally {
        Tally {
            types: (0..types).map(|_| OfType::default()).collect(),
            second: (0, Histogram::new()),
            completed: 0,
            retries: BTreeMap::new(),
        }
    }

    /// Notes a transaction; `counts` when it ended in the measured span.
    pub fn note(&mut self, done: &Completed, counts: bool) {
        self.second.0 += 1;
        self.second.1.record(done.response.unwrap_or(done.service));
        if !counts {
            return;
        }
        self.completed += 1;
        let of_type = &mut self.types[done.kind];
        of_type.completed += 1;
        of_type.rolled_back += u64::from(done.rolled_back);
        of_type.service.record(done.service);
        if let Some(response) = done.response {
            of_type.response.get_or_insert_default().record(response);
        }
    }

    /// Adds what was counted since the last call to `into`.
    pub fn take_second(&mut self, into: &mut (u64, Histogram)) {
        into.0 += self.second.0;
        into.1.merge(&self.second.1);
        self.second.0 = 0;
        self.second.1.clear();
    }
}

impl OfType {
    /// As it is recorded; `None` where there was none.
    pub fn measured(self) -> Option<TransactionMeasurement> {
        (self.completed > 0).then_some(TransactionMeasurement {
            transactions: self.completed,
            rolled_back: self.rolled_back,
            service: self.service,
            response: self.response,
        })
    }
}
