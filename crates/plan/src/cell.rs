//! Cells: one level for each factor.

use crate::{Factor, Level, Role, Without};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};
use workload::{EngineKind, VariableSet, WordError, Workload};

/// One level for each factor that it has; a tunable is only in the cells of its scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Cell {
    /// Factor to level.
    #[serde(with = "levels_by_word")]
    pub levels: BTreeMap<Factor, Level>,
    /// The cell that this one is compared with, by its place in the plan; `None` in a baseline.
    pub baseline: Option<usize>,
}

impl Cell {
    /// The level of a factor, if the cell has it.
    pub fn level(&self, factor: &Factor) -> Option<&Level> {
        self.levels.get(factor)
    }

    /// The levels of factors that are settings of the host.
    pub fn host_settings(&self) -> impl Iterator<Item = (&Factor, &Level)> {
        self.levels.iter().filter(|(factor, _)| factor.role() == Role::HostSetting)
    }

    /// What its clients do: `base`, with this cell's levels over it.
    pub fn workload(
        &self,
        base: &Workload,
        engine: EngineKind,
    ) -> Result<(Workload, EngineKind), WordError> {
        let mut workload = base.clone();
        let mut engine = engine;
        if let Some(Level(text)) = self.level(&Factor::Workload) {
            // First: the others are laid over it.
            workload.database = Some(text.parse()?);
        }
        for (factor, Level(text)) in &self.levels {
            let job = &mut workload.job;
            let number = || {
                text.parse().map_err(|_| {
                    WordError::new(format!("{factor} '{text}' is not a whole number below 2^32"))
                })
            };
            match factor {
                Factor::Sync => job.sync = text.parse()?,
                Factor::IoPriority => job.io_priority = Some(text.parse()?),
                Factor::Pattern => job.pattern = text.parse()?,
                Factor::BlockSize => job.block_size = text.parse().map_err(WordError::from)?,
                Factor::Clients => {
                    job.clients = number()?;
                    if let Some(database) = &mut workload.database {
                        database.clients = Some(job.clients);
                    }
                }
                Factor::Depth => job.depth = number()?,
                Factor::Rate => {
                    job.rate = Some(text.parse()?);
                    if let Some(database) = &mut workload.database {
                        database.rate = job.rate;
                    }
                }
                Factor::Variable { name } => {
                    workload.variables.insert(name.clone(), text.clone());
                }
                Factor::Variables => {
                    workload.variables.extend(text.parse::<VariableSet>()?.variables);
                }
                Factor::Background if text == "none" => workload.background = None,
                Factor::Background => workload.background = Some(text.parse()?),
                Factor::Engine => engine = text.parse()?,
                Factor::Filesystem
                | Factor::Scheduler
                | Factor::NrRequests
                | Factor::AsyncDepth
                | Factor::Tunable { .. }
                | Factor::WbtLatUsec
                | Factor::ReadAheadKb
                | Factor::Nomerges
                | Factor::RqAffinity
                | Factor::Workload
                | Factor::Without
                | Factor::Placebo
                | Factor::Label
                | Factor::Benchmark => {}
            }
        }
        workload.job.check()?;
        if let Some(database) = &workload.database {
            database.check()?;
        }
        Ok((workload, engine))
    }

    /// The levels of `factors` alone, for tables: `mq-deadline, nr_requests 64`.
    pub fn label(&self, factors: &[Factor]) -> String {
        let words: Vec<String> = factors
            .iter()
            .filter_map(|factor| Some((factor, self.levels.get(factor)?)))
            .map(|(factor, level)| match factor {
                Factor::Scheduler | Factor::Filesystem | Factor::Pattern => level.to_string(),
                Factor::Workload | Factor::Label | Factor::Benchmark => level.to_string(),
                Factor::Variable { name } => format!("{name} {level}"),
                Factor::Variables => set_label(level),
                Factor::Sync | Factor::Engine | Factor::BlockSize => level.to_string(),
                Factor::Clients if level.0 == "1" => "1 client".to_owned(),
                Factor::Clients => format!("{level} clients"),
                Factor::NrRequests => format!("queue {level}"),
                Factor::AsyncDepth => format!("async_depth {level}"),
                Factor::Tunable { name, .. } => format!("{name} {level}"),
                Factor::WbtLatUsec => format!("wbt {level}"),
                Factor::ReadAheadKb => format!("read-ahead {level}"),
                Factor::Nomerges => format!("nomerges {level}"),
                Factor::RqAffinity => format!("rq_affinity {level}"),
                Factor::IoPriority => format!("prio {level}"),
                Factor::Placebo => format!("placebo {level}"),
                Factor::Depth => format!("depth {level}"),
                Factor::Rate => level.to_string(),
                Factor::Background if level.0 == "none" => "no job beside".to_owned(),
                Factor::Background => format!("{level} beside"),
                Factor::Without if level.0 == Without::default().to_string() => {
                    "all mechanisms on".to_owned()
                }
                Factor::Without => format!("no {level}"),
            })
            .collect();
        if words.is_empty() { "as it is".to_owned() } else { words.join(", ") }
    }

    /// The levels of `factors` with the factors' names, for sentences: `scheduler none, nr_requests
    /// 64`.
    pub fn phrase(&self, factors: &[Factor]) -> String {
        let words: Vec<String> = factors
            .iter()
            .filter_map(|factor| Some((factor, self.levels.get(factor)?)))
            .map(|(factor, level)| match factor {
                Factor::Variables => set_label(level),
                _ => format!("{factor} {level}"),
            })
            .collect();
        if words.is_empty() { "what is there".to_owned() } else { words.join(", ") }
    }
}

/// Variables that are set together, as tables call them.
fn set_label(level: &Level) -> String {
    level.0.parse::<VariableSet>().map_or_else(|_| level.to_string(), |set| set.label())
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        f.pad(&words.join(" "))
    }
}

/// Keys as words, because JSON and TOML have only text for keys.
mod levels_by_word {
    use super::{BTreeMap, Deserialize, Factor, Level, Serialize};

    pub fn serialize<S: serde::Serializer>(
        levels: &BTreeMap<Factor, Level>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let words: BTreeMap<String, &Level> =
            levels.iter().map(|(factor, level)| (factor.to_string(), level)).collect();
        words.serialize(serializer)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Factor, Level>, D::Error> {
        BTreeMap::<String, Level>::deserialize(deserializer)?
            .into_iter()
            .map(|(word, level)| Ok((word.parse().map_err(serde::de::Error::custom)?, level)))
            .collect()
    }
}
