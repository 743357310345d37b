//! What a database's transactions were in all trials of a cell together.

use record::{Histogram, Measurement, Transactions};
use serde::Serialize;
use std::collections::BTreeMap;
use units::Nanos;

/// Transactions of all trials of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransactionSummary {
    /// By type.
    pub types: BTreeMap<String, TypeSummary>,
    /// Statements a second.
    pub queries_per_second: f64,
    /// Transactions begun anew a second, by why.
    pub retries_per_second: BTreeMap<String, f64>,
    /// Transactions given up a second, by the server's word for it.
    pub errors_per_second: BTreeMap<String, f64>,
    /// What one transaction cost, as far as it was counted: reads, writes and KiB at the device,
    /// fsync calls, CPU time of the server and of the clients in microseconds.
    pub per_transaction: BTreeMap<&'static str, f64>,
}

/// Transactions of one type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeSummary {
    /// Completed a second.
    pub per_second: f64,
    /// Share that ended in an intended rollback, 0 to 1.
    pub rolled_back: f64,
    /// Median latency; response time where a rate was offered.
    pub p50: Option<Nanos>,
    /// 99th percentile.
    pub p99: Option<Nanos>,
    /// The longest.
    pub max: Option<Nanos>,
}

/// Counters whose rate divided by transactions a second is a cost of one: name, counter, scale.
const COSTS: [(&str, &str, f64); 6] = [
    ("device reads", counters::DEVICE_R.id, 1.0),
    ("device writes", counters::DEVICE_W.id, 1.0),
    ("device KiB read", counters::DEVICE_R_MB.id, 1024.0),
    ("device KiB written", counters::DEVICE_W_MB.id, 1024.0),
    ("device flushes", counters::DEVICE_F.id, 1.0),
    ("server CPU µs", counters::SERVER_CPUS.id, 1e6),
];

/// Of trials that measured `seconds` together; `None` where none was of a database.
pub fn summary(measured: &[&Measurement], seconds: f64) -> Option<TransactionSummary> {
    let mut all = Transactions::default();
    let mut any = false;
    for transactions in measured.iter().filter_map(|m| m.transactions.as_ref()) {
        any = true;
        all.merge(transactions);
    }
    if !any || seconds <= 0.0 {
        return None;
    }
    let rates = |counts: &BTreeMap<String, u64>| {
        counts.iter().map(|(why, count)| (why.clone(), *count as f64 / seconds)).collect()
    };
    let types = all.types.iter().map(|(name, of_type)| {
        let latency: &Histogram = of_type.response.as_ref().unwrap_or(&of_type.service);
        let summary = TypeSummary {
            per_second: of_type.transactions as f64 / seconds,
            rolled_back: of_type.rolled_back as f64 / of_type.transactions.max(1) as f64,
            p50: latency.quantile(0.5),
            p99: latency.quantile(0.99),
            max: latency.max(),
        };
        (name.clone(), summary)
    });
    Some(TransactionSummary {
        types: types.collect(),
        queries_per_second: all.queries.all() as f64 / seconds,
        retries_per_second: rates(&all.retries),
        errors_per_second: rates(&all.errors),
        per_transaction: costs(measured, all.completed() as f64 / seconds),
    })
}

fn costs(measured: &[&Measurement], per_second: f64) -> BTreeMap<&'static str, f64> {
    let mut costs = BTreeMap::new();
    if per_second <= 0.0 {
        return costs;
    }
    let all = crate::aggregation::aggregate_counters(measured);
    // The device counts the requests of a job beside the database, too.
    let shared = measured.iter().any(|measurement| measurement.background.is_some());
    for (name, counter, scale) in COSTS {
        if shared && name.starts_with("device") {
            continue;
        }
        if let Some(rate) = all.get(counter) {
            costs.insert(name, rate * scale / per_second);
        }
    }
    // Each server counts some of its fsync calls: InnoDB those of its files, without the binary log; PostgreSQL those
    // of its log, without data files.
    if let Some((name, rate)) = all.iter().find(|(name, _)| name.ends_with(".fsyncs/s")) {
        let of_log = name.starts_with("postgresql.");
        costs.insert(if of_log { "WAL fsyncs" } else { "InnoDB fsyncs" }, rate / per_second);
    }
    costs
}
