//! What an observer of a trial is shown once a second.

use units::Nanos;

/// The last second of a running trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// Its end, in seconds from the end of warm-up; zero or less during warm-up.
    pub at: f64,
    /// Whether this second counts.
    pub phase: Phase,
    /// Reads and writes, or a database's transactions, that the measured clients completed, a second.
    pub operations_per_second: f64,
    /// Bytes that reads and writes moved, a second; zero for transactions.
    pub bytes_per_second: f64,
    /// 99th percentile of their latencies (response times where a rate is offered); zero when
    /// nothing completed.
    pub p99: Nanos,
}

/// What part of a trial it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Load runs, nothing counts yet.
    WarmUp,
    /// It counts.
    Measuring,
}
