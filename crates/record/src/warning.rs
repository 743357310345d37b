//! What a reader of a trial's figures must know.

use crate::SharePermille;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::{Bytes, Nanos};

/// Which of a trial's jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobRole {
    /// The measured job.
    Measured,
    /// The job that runs beside it.
    Background,
}

impl JobRole {
    /// Its name, also in the record.
    pub fn name(self) -> &'static str {
        match self {
            JobRole::Measured => "measured",
            JobRole::Background => "background",
        }
    }
}

/// What a reader of a trial's figures must know. Data alone: `report` has the words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// The trial ended before its planned time.
    StoppedEarly {
        /// What was measured.
        measured: Nanos,
        /// What was planned.
        planned: Nanos,
    },
    /// A job completed nothing.
    NothingCompleted {
        /// Which.
        job: JobRole,
        /// The measured time.
        within: Nanos,
    },
    /// Operations failed.
    OperationsFailed {
        /// Whose.
        job: JobRole,
        /// The kernel's name of the error, and how many.
        errors: BTreeMap<String, u64>,
    },
    /// Simulated operations reached beyond the end of the device.
    BeyondDeviceEnd {
        /// Whose.
        job: JobRole,
        /// How many.
        operations: u64,
    },
    /// An operation in flight at the end took longer than any that counts.
    InFlightLonger {
        /// Whose.
        job: JobRole,
        /// How long it took, or had been in flight for when the trial ended.
        age: Nanos,
        /// Whether it completed afterwards, so that `age` is its whole latency.
        completed: bool,
    },
    /// Operations that were due before the end had not been done: the offered rate is above what the
    /// target carries.
    Backlog {
        /// Whose.
        job: JobRole,
        /// About how many.
        operations: u64,
        /// How late the first of them is.
        oldest: Nanos,
    },
    /// Transactions that were due before the end had not begun.
    TransactionBacklog {
        /// How many.
        transactions: u64,
        /// How late the first of them is.
        oldest: Nanos,
    },
    /// Clients were ready to run and had no CPU, for more than a tenth of the mean latency.
    ClientsWaitedForCpu {
        /// Microseconds an operation.
        microseconds: f64,
        /// The mean latency that this is part of.
        mean_latency: Nanos,
    },
    /// The load generator used nearly all CPUs.
    GeneratorSaturatesCpus {
        /// CPUs used.
        used: f64,
        /// CPUs there are.
        cpus: u32,
    },
    /// One client of the load generator was nearly always on a CPU.
    GeneratorClientSaturated {
        /// Its share of the time.
        busiest: SharePermille,
    },
    /// The load generator submitted operations after their intended start although the client was idle.
    GeneratorLate {
        /// Whose.
        job: JobRole,
        /// The mean lateness.
        late: Nanos,
        /// The mean response time that this is part of.
        mean_response: Nanos,
    },
    /// fio reports fsync and fdatasync apart from writes.
    SyncsReportedApart,
    /// fio reports many clients only at the end.
    NoFiguresPerSecond {
        /// How many clients.
        clients: u32,
    },
    /// A CPU limit of the program's own control group held it back.
    CpuLimitReached {
        /// For how long.
        throttled: Nanos,
    },
    /// The counters of host and device could not be read.
    NoHostCounters,
    /// The kernel does not count the requests of these devices.
    NotCounted {
        /// Their names.
        devices: Vec<String>,
    },
    /// A control group bounded the page cache.
    PageCacheBounded {
        /// Page cache and the load's own memory together.
        limit: Bytes,
        /// Version of the control group, 1 or 2.
        cgroup_version: u8,
    },
    /// The filesystem was mounted with an option that can lose or reorder completed writes at a power
    /// failure.
    UnsafeMountOption {
        /// The option.
        option: String,
    },
    /// The host's clock was set during the trial, or the host slept: times of day are in no order. Durations are
    /// of clocks that nobody sets.
    ClockSet {
        /// How far ahead, or back.
        by_seconds: i64,
    },
    /// The server is not one that Spindle started.
    ForeignServer,
    /// The server ran on from trial to trial: the data are what earlier trials left.
    DataGoOn {
        /// How many trials have run on them before.
        trials: u32,
    },
    /// Each trial got a server on fresh data though cells were to be switched inside one that runs.
    NotAlternated {
        /// The variable that it could not change.
        variable: String,
        /// Why.
        cause: NotAlternated,
    },
    /// A server that was started with a variable's value made another of it.
    AnotherValue {
        /// The variable.
        variable: String,
        /// The level.
        wanted: String,
        /// What the server says it is.
        took: String,
    },
    /// The host of an emulated device had little idle CPU.
    EmulatorHostBusy {
        /// Idle share of all CPUs in percent.
        idle_percent: f64,
    },
    /// The server of an emulated device has no real-time priority.
    EmulatorNotRealTime,
    /// A sentence of a run file older than version 3.
    Recorded {
        /// The sentence.
        text: String,
    },
}

/// Why cells are not switched inside a running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum NotAlternated {
    /// The server refuses to change the variable while it runs.
    Refused {
        /// Its words.
        words: String,
    },
    /// The server made another of a value.
    TookAnother {
        /// The level.
        wanted: String,
        /// What the server says it is.
        took: String,
    },
    /// Data are made with the variable.
    MadeWith,
    /// Not every cell names the variable.
    Unnamed,
}

impl Warning {
    /// The same of another job.
    pub fn of_job(mut self, role: JobRole) -> Warning {
        match &mut self {
            Warning::NothingCompleted { job, .. }
            | Warning::OperationsFailed { job, .. }
            | Warning::BeyondDeviceEnd { job, .. }
            | Warning::InFlightLonger { job, .. }
            | Warning::Backlog { job, .. }
            | Warning::GeneratorLate { job, .. } => *job = role,
            _ => {}
        }
        self
    }

    /// Whether a user has to know of it, from a trial that measured for `span`. An operation in flight at the
    /// end, longer than any that counts, is in the longest latency of its cell; what is as slow counts too
    /// rarely in the percentiles only where it takes a good part of a trial.
    pub fn is_worth_telling(&self, span: Nanos) -> bool {
        match self {
            Warning::InFlightLonger { age, .. } => age.0 >= span.0 / 4,
            _ => true,
        }
    }

    /// Whether both say the same of their trials: their figures may differ.
    pub fn same_kind(&self, other: &Warning) -> bool {
        let role = |warning: &Warning| match warning {
            Warning::NothingCompleted { job, .. }
            | Warning::OperationsFailed { job, .. }
            | Warning::BeyondDeviceEnd { job, .. }
            | Warning::InFlightLonger { job, .. }
            | Warning::Backlog { job, .. }
            | Warning::GeneratorLate { job, .. } => Some(*job),
            _ => None,
        };
        match (self, other) {
            (Warning::Recorded { text }, Warning::Recorded { text: other }) => text == other,
            (
                Warning::UnsafeMountOption { option },
                Warning::UnsafeMountOption { option: other },
            ) => option == other,
            (
                Warning::AnotherValue { variable, wanted, .. },
                Warning::AnotherValue { variable: other, wanted: other_wanted, .. },
            ) => variable == other && wanted == other_wanted,
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && role(self) == role(other)
            }
        }
    }
}

/// Why a trial that was measured does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum VoidReason {
    /// Settings were not after the trial what they were before it.
    SettingsMoved {
        /// Which.
        moved: Vec<MovedSetting>,
    },
    /// The emulated device completed requests too late.
    CompletionsLate(LateCompletions),
    /// A database trial went wrong: the server's words, or the check that failed.
    Database {
        /// What happened, with the server's words.
        problem: String,
    },
    /// A sentence of a run file older than version 3.
    Recorded {
        /// The sentence.
        text: String,
    },
}

/// A setting that something else changed during a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MovedSetting {
    /// The kernel's or the server's name for it.
    pub name: String,
    /// Its value before.
    pub before: String,
    /// Its value after; none if it is no longer there.
    pub after: Option<String>,
    /// Who did it; none of what is no setting of the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Mover>,
}

/// Who gave a setting another value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Mover {
    /// A process was seen to write it.
    Process {
        /// Its number.
        pid: u32,
        /// The kernel's name for it; none if it had ended before it could be looked at.
        #[serde(default)]
        name: Option<String>,
        /// Its command line.
        #[serde(default)]
        command: Option<String>,
        /// The unit of systemd's that it belongs to.
        #[serde(default)]
        unit: Option<String>,
        /// Names of its parent, that one's parent and so on.
        #[serde(default)]
        parents: Vec<String>,
    },
    /// Writes were watched and none was seen.
    NotSeen,
    /// Writes could not be watched.
    NotWatched {
        /// Why not.
        why: String,
    },
}

/// How late the completions of an emulated device were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateCompletions {
    /// Whether the mean or the 99th percentile was too late.
    pub statistic: LateStatistic,
    /// The lateness.
    pub late: Nanos,
    /// The model's own response time in the same statistic.
    pub response: Nanos,
    /// Share of its spinning time for which the pacing thread's CPU was taken from it, where known.
    pub cpu_taken: Option<f64>,
}

/// Of which statistic a lateness is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateStatistic {
    /// The mean.
    Mean,
    /// The 99th percentile.
    P99,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_flight_is_told_where_it_took_a_good_part_of_the_trial() {
        let told = |age: u64| {
            let warning = Warning::InFlightLonger {
                job: JobRole::Measured,
                age: Nanos::from_millis(age),
                completed: true,
            };
            warning.is_worth_telling(Nanos::from_secs(4))
        };
        assert!(told(1000) && !told(999));
    }
}
