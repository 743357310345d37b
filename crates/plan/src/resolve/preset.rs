//! What a preset stands for, laid into a plan beside what is named there.

use crate::{Factor, PresetFacts, PresetUse, RawLevel, RawPlan};

impl RawPlan {
    /// The plan with a preset's factors in it. What the plan names itself counts: a variable of the
    /// preset that is named beside it is left to what is named, and levels of `variables` come after
    /// the preset's.
    pub fn with_preset(mut self, facts: &PresetFacts) -> RawPlan {
        let mut overridden = Vec::new();
        let mut added = Vec::new();
        for factor in self.factors.keys().filter_map(|word| word.parse::<Factor>().ok()) {
            match &factor {
                Factor::Variable { name } if facts.has(name) => overridden.push(name.clone()),
                // It is what the preset is for.
                Factor::Workload => {}
                _ => added.push(factor),
            }
        }
        let factors = facts.factors(&overridden);
        for (factor, levels) in &factors {
            let mut all: Vec<RawLevel> =
                levels.iter().map(|level| RawLevel::Word(level.0.clone())).collect();
            let named = self.factors.remove(&factor.to_string()).unwrap_or_default();
            all.extend(named.into_iter().filter(|level| !all.contains(level)).collect::<Vec<_>>());
            self.factors.insert(factor.to_string(), all);
        }
        self.preset_use = Some(PresetUse {
            preset: facts.preset,
            server: facts.server.clone(),
            factors,
            left_out: facts.left_out.clone(),
            overridden,
            added,
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::Preset;

    fn facts(sets: &[&str], fixed: &[(&str, &str)]) -> PresetFacts {
        PresetFacts {
            preset: Preset::Capacity,
            server: "MariaDB 10.11".to_owned(),
            fixed: fixed
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            sets: sets.iter().map(|text| text.parse().unwrap()).collect(),
            left_out: Vec::new(),
        }
    }

    fn words(raw: &RawPlan, factor: &str) -> Vec<String> {
        raw.factors.get(factor).into_iter().flatten().map(RawLevel::text).collect()
    }

    fn named(factor: &str, levels: &[&str]) -> RawPlan {
        let levels = levels.iter().map(|text| RawLevel::Word((*text).to_owned())).collect();
        RawPlan { factors: [(factor.to_owned(), levels)].into(), ..RawPlan::default() }
    }

    #[test]
    fn one_variable_is_a_factor_of_its_own_and_several_are_set_together() {
        let raw = RawPlan::default().with_preset(&facts(&["a: x=1", "b: x=2"], &[("log", "on")]));
        assert_eq!(words(&raw, "server.x"), ["1", "2"]);
        assert_eq!(words(&raw, "server.log"), ["on"]);
        let raw = RawPlan::default().with_preset(&facts(&["a: x=1+y=1", "b: x=2+y=1"], &[]));
        assert_eq!(words(&raw, "variables"), ["a: x=1+y=1", "b: x=2+y=1"]);
    }

    #[test]
    fn what_is_named_beside_a_preset_counts_and_is_told() {
        let facts = facts(&["a: x=1+y=1", "b: x=2+y=1", "c: x=1+y=2"], &[("log", "on")]);
        let raw = named("server.y", &["7"]).with_preset(&facts);
        let used = raw.preset_use.as_ref().unwrap();
        assert_eq!(used.overridden, ["y"]);
        assert!(used.added.is_empty());
        assert_eq!(words(&raw, "server.y"), ["7"]);
        assert_eq!(words(&raw, "server.x"), ["1", "2"], "c is a without y");
        let raw = named("variables", &["mine: x=9"]).with_preset(&facts);
        assert_eq!(words(&raw, "variables").len(), 4);
        assert_eq!(words(&raw, "variables")[3], "mine: x=9");
        assert_eq!(raw.preset_use.unwrap().added, [Factor::Variables]);
        let raw = named("scheduler", &["none"]).with_preset(&facts);
        assert_eq!(raw.preset_use.unwrap().added, [Factor::Scheduler]);
    }
}
