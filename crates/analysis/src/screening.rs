//! Screening: which settings of a large matrix could still win, over all conditions.
//!
//! A *setting* is what is compared, with a cell under each condition; its figure is the mean over the conditions
//! of the logarithm of throughput, so that each condition counts alike. The first round measures a fraction of
//! the cells, from which the effects of levels are estimated ([`effects`]); the second those that are missing of
//! the settings that are left; the rounds after it every cell of these. A baseline is in every round, and what
//! ran in different rounds is compared by how far each is from the baseline of its round. After each round a
//! setting runs no more where
//!
//! - its whole interval against the leader lies below it: by its own trials, or after the first round by the
//!   effects. Intervals are corrected for settings and looks;
//! - the next round would take more than half of the trials that are left, and more than the leader, one other
//!   and the baseline: then those that are least likely to win make room. Nothing is shown of them, and that is
//!   said.

mod effects;

pub use effects::Effect;

use crate::{
    Correction, Metric, Verdict,
    blocks::logs,
    comparison::verdict,
    estimate::{mean, squares},
    t_quantile,
};
use effects::Model;
use plan::Setting;
use record::{AsideCause, EventKind, Run, TrialId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Where a screening stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Screening {
    /// The settings, the likely winner first.
    pub settings: Vec<ScreenedSetting>,
    /// What changing a level does, over all conditions; what two factors do together. The largest first.
    pub effects: Vec<Effect>,
    /// Cells of the plan.
    pub cells: usize,
    /// Cells with a trial that counts.
    pub cells_seen: usize,
    /// Conditions that all count alike.
    pub conditions: usize,
    /// Whether no setting that is left could beat the leader by more than the margin, and it is known how the
    /// leader stands to the baseline.
    pub decided: bool,
}

/// A setting in a screening.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScreenedSetting {
    /// Its levels, for tables.
    pub label: String,
    /// Its cells by condition; `None` where it cannot be.
    pub cells: Vec<Option<usize>>,
    /// Whether it is the baselines'.
    pub baseline: bool,
    /// How many of its cells have a trial that counts.
    pub cells_seen: usize,
    /// How it stands.
    pub standing: ScreenStanding,
    /// Its throughput over the leader's, mean over the conditions; `None` where too little is known.
    pub to_leader: Option<ScreenRatio>,
    /// Its throughput over the baseline's.
    pub to_baseline: Option<ScreenRatio>,
}

/// How a setting stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScreenStanding {
    /// The likely winner.
    Leads,
    /// It is not shown to be worse than the leader, and was measured to the end.
    Left,
    /// It was set aside.
    Aside(AsideCause),
}

/// One setting's throughput over another's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ScreenRatio {
    /// The geometric mean over the conditions.
    pub ratio: f64,
    /// The interval's lower end, corrected for settings and looks.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Whether effects predict it; else trials of both have shown it.
    pub predicted: bool,
    /// What may be said of it.
    pub verdict: Verdict,
}

impl Screening {
    /// Of what a run has recorded so far; `None` where it screens nothing or has no trial that counts.
    pub fn of(run: &Run) -> Option<Screening> {
        Race::of(run)?.standing()
    }

    /// The cells to set aside after the last round, by cause.
    pub fn set_aside(run: &Run) -> Vec<(AsideCause, Vec<usize>)> {
        Race::of(run).map_or_else(Vec::new, |race| race.set_aside())
    }

    /// Whether trials show the likely winner to be better than the baseline, as the mean over all conditions.
    pub fn leader_is_better(&self) -> bool {
        let to_baseline = self.leader().to_baseline;
        to_baseline.is_some_and(|it| !it.predicted && it.verdict == Verdict::Better)
    }

    /// The likely winner.
    pub fn leader(&self) -> &ScreenedSetting {
        &self.settings[0]
    }
}

/// A difference of two logarithms, and what its interval is made of.
#[derive(Clone, Copy, Debug)]
struct Difference {
    mean: f64,
    std_err: f64,
    freedom: usize,
    predicted: bool,
}

/// Squared deviations from means, and how many of them are free.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    squares: f64,
    freedom: usize,
}

impl Spread {
    fn add(&mut self, values: impl Iterator<Item = f64>) {
        let values: Vec<f64> = values.collect();
        self.squares += squares(&values);
        self.freedom += values.len().saturating_sub(1);
    }

    fn variance(self) -> f64 {
        if self.freedom > 0 { self.squares / self.freedom as f64 } else { f64::INFINITY }
    }
}

/// The variance of a difference of two mean distances from the baseline, over that of a difference of two trials
/// of one round. A setting's own trials count by its number of rounds; the baseline's by how much more a round
/// weighs in one mean than in the other: nothing where both have the same rounds. Of the baseline itself the
/// distance is 0, whatever its trials.
fn variance_over_that_of_a_pair(
    one: Option<&BTreeMap<u32, f64>>,
    other: Option<&BTreeMap<u32, f64>>,
) -> f64 {
    let weight = |of: Option<&BTreeMap<u32, f64>>, round: &u32| {
        of.filter(|rounds| rounds.contains_key(round)).map_or(0.0, |it| 1.0 / it.len() as f64)
    };
    let rounds: BTreeSet<&u32> =
        [one, other].into_iter().flatten().flat_map(BTreeMap::keys).collect();
    let square = |round: &&u32| {
        let (a, b) = (weight(one, round), weight(other, round));
        a.powi(2) + b.powi(2) + (a - b).powi(2)
    };
    rounds.iter().map(square).sum::<f64>() / 2.0
}

struct Race<'a> {
    run: &'a Run,
    settings: Vec<Setting>,
    /// The baselines' setting, by its place.
    baseline: usize,
    /// The logarithm of throughput by cell and round.
    logs: BTreeMap<usize, BTreeMap<u32, f64>>,
    /// What the first round says of effects; without enough of it, none.
    model: Option<Model>,
    correction: Correction,
    /// Why each setting was set aside, if it was.
    aside: Vec<Option<AsideCause>>,
}

impl<'a> Race<'a> {
    fn of(run: &'a Run) -> Option<Race<'a>> {
        if !run.plan.screens() {
            return None;
        }
        let settings = run.plan.settings();
        let baseline = settings.iter().position(|setting| setting.baseline)?;
        let logs = (0..run.plan.cells.len())
            .map(|cell| {
                let by_round = logs(run, Metric::Throughput, cell);
                (cell, by_round.into_iter().map(|((round, _), log)| (round, log)).collect())
            })
            .collect();
        let mut aside = vec![None; settings.len()];
        for event in &run.events {
            if let EventKind::SetAside { cells, cause } = &event.kind {
                let of =
                    |setting: &Setting| setting.cells.iter().flatten().any(|c| cells.contains(c));
                for (place, setting) in settings.iter().enumerate() {
                    if of(setting) && aside[place].is_none() {
                        aside[place] = Some(*cause);
                    }
                }
            }
        }
        let share = run.plan.timing.share_of_look(run.rounds());
        let cells = settings.len().saturating_sub(1);
        let correction = Correction { cells, share, freedom: 1.0 };
        let mut race = Race { run, settings, baseline, logs, model: None, correction, aside };
        race.model = Model::of(&run.plan, &race.first_round());
        Some(race)
    }

    /// Cells of the first round, with their logarithms.
    fn first_round(&self) -> Vec<(usize, f64)> {
        self.logs.iter().filter_map(|(cell, logs)| Some((*cell, *logs.get(&0)?))).collect()
    }

    /// One setting less another by their own trials: in each condition the difference of their distances from the
    /// baseline, each a mean over the rounds that it has; then the mean over the conditions. Conditions differ
    /// for good and are no noise. Where both have the same rounds, the error is from how their difference varies
    /// from round to round: what a round does to both is not in it. Elsewhere it is from how their distances from
    /// the baseline vary, or where none was measured twice, from how the baselines do.
    fn measured(&self, one: usize, other: usize) -> Option<Difference> {
        let mut means = Vec::new();
        let (mut alike, mut apart) = (Spread::default(), Spread::default());
        let (mut weight_alike, mut weight_apart) = (0.0, 0.0);
        for condition in 0..self.settings[one].cells.len() {
            let Some(cells) = self.pair(one, other, condition) else { continue };
            let [rounds, others] = cells.map(|cell| self.rounds_of(cell, condition));
            if rounds.is_empty() || others.is_empty() {
                return None;
            }
            means.push(mean(rounds.values()) - mean(others.values()));
            let own = [(one, &rounds), (other, &others)];
            let own = own.map(|(setting, rounds)| (setting != self.baseline).then_some(rounds));
            own.into_iter().flatten().for_each(|rounds| apart.add(rounds.values().copied()));
            let weight = variance_over_that_of_a_pair(own[0], own[1]);
            if own.contains(&None) || rounds.keys().eq(others.keys()) {
                weight_alike += weight;
                let both = rounds.iter().filter_map(|(round, log)| Some(log - others.get(round)?));
                alike.add(both);
            } else {
                weight_apart += weight;
            }
        }
        if alike.freedom == 0 {
            (weight_alike, weight_apart) = (0.0, weight_alike + weight_apart);
        }
        if apart.freedom == 0 {
            apart = self.noise_of_baselines();
        }
        let parts = [(weight_alike, alike), (weight_apart, apart)];
        let parts = parts.into_iter().filter(|(weight, _)| *weight > 0.0);
        let variance: f64 = parts.clone().map(|(weight, noise)| weight * noise.variance()).sum();
        let conditions = means.len() as f64;
        (conditions > 0.0).then(|| Difference {
            mean: means.iter().sum::<f64>() / conditions,
            std_err: variance.sqrt() / conditions,
            freedom: parts.map(|(_, noise)| noise.freedom).min().unwrap_or(0),
            predicted: false,
        })
    }

    /// The cells of two settings under a condition; `None` where one of them cannot be.
    fn pair(&self, one: usize, other: usize, condition: usize) -> Option<[usize; 2]> {
        Some([self.settings[one].cells[condition]?, self.settings[other].cells[condition]?])
    }

    /// How far a cell was from the baseline of its condition, in each round that has both.
    fn rounds_of(&self, cell: usize, condition: usize) -> BTreeMap<u32, f64> {
        let baseline = self.settings[self.baseline].cells[condition];
        let (Some(logs), Some(of_baseline)) =
            (self.logs.get(&cell), baseline.and_then(|cell| self.logs.get(&cell)))
        else {
            return BTreeMap::new();
        };
        logs.iter()
            .filter_map(|(round, log)| Some((*round, log - of_baseline.get(round)?)))
            .collect()
    }

    /// What two cells of a condition differ by from round to round, if they vary as the baselines do. What all
    /// conditions have in common of a round is left out; where drift differs by condition, it is in this.
    fn noise_of_baselines(&self) -> Spread {
        let mut noise = Spread::default();
        let cells: Vec<usize> =
            self.settings[self.baseline].cells.iter().flatten().copied().collect();
        let of = |cell: &usize, round: u32| self.logs.get(cell)?.get(&round).copied();
        for round in 1..self.run.rounds() {
            // Two trials of one cell in different rounds differ as two cells of one round do.
            let moved = |cell: &usize| Some(of(cell, round)? - of(cell, round - 1)?);
            noise.add(cells.iter().filter_map(moved));
        }
        noise
    }

    /// The same, from effects where trials do not tell.
    fn difference(&self, one: usize, other: usize) -> Option<Difference> {
        let measured = self.measured(one, other).filter(|it| it.freedom > 0);
        measured.or_else(|| {
            let model = self.model.as_ref()?;
            let (one, other) = (&self.settings[one], &self.settings[other]);
            let (mean, std_err) = model.difference(&one.cells, &other.cells)?;
            Some(Difference { mean, std_err, freedom: model.freedom(), predicted: true })
        })
    }

    fn ratio(&self, one: usize, other: usize) -> Option<ScreenRatio> {
        let difference = self.difference(one, other)?;
        let (low, high) = self.interval(difference);
        Some(ScreenRatio {
            ratio: difference.mean.exp(),
            low: low.exp(),
            high: high.exp(),
            predicted: difference.predicted,
            verdict: verdict(Metric::Throughput, low, high, self.run.plan.margin),
        })
    }

    fn interval(&self, difference: Difference) -> (f64, f64) {
        let reach = t_quantile(1.0 - self.correction.alpha() / 2.0, difference.freedom as f64);
        let half = match difference.std_err {
            0.0 => 0.0,
            std_err => reach * std_err,
        };
        (difference.mean - half, difference.mean + half)
    }

    fn is_left(&self, setting: usize) -> bool {
        self.aside[setting].is_none()
    }

    fn left(&self) -> Vec<usize> {
        (0..self.settings.len()).filter(|&setting| self.is_left(setting)).collect()
    }

    /// How far a setting is ahead of the baseline's: the mean, and how uncertain that is. After the second round
    /// all that are left have run under all conditions.
    fn score(&self, setting: usize) -> Option<(f64, f64)> {
        if setting == self.baseline {
            return Some((0.0, 0.0));
        }
        if self.run.rounds() > 1 {
            return self.measured(setting, self.baseline).map(|it| (it.mean, 0.0));
        }
        let cells = |setting: usize| &self.settings[setting].cells;
        self.model.as_ref()?.difference(cells(setting), cells(self.baseline))
    }

    fn leader(&self) -> Option<usize> {
        let scored = self.left().into_iter().filter_map(|it| Some((it, self.score(it)?.0)));
        scored.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(setting, _)| setting)
    }

    /// Trials that may still be made.
    fn trials_left(&self) -> u64 {
        let made: BTreeSet<TrialId> = self.run.trials.iter().map(|trial| trial.id).collect();
        self.run.plan.timing.trials.unwrap_or(0).saturating_sub(made.len() as u64)
    }

    fn set_aside(&self) -> Vec<(AsideCause, Vec<usize>)> {
        let Some(leader) = self.leader() else { return Vec::new() };
        let mut worse: BTreeMap<AsideCause, Vec<usize>> = BTreeMap::new();
        let mut left = Vec::new();
        for setting in self.left() {
            let against = (setting != leader).then(|| self.difference(setting, leader)).flatten();
            match against {
                Some(difference) if self.interval(difference).1 < 0.0 => {
                    let cause = match difference.predicted {
                        true => AsideCause::PredictedWorse,
                        false => AsideCause::Worse,
                    };
                    worse.entry(cause).or_default().push(setting);
                }
                _ => left.push(setting),
            }
        }
        let next = self.run.plan.screened_cells(self.run.rounds(), &self.run.dropped_cells());
        let takes = |setting: &usize| {
            let cells = self.settings[*setting].cells.iter().flatten();
            cells.filter(|cell| next.contains(cell)).count() as u64
        };
        // The baseline's cells run in any case, and the leader's.
        let (certain, mut others): (Vec<usize>, Vec<usize>) =
            left.into_iter().partition(|it| *it == leader || *it == self.baseline);
        let certain: u64 = certain.iter().map(takes).sum();
        // What is uncertain may be better than it looks.
        let hope = |setting: usize| {
            self.score(setting).map_or(f64::NEG_INFINITY, |(mean, std_err)| mean + std_err)
        };
        others.sort_by(|a, b| hope(*b).total_cmp(&hope(*a)).then(a.cmp(b)));
        let trials = self.trials_left();
        let mut used = certain;
        let has_room = |setting: &&usize| {
            // One other is worth more than half: a round of the leader alone finds no other winner.
            let most = if used == certain { trials } else { trials / 2 };
            used += takes(setting);
            used <= most
        };
        let room = others.iter().take_while(has_room).count();
        worse.insert(AsideCause::NoTime, others.split_off(room));
        let cells = |settings: Vec<usize>| -> Vec<usize> {
            let of = |setting: usize| self.settings[setting].cells.iter().flatten().copied();
            settings.into_iter().filter(|it| *it != self.baseline).flat_map(of).collect()
        };
        let by_cells = worse.into_iter().map(|(cause, settings)| (cause, cells(settings)));
        by_cells.filter(|(_, cells)| !cells.is_empty()).collect()
    }

    fn standing(&self) -> Option<Screening> {
        let leader = self.leader()?;
        let seen = |cell: &usize| self.logs.get(cell).is_some_and(|logs| !logs.is_empty());
        let of = |(place, setting): (usize, &Setting)| ScreenedSetting {
            label: setting.label(),
            cells: setting.cells.clone(),
            baseline: setting.baseline,
            cells_seen: setting.cells.iter().flatten().filter(|cell| seen(cell)).count(),
            standing: match self.aside[place] {
                _ if place == leader => ScreenStanding::Leads,
                Some(cause) => ScreenStanding::Aside(cause),
                None => ScreenStanding::Left,
            },
            to_leader: (place != leader).then(|| self.ratio(place, leader)).flatten(),
            to_baseline: (place != self.baseline)
                .then(|| self.ratio(place, self.baseline))
                .flatten(),
        };
        let mut settings: Vec<ScreenedSetting> = self.settings.iter().enumerate().map(of).collect();
        let order = |it: &ScreenedSetting| {
            let far = it.to_leader.map_or(f64::NEG_INFINITY, |ratio| ratio.ratio);
            let group = match it.standing {
                ScreenStanding::Leads => 0,
                ScreenStanding::Left => 1,
                ScreenStanding::Aside(_) => 2,
            };
            (group, far)
        };
        settings.sort_by(|a, b| {
            let (a, b) = (order(a), order(b));
            a.0.cmp(&b.0).then(b.1.total_cmp(&a.1))
        });
        let decided = self.is_decided(leader);
        Some(Screening {
            decided,
            effects: self
                .model
                .as_ref()
                .map_or_else(Vec::new, |model| model.effects(self.correction)),
            cells: self.run.plan.cells.len(),
            cells_seen: self.logs.keys().filter(|cell| seen(cell)).count(),
            conditions: self.run.plan.baselines().len(),
            settings,
        })
    }

    fn is_decided(&self, leader: usize) -> bool {
        let margin = self.run.plan.margin.ln_1p();
        let cannot_win = |setting: usize| {
            let by_trials = self.measured(setting, leader).filter(|it| it.freedom > 0);
            by_trials.is_some_and(|it| self.interval(it).1 <= margin)
        };
        let known = leader == self.baseline
            || self
                .ratio(leader, self.baseline)
                .is_some_and(|it| !it.predicted && it.verdict != Verdict::NotSettled);
        known && self.left().into_iter().all(|setting| setting == leader || cannot_win(setting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(all: &[u32]) -> BTreeMap<u32, f64> {
        all.iter().map(|round| (*round, 0.0)).collect()
    }

    #[test]
    fn a_difference_is_as_certain_as_the_rounds_that_it_is_made_from() {
        let [first, second, both] = [&[0][..], &[1], &[0, 1]].map(rounds);
        let variance = variance_over_that_of_a_pair;
        assert_eq!(variance(Some(&first), Some(&first)), 1.0, "one pair");
        assert_eq!(variance(Some(&both), Some(&both)), 0.5, "two pairs");
        assert_eq!(variance(Some(&both), None), 0.5, "two pairs with the baseline");
        assert_eq!(variance(Some(&first), Some(&second)), 2.0, "a pair with the baseline each");
        assert_eq!(variance(Some(&both), Some(&second)), 1.0);
    }
}
