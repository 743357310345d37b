//! Factors: what can be set, under the kernel's names; and their levels.

use crate::{Filesystem, Without};
use std::{fmt, str::FromStr};
use units::Bytes;
use workload::{
    DatabaseJob, EngineKind, IoPriority, Job, Pattern, Rate, SyncMode, VariableSet, WordError,
    is_variable_name, word_serde,
};

/// Something that can be set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// The filesystem that is made for the trial.
    Filesystem,
    /// `queue/scheduler`.
    Scheduler,
    /// `queue/nr_requests`.
    NrRequests,
    /// `queue/async_depth` of Linux 7.0 and later, in the cells that have a scheduler.
    AsyncDepth,
    /// A tunable of one scheduler: `queue/iosched/NAME`, in the cells that have the scheduler.
    Tunable {
        /// The scheduler that has it.
        scheduler: String,
        /// Its name under `iosched/`.
        name: String,
    },
    /// `queue/wbt_lat_usec`: write-back throttling.
    WbtLatUsec,
    /// `queue/read_ahead_kb`.
    ReadAheadKb,
    /// `queue/nomerges`: how much is merged.
    Nomerges,
    /// `queue/rq_affinity`: on which processor a completion runs.
    RqAffinity,
    /// How writes are made durable and whether the page cache is bypassed.
    Sync,
    /// The clients' I/O priority.
    IoPriority,
    /// What makes the load.
    Engine,
    /// A variable of the database server: `server.innodb_flush_method`.
    Variable {
        /// Its name, as the server spells it.
        name: String,
    },
    /// Several variables of the database server that are set together.
    Variables,
    /// Nothing at all: its levels differ in name only, to see what chance shows.
    Placebo,
    /// What an importer of other programs' outputs calls a cell: nothing that can be set.
    Label,
    /// What another program was asked to do, in its words: nothing that can be set.
    Benchmark,
    /// The database workload.
    Workload,
    /// The measured job's pattern.
    Pattern,
    /// Its bytes an operation.
    BlockSize,
    /// Its number of clients.
    Clients,
    /// Its operations outstanding a client.
    Depth,
    /// Its offered operations a second.
    Rate,
    /// The job beside it.
    Background,
    /// Mechanisms that are switched off: in the simulated world only.
    Without,
}

/// What stands before the name of a database server's variable: no scheduler of Linux is called so.
const SERVER: &str = "server";

/// What a factor is to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The device's, and put back afterwards: what the host has now is the baseline.
    HostSetting,
    /// A choice made when the database is set up: the first level is the baseline.
    Choice,
    /// What the clients demand: cells are compared only with others under the same conditions.
    Condition,
}

impl Factor {
    /// What it is to a comparison.
    pub fn role(&self) -> Role {
        match self {
            Factor::Scheduler
            | Factor::NrRequests
            | Factor::AsyncDepth
            | Factor::Tunable { .. }
            | Factor::WbtLatUsec
            | Factor::ReadAheadKb
            | Factor::Nomerges
            | Factor::RqAffinity => Role::HostSetting,
            Factor::Filesystem
            | Factor::Sync
            | Factor::IoPriority
            | Factor::Engine
            | Factor::Variable { .. }
            | Factor::Variables
            | Factor::Placebo
            | Factor::Label => Role::Choice,
            Factor::Benchmark
            | Factor::Workload
            | Factor::Pattern
            | Factor::BlockSize
            | Factor::Clients
            | Factor::Depth
            | Factor::Rate
            | Factor::Background
            | Factor::Without => Role::Condition,
        }
    }

    /// The level in its canonical spelling, or why it is none of this factor's.
    pub fn level(&self, text: &str) -> Result<Level, WordError> {
        let number = |least: u64, unit: &str| {
            text.parse::<u64>()
                .ok()
                .filter(|value| *value >= least)
                .map(|v| v.to_string())
                .ok_or_else(|| {
                    WordError::new(format!(
                        "{self} '{text}' is not a whole number{unit} of at least {least}"
                    ))
                })
        };
        let canonical = match self {
            Factor::Scheduler
            | Factor::Tunable { .. }
            | Factor::Variable { .. }
            | Factor::Label
            | Factor::Benchmark
                if text.trim().is_empty() =>
            {
                return Err(WordError::new(format!("a level of {self} is empty")));
            }
            Factor::Variable { .. } if text.contains(['\n', '\r', '\0']) => {
                return Err(WordError::new(format!("a level of {self} is more than one line")));
            }
            Factor::Scheduler | Factor::Tunable { .. } | Factor::Variable { .. } => {
                text.trim().to_owned()
            }
            // A line of a table has to stay one.
            Factor::Label | Factor::Benchmark => {
                text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect()
            }
            Factor::Workload => text.parse::<DatabaseJob>()?.to_string(),
            Factor::Variables => text.parse::<VariableSet>()?.to_string(),
            Factor::Filesystem => text.parse::<Filesystem>()?.to_string(),
            Factor::NrRequests | Factor::AsyncDepth => number(1, "")?,
            Factor::Placebo => number(0, "")?,
            Factor::WbtLatUsec => number(0, " of microseconds")?,
            Factor::ReadAheadKb => number(0, " of KiB")?,
            Factor::Nomerges | Factor::RqAffinity => number(0, "")?,
            Factor::Sync => text.parse::<SyncMode>()?.to_string(),
            Factor::IoPriority => text.parse::<IoPriority>()?.to_string(),
            Factor::Engine => text.parse::<EngineKind>()?.to_string(),
            Factor::Pattern => text.parse::<Pattern>()?.to_string(),
            Factor::BlockSize => {
                text.parse::<Bytes>().map_err(WordError::from)?.to_string().replace(' ', "")
            }
            Factor::Clients | Factor::Depth => number(1, "")?,
            Factor::Rate => text.parse::<Rate>()?.to_string(),
            Factor::Background if text == "none" => text.to_owned(),
            Factor::Background => text.parse::<Job>()?.to_string(),
            Factor::Without => text.parse::<Without>()?.to_string(),
        };
        Ok(Level(canonical))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Factor::Scheduler => "scheduler",
            Factor::NrRequests => "nr_requests",
            Factor::AsyncDepth => "async_depth",
            Factor::Tunable { scheduler, name } => return f.pad(&format!("{scheduler}.{name}")),
            Factor::Variable { name } => return f.pad(&format!("{SERVER}.{name}")),
            Factor::Variables => "variables",
            Factor::Workload => "workload",
            Factor::WbtLatUsec => "wbt_lat_usec",
            Factor::ReadAheadKb => "read_ahead_kb",
            Factor::Nomerges => "nomerges",
            Factor::RqAffinity => "rq_affinity",
            Factor::Filesystem => "filesystem",
            Factor::Sync => "sync",
            Factor::IoPriority => "io_priority",
            Factor::Engine => "engine",
            Factor::Placebo => "placebo",
            Factor::Label => "label",
            Factor::Benchmark => "benchmark",
            Factor::Pattern => "pattern",
            Factor::BlockSize => "block_size",
            Factor::Clients => "clients",
            Factor::Depth => "depth",
            Factor::Rate => "rate",
            Factor::Background => "background",
            Factor::Without => "without",
        };
        f.pad(word)
    }
}

impl FromStr for Factor {
    type Err = WordError;
    fn from_str(text: &str) -> Result<Self, WordError> {
        Ok(match text {
            "scheduler" => Factor::Scheduler,
            "nr_requests" => Factor::NrRequests,
            "async_depth" => Factor::AsyncDepth,
            "wbt_lat_usec" => Factor::WbtLatUsec,
            "read_ahead_kb" => Factor::ReadAheadKb,
            "nomerges" => Factor::Nomerges,
            "rq_affinity" => Factor::RqAffinity,
            "filesystem" => Factor::Filesystem,
            "sync" => Factor::Sync,
            "io_priority" => Factor::IoPriority,
            "engine" => Factor::Engine,
            "variables" => Factor::Variables,
            "placebo" => Factor::Placebo,
            "label" => Factor::Label,
            "benchmark" => Factor::Benchmark,
            "workload" => Factor::Workload,
            "pattern" => Factor::Pattern,
            "block_size" => Factor::BlockSize,
            "clients" => Factor::Clients,
            "depth" => Factor::Depth,
            "rate" => Factor::Rate,
            "background" => Factor::Background,
            "without" => Factor::Without,
            other => match other.split_once('.') {
                Some((SERVER, name)) if is_variable_name(name) => {
                    Factor::Variable { name: name.to_owned() }
                }
                Some((scheduler, name))
                    if !scheduler.is_empty()
                        && scheduler != SERVER
                        && !name.is_empty()
                        && !name.contains(['/', '.']) =>
                {
                    Factor::Tunable { scheduler: scheduler.to_owned(), name: name.to_owned() }
                }
                _ => {
                    return Err(WordError::new(format!(
                        "factor '{other}' is not known: there are scheduler, nr_requests, async_depth, \
                         SCHEDULER.TUNABLE (such as mq-deadline.fifo_batch), wbt_lat_usec, \
                         read_ahead_kb, nomerges, rq_affinity, filesystem, sync, io_priority, engine, workload, \
                         server.VARIABLE (such as server.innodb_io_capacity), variables, placebo, \
                         pattern, block_size, clients, depth, rate, background and without"
                    )));
                }
            },
        })
    }
}

word_serde!(Factor);

/// A factor's level in its canonical spelling.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Level(pub String);

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_read_back_as_written() {
        for text in [
            "scheduler",
            "async_depth",
            "mq-deadline.fifo_batch",
            "wbt_lat_usec",
            "background",
            "label",
            "benchmark",
            "variables",
            "workload",
            "server.innodb_flush_method",
            "server.pg_stat_statements.max",
        ] {
            assert_eq!(text.parse::<Factor>().unwrap().to_string(), text);
        }
        for text in ["colour", ".x", "bfq.", "bfq.a/b", "server.", "server.a-b", "server.1"] {
            assert!(text.parse::<Factor>().is_err(), "{text}");
        }
    }

    #[test]
    fn levels_have_one_spelling() {
        assert_eq!(Factor::BlockSize.level("4k").unwrap().0, "4KiB");
        assert_eq!(Factor::BlockSize.level("4096").unwrap().0, "4KiB");
        assert_eq!(Factor::NrRequests.level("064").unwrap().0, "64");
        assert!(Factor::NrRequests.level("many").is_err());
        assert!(Factor::Clients.level("0").is_err());
        assert_eq!(Factor::Workload.level("tpcc, warehouses=4").unwrap().0, "tpcc");
    }
}
