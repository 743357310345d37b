//! A preset in a plan: the factors that it stands for on a server.

use crate::{Factor, Level, Refusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use workload::{Preset, VariableSet};

/// What a preset stands for on the server that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct PresetFacts {
    /// The preset.
    pub preset: Preset,
    /// The server and its version.
    pub server: String,
    /// Variables that every cell has, because what is compared would mean nothing without them.
    pub fixed: BTreeMap<String, String>,
    /// What is compared; the version's own default comes first.
    pub sets: Vec<VariableSet>,
    /// What cannot be compared here, and why.
    pub left_out: Vec<LeftOut>,
}

/// A level that this server, version or storage cannot have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The level.
    pub set: VariableSet,
    /// Why.
    pub reason: Refusal,
}

/// A preset as a plan used it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PresetUse {
    /// The preset.
    pub preset: Preset,
    /// The server and its version.
    pub server: String,
    /// The factors that it stands for, as they are used.
    pub factors: Vec<(Factor, Vec<Level>)>,
    /// What it does not compare here, and why.
    pub left_out: Vec<LeftOut>,
    /// Its variables that are named beside it: what is named there counts.
    pub overridden: Vec<String>,
    /// Factors that are named beside it and that it has nothing to do with.
    pub added: Vec<Factor>,
}

impl PresetFacts {
    /// The factors that it stands for: a variable by itself where all its levels are of that alone.
    pub(crate) fn factors(&self, without: &[String]) -> Vec<(Factor, Vec<Level>)> {
        let mut factors: Vec<(Factor, Vec<Level>)> = self
            .fixed
            .iter()
            .filter(|(name, _)| !without.contains(name))
            .map(|(name, value)| {
                (Factor::Variable { name: name.clone() }, vec![Level(value.clone())])
            })
            .collect();
        let mut sets: Vec<VariableSet> = Vec::new();
        for set in &self.sets {
            let mut set = set.clone();
            set.variables.retain(|name, _| !without.contains(name));
            if !sets.iter().any(|other| other.variables == set.variables) {
                sets.push(set);
            }
        }
        sets.retain(|set| !set.variables.is_empty());
        let single = |set: &VariableSet| {
            let mut names = set.variables.keys();
            names.next().filter(|_| set.variables.len() == 1).cloned()
        };
        let alone = sets.first().and_then(single);
        let same = alone.filter(|name| sets.iter().all(|set| single(set).as_ref() == Some(name)));
        let levels: Vec<Level> = match &same {
            Some(name) => sets.iter().map(|set| Level(set.variables[name].clone())).collect(),
            None => sets.iter().map(|set| Level(set.to_string())).collect(),
        };
        if !levels.is_empty() {
            let factor = same.map_or(Factor::Variables, |name| Factor::Variable { name });
            factors.push((factor, levels));
        }
        factors
    }

    /// Whether it says anything of a variable.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fixed.contains_key(name)
            || self.sets.iter().any(|set| set.variables.contains_key(name))
    }
}
