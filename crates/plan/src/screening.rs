//! Screening: a fraction of a large matrix first, then the settings that could win.

use crate::{Cell, Factor, Level, Matrix, Plan, Role};
use random::Stream;
use std::collections::BTreeMap;

/// Levels of what is compared, with a cell under each condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its levels.
    pub levels: BTreeMap<Factor, Level>,
    /// Its cell under each condition, in the order of [`Plan::baselines`]; `None` where it cannot be.
    pub cells: Vec<Option<usize>>,
    /// Whether it is the baselines'.
    pub baseline: bool,
}

impl Plan {
    /// Its size, as screening sees it.
    pub(crate) fn matrix(&self) -> Matrix {
        let factors = self.competing();
        let settings = self.settings();
        let levels = factors.iter().map(|factor| {
            let mut all: Vec<_> = settings.iter().map(|it| it.levels.get(factor)).collect();
            all.sort_unstable();
            all.dedup();
            all.len()
        });
        Matrix { cells: self.cells.len(), conditions: self.baselines().len(), levels: levels.sum() }
    }

    /// What settings are told apart by: what is compared, or the conditions where nothing else varies.
    fn competing(&self) -> Vec<Factor> {
        let compared = self.compared();
        if compared.is_empty() { self.factors.clone() } else { compared }
    }

    /// The settings, that of the baselines first.
    pub fn settings(&self) -> Vec<Setting> {
        let competing = self.competing();
        let baselines = self.baselines();
        let mut places: BTreeMap<BTreeMap<&Factor, &Level>, usize> = BTreeMap::new();
        let mut settings: Vec<Setting> = Vec::new();
        for (place, cell) in self.cells.iter().enumerate() {
            let of_setting = |(factor, _): &(&Factor, &Level)| competing.contains(factor);
            let levels: BTreeMap<_, _> = cell.levels.iter().filter(of_setting).collect();
            let at = *places.entry(levels.clone()).or_insert_with(|| {
                let owned = levels.into_iter().map(|(f, l)| (f.clone(), l.clone())).collect();
                let cells = vec![None; baselines.len()];
                settings.push(Setting { levels: owned, cells, baseline: cell.baseline.is_none() });
                settings.len() - 1
            });
            let baseline = cell.baseline.unwrap_or(place);
            if let Ok(condition) = baselines.binary_search(&baseline) {
                settings[at].cells[condition] = Some(place);
            }
        }
        settings
    }

    /// The cells of a screening's first round: as many as half of its trials, among them the baselines. Each
    /// level of a factor is in about as many of them as any other, each pair of levels of two factors as well,
    /// and each setting is under about as many conditions: what main effects and interactions of two factors
    /// are estimated from.
    pub fn fraction(&self) -> Vec<usize> {
        let all = self.cells.len();
        let wanted = self.timing.trials.map_or(all, |trials| (trials / 2) as usize).min(all);
        if wanted == all {
            return (0..all).collect();
        }
        let mut balance = Balance::of(self);
        let mut chosen = self.baselines();
        chosen.iter().for_each(|cell| balance.take(*cell));
        let mut left: Vec<usize> = (0..all).filter(|cell| !chosen.contains(cell)).collect();
        // Of cells that are wanted alike, chance takes one.
        Stream::new(self.seed, "fraction").shuffle(&mut left);
        while chosen.len() < wanted {
            let costs = left.iter().map(|cell| balance.cost(*cell));
            let least = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((at, _)) = least else { break };
            let cell = left.swap_remove(at);
            balance.take(cell);
            chosen.push(cell);
        }
        chosen.sort_unstable();
        chosen
    }

    /// The cells of a round of a screening, without `dropped`: of the first the fraction; of the second those that
    /// the fraction does not have, so that each setting that is left has been under every condition, and the
    /// baselines; then all that are left.
    pub fn screened_cells(&self, round: u32, dropped: &[usize]) -> Vec<usize> {
        let fraction = self.fraction();
        let is_partial = fraction.len() < self.cells.len();
        let of_round = |cell: &usize| match round {
            0 => fraction.contains(cell),
            1 if is_partial => !fraction.contains(cell) || self.cells[*cell].baseline.is_none(),
            _ => true,
        };
        (0..self.cells.len()).filter(|it| !dropped.contains(it)).filter(of_round).collect()
    }
}

/// How often each setting, and each pair of levels, has been chosen.
struct Balance {
    /// The groups that each cell belongs to: its setting, its condition, and pairs of its levels.
    groups: Vec<Vec<usize>>,
    /// Cells of each group.
    size: Vec<f64>,
    chosen: Vec<f64>,
}

impl Balance {
    fn of(plan: &Plan) -> Balance {
        let mut names: BTreeMap<Vec<(&Factor, Option<&Level>)>, usize> = BTreeMap::new();
        let mut groups = Vec::new();
        for cell in &plan.cells {
            let mut of_cell: Vec<Vec<(&Factor, Option<&Level>)>> = Vec::new();
            let level = |factor: &'_ Factor| cell.levels.get(factor);
            for (at, one) in plan.factors.iter().enumerate() {
                let others = plan.factors[at + 1..].iter();
                of_cell.push(vec![(one, level(one))]);
                of_cell.extend(others.map(|other| vec![(one, level(one)), (other, level(other))]));
            }
            let condition = |factor: &&Factor| factor.role() == Role::Condition;
            let (conditions, settings): (Vec<&Factor>, Vec<&Factor>) =
                plan.factors.iter().partition(condition);
            for several in [conditions, settings] {
                of_cell.push(several.into_iter().map(|factor| (factor, level(factor))).collect());
            }
            of_cell.sort_unstable();
            of_cell.dedup();
            let places = of_cell.into_iter().map(|name| {
                let next = names.len();
                *names.entry(name).or_insert(next)
            });
            groups.push(places.collect::<Vec<usize>>());
        }
        let mut size = vec![0.0; names.len()];
        groups.iter().flatten().for_each(|group| size[*group] += 1.0);
        let chosen = vec![0.0; size.len()];
        Balance { groups, size, chosen }
    }

    /// How much of its groups has been chosen already.
    fn cost(&self, cell: usize) -> f64 {
        self.groups[cell].iter().map(|&group| self.chosen[group] / self.size[group]).sum()
    }

    fn take(&mut self, cell: usize) {
        self.groups[cell].iter().for_each(|&group| self.chosen[group] += 1.0);
    }
}

impl Setting {
    /// Its levels, for tables.
    pub fn label(&self) -> String {
        let factors: Vec<Factor> = self.levels.keys().cloned().collect();
        Cell { levels: self.levels.clone(), baseline: None }.label(&factors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Offer, RawLevel, RawPlan};
    use units::Bytes;

    fn plan(seed: u64) -> Plan {
        let words = |all: &[&str]| all.iter().map(|it| RawLevel::Word((*it).to_owned())).collect();
        let offer = Offer { default_size: Bytes::from_gib(1), ..Offer::default() };
        let raw = RawPlan {
            target: Some("/nowhere".to_owned()),
            screen: Some(true),
            rounds: Some(12),
            seed: Some(seed),
            factors: BTreeMap::from([
                ("scheduler".to_owned(), words(&["a", "b", "c", "d"])),
                ("nr_requests".to_owned(), words(&["1", "2", "3", "4"])),
                ("block_size".to_owned(), words(&["4k", "16k"])),
                ("clients".to_owned(), words(&["1", "8", "64"])),
            ]),
            ..RawPlan::default()
        };
        raw.resolve(&offer, &|_, _| None).unwrap()
    }

    #[test]
    fn settings_have_a_cell_under_each_condition() {
        let plan = plan(1);
        let settings = plan.settings();
        assert_eq!((plan.cells.len(), settings.len()), (96, 16));
        assert!(settings[0].baseline && settings.iter().filter(|it| it.baseline).count() == 1);
        assert!(settings.iter().all(|it| it.cells.iter().flatten().count() == 6));
        assert_eq!(plan.matrix(), Matrix { cells: 96, conditions: 6, levels: 8 });
    }

    #[test]
    fn a_fraction_has_each_level_and_pair_of_levels_about_as_often() {
        let plan = plan(1);
        let fraction = plan.fraction();
        assert_eq!(fraction.len(), 61);
        assert!(plan.baselines().iter().all(|it| fraction.contains(it)));
        let count = |factors: &[usize]| {
            let mut counts: BTreeMap<Vec<&Level>, usize> = BTreeMap::new();
            for cell in &fraction {
                let levels = &plan.cells[*cell].levels;
                let of = |place: &usize| &levels[&plan.factors[*place]];
                *counts.entry(factors.iter().map(of).collect()).or_default() += 1;
            }
            let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
            (counts.len(), *least, *most)
        };
        let sizes: Vec<usize> = (0..4).map(|factor| count(&[factor]).0).collect();
        for one in 0..4 {
            for other in 0..one {
                let (combinations, least, most) = count(&[one, other]);
                assert_eq!(combinations, sizes[one] * sizes[other], "every pair is in it");
                assert!(most <= 2 * least + 2, "{one} {other}: {least} to {most}");
            }
        }
        assert_eq!(fraction, plan.fraction());
        assert_ne!(fraction, self::plan(2).fraction());
    }

    #[test]
    fn after_two_rounds_what_is_left_has_been_under_every_condition() {
        let plan = plan(1);
        let settings = plan.settings();
        let dropped: Vec<usize> =
            settings[1..9].iter().flat_map(|it| it.cells.iter().flatten().copied()).collect();
        let first = plan.screened_cells(0, &[]);
        assert_eq!(first, plan.fraction());
        let second = plan.screened_cells(1, &dropped);
        assert!(second.iter().all(|cell| !dropped.contains(cell)));
        for setting in settings[9..].iter().chain(&settings[..1]) {
            for cell in setting.cells.iter().flatten() {
                let times = u8::from(first.contains(cell)) + u8::from(second.contains(cell));
                assert_eq!(times, if setting.baseline { 2 } else { 1 }, "{}", setting.label());
            }
        }
        assert_eq!(plan.screened_cells(2, &dropped).len(), plan.cells.len() - dropped.len());
    }
}
