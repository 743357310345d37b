//! The levels that are named, and whether they can be set.

use crate::{Factor, Level, Offer, RawPlan, Refusal, Role};
use std::collections::BTreeMap;
use workload::WordError;

impl RawPlan {
    /// The schedulers are compared when nothing is named: without the right to set them, nothing would be.
    pub(super) fn check_compares(&self, offer: &Offer) -> Result<(), WordError> {
        match offer.missing.get(&Factor::Scheduler) {
            Some(reason @ Refusal::NotPermitted { .. }) if self.factors.is_empty() => {
                Err(WordError::new(format!(
                    "nothing is named, which compares the schedulers, and they cannot be set: {reason}; or name \
                     what needs no such right, such as --sync direct,fdatasync"
                )))
            }
            _ => Ok(()),
        }
    }

    /// An error when factors are named that cannot be set here: a comparison without them is another one than was
    /// asked for.
    fn check_settable(&self, offer: &Offer) -> Result<(), WordError> {
        let mut unset = Vec::new();
        for word in self.factors.keys() {
            let factor: Factor = word.parse()?;
            let follows = match &factor {
                Factor::Tunable { .. } => &Factor::Scheduler,
                other => other,
            };
            if let Some(reason) = offer.missing.get(follows) {
                unset.push(format!("{factor} cannot be set here: {reason}"));
            }
        }
        match unset.is_empty() {
            true => Ok(()),
            false => Err(WordError::new(format!(
                "{}; a factor that is left out is not compared",
                unset.join("; ")
            ))),
        }
    }

    /// The factors asked for with their levels.
    #[allow(clippy::type_complexity)]
    pub(super) fn levels(&self, offer: &Offer) -> Result<Vec<(Factor, Vec<Level>)>, WordError> {
        self.check_settable(offer)?;
        let mut levels: BTreeMap<Factor, Vec<Level>> = BTreeMap::new();
        for (word, written) in &self.factors {
            let factor: Factor = word.parse()?;
            let mut all: Vec<Level> = Vec::new();
            for text in written.iter().map(crate::RawLevel::text) {
                let more = match (text.as_str(), offer.all.get(&factor)) {
                    ("all", Some(every)) => every.clone(),
                    ("all", None) => {
                        return Err(WordError::new(format!(
                            "'all' stands for nothing with {factor}: name the levels"
                        )));
                    }
                    _ => vec![factor.level(&text)?],
                };
                all.extend(
                    more.into_iter().filter(|level| !all.contains(level)).collect::<Vec<_>>(),
                );
            }
            if all.is_empty() {
                return Err(WordError::new(format!("factor {factor} has no levels")));
            }
            levels.insert(factor, all);
        }
        Ok(levels.into_iter().collect())
    }

    /// The baseline's level of each factor: what was asked for, else what the host has, else the
    /// first.
    pub(super) fn baseline_levels(
        &self,
        levels: &[(Factor, Vec<Level>)],
        offer: &Offer,
    ) -> Result<BTreeMap<Factor, Level>, WordError> {
        let mut baseline = BTreeMap::new();
        for (factor, all) in levels {
            let current = match factor.role() {
                Role::HostSetting => offer.current.get(factor).cloned(),
                Role::Choice | Role::Condition => None,
            };
            baseline.insert(factor.clone(), current.unwrap_or_else(|| all[0].clone()));
        }
        for (word, written) in &self.baseline {
            let factor: Factor = word.parse()?;
            let level = factor.level(&written.text())?;
            if !baseline.contains_key(&factor) {
                return Err(WordError::new(format!(
                    "the baseline names {factor}, which is not compared: give it levels, or leave it \
                     out"
                )));
            }
            baseline.insert(factor, level);
        }
        Ok(baseline)
    }
}
