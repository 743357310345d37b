//! Conditions whose decisions are alike but for their figures, so that one sentence tells of all of them.

use crate::{Analysis, Choice, Decision, Group, LessDurable, Metric, Verdict, decide};
use plan::{Factor, Level, Loss};
use record::Run;
use std::collections::BTreeSet;

/// A decision that holds under one condition or several.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedDecision {
    /// The conditions, by their place in [`Analysis::groups`], each with its own decision: these differ in
    /// figures alone.
    pub decisions: Vec<(usize, Decision)>,
    /// The same conditions by their levels; together all of these. Empty when they are all that the run
    /// has.
    pub combinations: Vec<Vec<FactorLevels>>,
}

/// The levels that a factor has in some conditions; a factor that has all of its levels is not named.
#[derive(Clone, Debug, PartialEq)]
pub struct FactorLevels {
    /// The factor.
    pub factor: Factor,
    /// Its levels, in the order of the plan.
    pub levels: Vec<Level>,
    /// No level of the plan lies between the first and the last and is not among them.
    pub unbroken: bool,
}

/// What tells one decision from another, apart from its figures.
#[derive(PartialEq)]
struct Likeness<'a> {
    choice: Choice,
    baseline: &'a str,
    taken: Option<&'a str>,
    /// On the figure that it was not taken for.
    other: Option<Verdict>,
    less_durable: Option<(&'a str, &'a BTreeSet<Loss>, Metric)>,
}

fn likeness<'a>(group: &'a Group, decision: &Decision) -> Likeness<'a> {
    let summary = |wanted: usize| {
        let cell = group.cells.iter().find(|cell| cell.summary.cell == wanted)?;
        Some((cell, &cell.summary))
    };
    let taken = summary(decision.cell);
    let other = match decision.choice {
        Choice::Take(Metric::Throughput) => Some(Metric::P99),
        Choice::Take(_) => Some(Metric::Throughput),
        Choice::Keep(_) => None,
    };
    let verdict = |metric| Some(taken?.0.comparison(metric)?.verdict);
    let less_durable = |less: LessDurable| {
        let (_, summary) = summary(less.cell)?;
        Some((summary.phrase.as_str(), &summary.losses, less.metric))
    };
    Likeness {
        choice: decision.choice,
        baseline: group.baseline.phrase.as_str(),
        taken: taken.map(|(_, summary)| summary.phrase.as_str()),
        other: other.and_then(verdict),
        less_durable: decision.less_durable.and_then(less_durable),
    }
}

/// The decisions of a run, each with the conditions that share it, in the order of the first of these.
pub fn shared_decisions(run: &Run, analysis: &Analysis) -> Vec<SharedDecision> {
    let groups = &analysis.groups;
    let mut alike: Vec<(Likeness, Vec<(usize, Decision)>)> = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        let decision = decide(run, group);
        let likeness = likeness(group, &decision);
        match alike.iter_mut().find(|(other, _)| *other == likeness) {
            Some((_, decisions)) => decisions.push((place, decision)),
            None => alike.push((likeness, vec![(place, decision)])),
        }
    }
    let space = Space::of(run, analysis);
    let shared = |decisions: Vec<(usize, Decision)>| SharedDecision {
        combinations: space.combinations(decisions.iter().map(|(place, _)| *place).collect()),
        decisions,
    };
    alike.into_iter().map(|(_, decisions)| shared(decisions)).collect()
}

/// All conditions of a run, by their levels.
struct Space {
    /// Each factor with its levels, in the order of the plan.
    factors: Vec<(Factor, Vec<Level>)>,
    /// Of each condition the level of each factor, by its place in that order.
    conditions: Vec<Vec<usize>>,
}

/// Levels of each factor, and every combination of them.
type Combination = Vec<BTreeSet<usize>>;

impl Space {
    fn of(run: &Run, analysis: &Analysis) -> Space {
        let mut factors: Vec<(Factor, Vec<Level>)> =
            run.plan.conditions().into_iter().map(|factor| (factor, Vec::new())).collect();
        let mut conditions = Vec::new();
        for group in &analysis.groups {
            let cell = &run.plan.cells[group.baseline.cell];
            let place = |(factor, levels): &mut (Factor, Vec<Level>)| {
                // A factor that a condition lacks has a level without a name.
                let level = cell.level(factor).cloned().unwrap_or_else(|| Level(String::new()));
                levels.iter().position(|other| *other == level).unwrap_or_else(|| {
                    levels.push(level);
                    levels.len() - 1
                })
            };
            conditions.push(factors.iter_mut().map(place).collect());
        }
        Space { factors, conditions }
    }

    /// Some of the conditions as few combinations of levels: each begins with the first condition that none
    /// has yet, and takes in whatever it can. Where the order of factors matters, the largest is taken.
    fn combinations(&self, wanted: BTreeSet<usize>) -> Vec<Vec<FactorLevels>> {
        if wanted.len() == self.conditions.len() {
            return Vec::new();
        }
        let mut left = wanted.clone();
        let mut found = Vec::new();
        while let Some(first) = left.first().copied() {
            let orders = (0..self.factors.len()).map(|start| self.grown(first, start, &wanted));
            let size = |combination: &Combination| self.within(combination).count();
            let Some(largest) = orders.max_by_key(size) else { break };
            for condition in self.within(&largest) {
                left.remove(&condition);
            }
            found.push(self.named(&largest));
        }
        found
    }

    /// A condition and as many levels as can be added to it, beginning with the factor at `start`, without
    /// taking in a condition that is not wanted.
    fn grown(&self, condition: usize, start: usize, wanted: &BTreeSet<usize>) -> Combination {
        let first = &self.conditions[condition];
        let mut grown: Combination = first.iter().map(|level| BTreeSet::from([*level])).collect();
        let count = self.factors.len();
        for factor in (0..count).map(|offset| (start + offset) % count) {
            for level in 0..self.factors[factor].1.len() {
                let mut with = grown.clone();
                with[factor] = BTreeSet::from([level]);
                let mut added = self.within(&with).peekable();
                if added.peek().is_some() && added.all(|condition| wanted.contains(&condition)) {
                    grown[factor].insert(level);
                }
            }
        }
        grown
    }

    fn within(&self, combination: &Combination) -> impl Iterator<Item = usize> {
        let is_within = move |levels: &&Vec<usize>| {
            levels.iter().zip(combination).all(|(level, allowed)| allowed.contains(level))
        };
        let all = self.conditions.iter().enumerate();
        all.filter(move |(_, levels)| is_within(levels)).map(|(place, _)| place)
    }

    fn named(&self, combination: &Combination) -> Vec<FactorLevels> {
        let named = |((factor, all), levels): (&(Factor, Vec<Level>), &BTreeSet<usize>)| {
            let (first, last) = (levels.first()?, levels.last()?);
            (levels.len() < all.len()).then(|| FactorLevels {
                factor: factor.clone(),
                levels: levels.iter().map(|level| all[*level].clone()).collect(),
                unbroken: last - first + 1 == levels.len(),
            })
        };
        self.factors.iter().zip(combination).filter_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients 1, 4, 16 and 64, depth 1 and 16.
    fn space() -> Space {
        let level = |text: &&str| Level((*text).to_owned());
        let clients = ["1", "4", "16", "64"].iter().map(level).collect();
        let depths = ["1", "16"].iter().map(level).collect();
        let conditions = (0..4).flat_map(|c| (0..2).map(move |d| vec![c, d])).collect();
        Space { factors: vec![(Factor::Clients, clients), (Factor::Depth, depths)], conditions }
    }

    fn spelled(places: impl IntoIterator<Item = usize>) -> Vec<String> {
        let found = space().combinations(places.into_iter().collect());
        let of = |levels: &FactorLevels| {
            let words: Vec<&str> = levels.levels.iter().map(|level| level.0.as_str()).collect();
            let join = if levels.unbroken { "-" } else { "," };
            format!("{} {}", levels.factor, words.join(join))
        };
        found.iter().map(|one| one.iter().map(of).collect::<Vec<_>>().join("; ")).collect()
    }

    #[test]
    fn conditions_are_told_by_few_combinations_of_levels() {
        assert_eq!(spelled(0..8), Vec::<String>::new());
        assert_eq!(spelled([0]), ["clients 1; depth 1"]);
        // All depths: depth goes without saying.
        assert_eq!(spelled(0..6), ["clients 1-4-16"]);
        assert_eq!(spelled([0, 1, 6, 7]), ["clients 1,64"]);
        // Depth 1 at any number of clients, and all of 64 clients.
        assert_eq!(spelled([0, 2, 4, 6, 7]), ["depth 1", "clients 64"]);
        // The two corners have nothing in common.
        assert_eq!(spelled([0, 7]), ["clients 1; depth 1", "clients 64; depth 16"]);
    }

    #[test]
    fn every_choice_of_conditions_is_told_exactly() {
        let space = space();
        for bits in 1u32..255 {
            let wanted: BTreeSet<usize> = (0..8).filter(|place| bits & (1 << place) != 0).collect();
            let told = space.combinations(wanted.clone());
            let is_told = |place: &usize| {
                told.iter().any(|levels| {
                    levels.iter().all(|it| {
                        let factor = space.factors.iter().position(|(f, _)| *f == it.factor);
                        let (_, all) = &space.factors[factor.unwrap()];
                        it.levels.contains(&all[space.conditions[*place][factor.unwrap()]])
                    })
                })
            };
            assert_eq!((0..8).filter(is_told).collect::<BTreeSet<_>>(), wanted);
        }
    }
}
