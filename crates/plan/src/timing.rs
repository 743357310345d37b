//! How long trials last, and how many rounds fit a budget.

use crate::Matrix;
use serde::{Deserialize, Serialize};
use std::fmt;
use units::Nanos;

/// Rounds below which no verdict is given: with fewer, an interval corrected for several cells is
/// wider than any difference that matters.
pub const MIN_ROUNDS: u32 = 5;

/// Rounds when nothing is said.
const DEFAULT_ROUNDS: u32 = 8;

/// What the looks before the last may spend of the probability of a miss.
const EARLY_SHARE: f64 = 0.2;

/// More rounds than this narrow an interval less than longer trials do.
const MAX_ROUNDS: u32 = 30;

/// Rounds of trials in virtual time, where a budget of wall time ends them.
const MAX_VIRTUAL_ROUNDS: u32 = 320;

/// With less time, a pilot would take too much of it.
const MIN_PILOT_BUDGET: Nanos = Nanos::from_secs(60);

const DEFAULT_WARMUP: Nanos = Nanos::from_secs(1);
const DEFAULT_MEASURE: Nanos = Nanos::from_secs(5);
const MEASURE_SHORT: Nanos = Nanos::from_secs(2);
const MIN_MEASURE: Nanos = Nanos::from_secs(1);

/// A screening takes one trial where every cell in every round would take so many.
const SCREENED_SHARE: u64 = 10;

/// Rounds of a screening at the most: each is looked at, and looks cost width of interval.
const MAX_SCREENED_ROUNDS: u64 = 12;

/// Rounds that a budget buys before it buys longer trials.
const ROUNDS_WANTED: u64 = 12;

/// The time a trial takes besides warming up and measuring: settings, checks, recording.
pub const TRIAL_OVERHEAD: Nanos = Nanos::from_millis(300);

/// Whose time a budget is. They differ only in the simulated world, whose trials take virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetClock {
    /// This host's.
    #[default]
    Wall,
    /// That of the trials.
    Virtual,
}

/// How long a trial measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TrialLength {
    /// So long; where a trace is replayed, at the most.
    Time(Nanos),
    /// Until its trace has ended.
    Trace,
}

/// No trace of block I/O is as long as this.
const ENDLESS: Nanos = Nanos::from_secs(366 * 24 * 3600);

impl TrialLength {
    /// Of a trial that ends after `limit` in any case: what [`limit`](TrialLength::limit) says, read back.
    pub fn of_limit(limit: Nanos) -> TrialLength {
        if limit < ENDLESS { TrialLength::Time(limit) } else { TrialLength::Trace }
    }

    /// The time, where it is known before the trial.
    pub fn time(self) -> Option<Nanos> {
        match self {
            TrialLength::Time(time) => Some(time),
            TrialLength::Trace => None,
        }
    }

    /// The time after which a trial's clock ends it in any case.
    pub fn limit(self) -> Nanos {
        self.time().unwrap_or(ENDLESS)
    }
}

impl fmt::Display for TrialLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrialLength::Time(time) => time.fmt(f),
            TrialLength::Trace => f.write_str("its whole trace"),
        }
    }
}

/// How long, how often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// Time before measuring starts, in each trial.
    pub warmup: Nanos,
    /// Time measured, in each trial.
    pub measure: TrialLength,
    /// Rounds at the most.
    pub rounds: u32,
    /// The time that all may take together; with it, a run ends early once all is settled.
    pub budget: Option<Nanos>,
    /// Whose time the budget is.
    pub budget_clock: BudgetClock,
    /// The time a trial takes besides: settings, checks, recording; a database's server and data.
    pub overhead: Nanos,
    /// Whether a pilot chooses warm-up, measured time and rounds, in place of these.
    pub pilot: bool,
    /// The difference (0.02: 2 %) in throughput that the pilot shall choose rounds for.
    pub detect: Option<f64>,
    /// Trials at the most, where a fraction of the cells is looked at first and what cannot win runs no more.
    pub trials: Option<u64>,
}

/// What was asked for; anything may be left open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimingWish {
    /// Time before measuring starts.
    pub warmup: Option<Nanos>,
    /// Time measured.
    pub measure: Option<Nanos>,
    /// Rounds.
    pub rounds: Option<u32>,
    /// The time that all may take together.
    pub budget: Option<Nanos>,
    /// The same in the time of trials that take virtual time.
    pub virtual_budget: Option<Nanos>,
    /// Whether trials take virtual time.
    pub virtual_time: bool,
    /// Whether a few visits to cells before the first round can tell how long trials should be: those of
    /// jobs, not of databases or traces.
    pub pilot: bool,
    /// The difference in throughput that shall be found, in place of a budget.
    pub detect: Option<f64>,
    /// The time a trial takes besides, where that is not [`TRIAL_OVERHEAD`].
    pub overhead: Option<Nanos>,
    /// Whether to screen; unsaid, where every cell in every round does not fit the budget.
    pub screen: Option<bool>,
    /// What a screening's trials depend on.
    pub matrix: Matrix,
}

/// Why a plan's timing is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// No rounds, or too many.
    #[error("rounds must be between 1 and 10000")]
    Rounds,
    /// Trials are too short.
    #[error("a trial must measure for at least 100ms")]
    Measure,
    /// A virtual budget where time is the host's.
    #[error(
        "--virtual-budget is for the simulated world, whose time is not this host's: use --budget"
    )]
    NotVirtual,
    /// A difference to find, and the time it may take.
    #[error(
        "--detect asks for the time that a difference takes: leave out --budget, --rounds, --measure and \
         --warmup"
    )]
    DetectAndTime,
    /// A difference to find in every cell, and a screening.
    #[error("--detect asks for the time that a difference takes in every cell: leave out --screen")]
    DetectAndScreen,
    /// The budget does not allow a screening.
    #[error(
        "a budget of {budget} is too short to screen so many levels: it takes at least {trials} trials, \
         {needed}; name fewer levels or a larger --budget"
    )]
    ScreenBudget {
        /// The budget.
        budget: Nanos,
        /// The fewest trials.
        trials: u64,
        /// What would be enough.
        needed: Nanos,
    },
    /// Nothing tells how long a difference takes.
    #[error(
        "--detect takes a pilot, which only jobs on real or emulated storage have: use --budget; the report \
         says which difference it could have shown"
    )]
    NoPilot,
    /// Two budgets.
    #[error(
        "--budget and --virtual-budget both say how long a run may take: leave one of them out"
    )]
    TwoBudgets,
    /// The budget does not allow enough rounds.
    #[error(
        "a budget of {budget} is too short for {rounds} rounds of {slots} trials: it takes at least \
         {needed}; name fewer levels or a larger --budget"
    )]
    Budget {
        /// The budget.
        budget: Nanos,
        /// The fewest rounds.
        rounds: u64,
        /// Trials a round.
        slots: u64,
        /// What would be enough.
        needed: Nanos,
    },
}

impl Timing {
    /// Fits `wish` to `slots` trials a round, with `before` for preparation. The error says what
    /// does not fit and what would.
    pub fn fit(wish: TimingWish, slots: usize, before: Nanos) -> Result<Timing, TimingError> {
        if wish.rounds.is_some_and(|rounds| !(1..=10_000).contains(&rounds)) {
            return Err(TimingError::Rounds);
        }
        if wish.measure.is_some_and(|measure| measure < Nanos::from_millis(100)) {
            return Err(TimingError::Measure);
        }
        match wish.screen {
            Some(true) if wish.detect.is_some() => Err(TimingError::DetectAndScreen),
            Some(true) => Timing::fit_screening(wish, slots as u64, before),
            Some(false) => Timing::fit_every_cell(wish, slots, before),
            None => Timing::fit_every_cell(wish, slots, before).or_else(|error| match error {
                TimingError::Budget { .. } if wish.matrix.is_large() => {
                    Timing::fit_screening(wish, slots as u64, before)
                }
                other => Err(other),
            }),
        }
    }

    fn fit_every_cell(
        wish: TimingWish,
        slots: usize,
        before: Nanos,
    ) -> Result<Timing, TimingError> {
        if wish.detect.is_some() {
            return Timing::fit_detection(wish, slots, before);
        }
        match (wish.budget, wish.virtual_budget) {
            (Some(_), Some(_)) => return Err(TimingError::TwoBudgets),
            (None, Some(_)) if !wish.virtual_time => return Err(TimingError::NotVirtual),
            (None, Some(budget)) => {
                let fitted = Timing::fit_budget(wish, budget, slots.max(1) as u64, before)?;
                return Ok(Timing { budget_clock: BudgetClock::Virtual, ..fitted });
            }
            (Some(budget), None) if !wish.virtual_time => {
                return Timing::fit_budget(wish, budget, slots.max(1) as u64, before);
            }
            (_, None) => {}
        }
        // What a trial in virtual time takes of the host's is not known: the budget ends the run between
        // rounds.
        let most = if wish.budget.is_some() { MAX_VIRTUAL_ROUNDS } else { DEFAULT_ROUNDS };
        Ok(Timing {
            warmup: wish.warmup.unwrap_or(DEFAULT_WARMUP),
            measure: TrialLength::Time(wish.measure.unwrap_or(DEFAULT_MEASURE)),
            rounds: wish.rounds.unwrap_or(most),
            budget: wish.budget,
            budget_clock: BudgetClock::Wall,
            overhead: wish.overhead.unwrap_or(TRIAL_OVERHEAD),
            pilot: false,
            detect: None,
            trials: None,
        })
    }

    /// A difference that shall be found takes a pilot, and what it takes is known after that.
    fn fit_detection(wish: TimingWish, slots: usize, before: Nanos) -> Result<Timing, TimingError> {
        if wish.virtual_time || !wish.pilot {
            return Err(TimingError::NoPilot);
        }
        let named = [wish.budget, wish.virtual_budget, wish.measure, wish.warmup];
        if named.iter().any(Option::is_some) || wish.rounds.is_some() {
            return Err(TimingError::DetectAndTime);
        }
        let day = TimingWish { budget: Some(Nanos::from_secs(24 * 3600)), detect: None, ..wish };
        let fitted = Timing::fit_every_cell(day, slots, before)?;
        Ok(Timing { detect: wish.detect, ..fitted })
    }

    fn fit_budget(
        wish: TimingWish,
        budget: Nanos,
        slots: u64,
        before: Nanos,
    ) -> Result<Timing, TimingError> {
        let available = budget.saturating_sub(before);
        let overhead = wish.overhead.unwrap_or(TRIAL_OVERHEAD);
        let min_rounds = u64::from(wish.rounds.unwrap_or(MIN_ROUNDS));
        let room_of = |rounds: u64| {
            let trial = (available / (slots * rounds)).saturating_sub(overhead);
            let warmup = wish.warmup.unwrap_or_else(|| DEFAULT_WARMUP.min(trial / 4));
            (warmup, trial.saturating_sub(warmup))
        };
        // More rounds narrow an interval more than longer trials do, down to trials of two seconds.
        let short_enough = wish.measure.unwrap_or(MEASURE_SHORT);
        let rounds = match wish.rounds {
            Some(rounds) => u64::from(rounds),
            None => (min_rounds..=ROUNDS_WANTED)
                .rev()
                .find(|rounds| room_of(*rounds).1 >= short_enough)
                .unwrap_or(min_rounds),
        };
        let (warmup, room) = room_of(rounds);
        let measure = match wish.measure {
            Some(measure) => measure,
            // With a fixed number of rounds, longer trials are all that a budget can buy.
            None if wish.rounds.is_some() => room,
            None => room.min(DEFAULT_MEASURE),
        };
        if measure > room || measure < MIN_MEASURE.min(wish.measure.unwrap_or(MIN_MEASURE)) {
            let needed = before
                + (wish.measure.unwrap_or(MIN_MEASURE)
                    + wish.warmup.unwrap_or(MIN_MEASURE / 4)
                    + overhead)
                    * slots
                    * min_rounds;
            return Err(TimingError::Budget { budget, rounds: min_rounds, slots, needed });
        }
        let round = (warmup + measure + overhead) * slots;
        let fitting = (available.0 / round.0).clamp(1, u64::from(u32::MAX)) as u32;
        let rounds = wish.rounds.unwrap_or(fitting.min(MAX_ROUNDS));
        let measure = if wish.rounds.is_none() && wish.measure.is_none() && fitting > MAX_ROUNDS {
            let trial = available / (slots * u64::from(MAX_ROUNDS));
            trial.saturating_sub(warmup + overhead).min(Nanos::from_secs(60))
        } else {
            measure
        };
        Ok(Timing {
            warmup,
            measure: TrialLength::Time(measure),
            rounds,
            budget: Some(budget),
            budget_clock: BudgetClock::Wall,
            overhead,
            pilot: wish.pilot
                && !wish.virtual_time
                && budget >= MIN_PILOT_BUDGET
                && wish.rounds.is_none()
                && wish.measure.is_none()
                && wish.warmup.is_none(),
            detect: None,
            trials: None,
        })
    }

    /// A tenth of the trials that every cell in every round would take; with a budget of the trials' time, as
    /// many trials as it allows, and shorter ones before fewer.
    fn fit_screening(wish: TimingWish, slots: u64, before: Nanos) -> Result<Timing, TimingError> {
        let (budget, budget_clock) = match (wish.budget, wish.virtual_budget) {
            (Some(_), Some(_)) => return Err(TimingError::TwoBudgets),
            (None, Some(_)) if !wish.virtual_time => return Err(TimingError::NotVirtual),
            (None, Some(budget)) => (Some(budget), BudgetClock::Virtual),
            (budget, None) => (budget, BudgetClock::Wall),
        };
        let overhead = wish.overhead.unwrap_or(TRIAL_OVERHEAD);
        let every_cell = slots * u64::from(wish.rounds.unwrap_or(ROUNDS_WANTED as u32));
        let least = wish.matrix.least_trials();
        let wanted = (every_cell / SCREENED_SHARE).max(least);
        let default = (
            wish.warmup.unwrap_or(DEFAULT_WARMUP),
            wish.measure.unwrap_or(DEFAULT_MEASURE),
            wanted,
        );
        let of_trials = budget.filter(|_| !wish.virtual_time || wish.virtual_budget.is_some());
        let (warmup, measure, trials) = match of_trials {
            None => default,
            Some(budget) => {
                let available = budget.saturating_sub(before);
                let trial = (available / wanted).min(default.0 + default.1 + overhead);
                let warmup = wish.warmup.unwrap_or(DEFAULT_WARMUP.min(trial / 4));
                let room = trial.saturating_sub(warmup + overhead);
                let measure = wish.measure.unwrap_or(room.max(MIN_MEASURE));
                let trial = warmup + measure + overhead;
                let trials = (available.0 / trial.0).min(every_cell.max(least));
                if trials < least {
                    let needed = before + trial * least;
                    return Err(TimingError::ScreenBudget { budget, trials: least, needed });
                }
                (warmup, measure, trials)
            }
        };
        let after_first = trials - (trials / 2).min(wish.matrix.cells as u64);
        let smallest_round = 2 * wish.matrix.conditions.max(1) as u64;
        let rounds = (1 + after_first / smallest_round).clamp(2, MAX_SCREENED_ROUNDS) as u32;
        let (pilot, detect) = (false, None);
        let (measure, trials) = (TrialLength::Time(measure), Some(trials));
        let timing = Timing {
            warmup,
            measure,
            rounds,
            budget,
            budget_clock,
            overhead,
            pilot,
            detect,
            trials,
        };
        Ok(timing)
    }

    /// See [`crate::Plan::alternative`].
    pub(crate) fn alternative(&self, slots: usize, matrix: Matrix, before: Nanos) -> Option<Nanos> {
        let trial = self.trial()?;
        let every_cell = slots as u64 * ROUNDS_WANTED;
        let trials = match self.trials {
            Some(_) => every_cell,
            None if !matrix.is_large() || self.pilot => return None,
            None => (every_cell / SCREENED_SHARE).max(matrix.least_trials()),
        };
        Some(before + trial * trials)
    }

    /// How long a trial takes, with what it takes besides; `None` where its trace says it.
    pub fn trial(&self) -> Option<Nanos> {
        Some(self.warmup + self.measure.time()? + self.overhead)
    }

    /// How long `slots` trials a round take, at the most, with `before` for preparation; `None` where
    /// traces say it.
    pub fn total(&self, slots: usize, before: Nanos) -> Option<Nanos> {
        let trials = self.trials.unwrap_or(slots as u64 * u64::from(self.rounds));
        Some(Nanos(before.0.saturating_add(self.trial()?.0.saturating_mul(trials))))
    }

    /// The rounds after which it is looked whether all is settled, ascending; the last is
    /// [`Timing::rounds`]. Few, because every look costs width of interval: half of the rounds, a quarter,
    /// an eighth and so on, and [`MIN_ROUNDS`]. A screening looks after each: what it drops early is what it
    /// saves.
    pub fn looks(&self) -> Vec<u32> {
        if self.trials.is_some() {
            return (1..=self.rounds).collect();
        }
        let mut looks = vec![self.rounds];
        if self.budget.is_some() {
            let halves = std::iter::successors(Some(self.rounds), |rounds| Some(rounds / 2));
            looks.extend(halves.skip(1).take_while(|look| *look > MIN_ROUNDS));
            looks.extend((self.rounds > MIN_ROUNDS).then_some(MIN_ROUNDS));
            looks.reverse();
        }
        looks
    }

    /// The share of the probability of a miss that a look after so many rounds may spend. All looks before
    /// the last have [`EARLY_SHARE`] between them, because what is large is seen with little, and the last
    /// has to see what is small. A screening's looks have the same each.
    pub fn share_of_look(&self, rounds: u32) -> f64 {
        if self.trials.is_some() {
            return 1.0 / f64::from(self.rounds.max(1));
        }
        let early = self.looks().len() - 1;
        match (early, rounds >= self.rounds) {
            (0, _) => 1.0,
            (_, true) => 1.0 - EARLY_SHARE,
            (early, false) => EARLY_SHARE / early as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn says_what_would_fit() {
        let wish = TimingWish { budget: Some(Nanos::from_secs(10)), ..TimingWish::default() };
        let error = Timing::fit(wish, 20, Nanos::ZERO).unwrap_err().to_string();
        assert!(error.contains("5 rounds of 20 trials"), "{error}");
        assert!(error.contains("at least 2m 35s"), "{error}");
    }

    #[test]
    fn looks_end_with_the_last_round() {
        let timing = |rounds, budget| Timing {
            warmup: Nanos::ZERO,
            measure: TrialLength::Time(DEFAULT_MEASURE),
            rounds,
            budget,
            budget_clock: BudgetClock::Wall,
            overhead: TRIAL_OVERHEAD,
            pilot: false,
            detect: None,
            trials: None,
        };
        assert_eq!(timing(8, None).looks(), [8]);
        assert_eq!(timing(15, Some(Nanos::MAX)).looks(), [5, 7, 15]);
        assert_eq!(timing(80, Some(Nanos::MAX)).looks(), [5, 10, 20, 40, 80]);
        let shares = |timing: Timing| -> f64 {
            timing.looks().iter().map(|look| timing.share_of_look(*look)).sum()
        };
        for rounds in [5, 6, 15, 80] {
            assert!((shares(timing(rounds, Some(Nanos::MAX))) - 1.0).abs() < 1e-12);
            assert_eq!(shares(timing(rounds, None)), 1.0);
        }
        assert_eq!(timing(5, Some(Nanos::MAX)).looks(), [5]);
        assert_eq!(timing(6, Some(Nanos::MAX)).looks(), [5, 6]);
    }

    /// 96 cells: 16 settings of 4 and 4 levels under 6 conditions.
    const MATRIX: Matrix = Matrix { cells: 96, conditions: 6, levels: 8 };

    #[test]
    fn a_screening_is_a_tenth_of_every_cell() {
        let wish = TimingWish { screen: Some(true), matrix: MATRIX, ..TimingWish::default() };
        let fit = |wish| Timing::fit(wish, 102, Nanos::ZERO);
        let screened = fit(wish).unwrap();
        assert_eq!((screened.trials, screened.measure.time()), (Some(122), Some(DEFAULT_MEASURE)));
        let alternative = screened.alternative(102, MATRIX, Nanos::ZERO).unwrap();
        assert!(screened.total(102, Nanos::ZERO).unwrap() * 10 <= alternative);
        let every_cell = fit(TimingWish { screen: Some(false), ..wish }).unwrap();
        let screening = every_cell.alternative(102, MATRIX, Nanos::ZERO);
        assert_eq!(screening, screened.total(102, Nanos::ZERO));
        let shares: f64 = screened.looks().iter().map(|look| screened.share_of_look(*look)).sum();
        assert!((shares - 1.0).abs() < 1e-12);
        let detect = TimingWish { detect: Some(0.02), pilot: true, ..wish };
        assert_eq!(fit(detect), Err(TimingError::DetectAndScreen));
    }

    #[test]
    fn what_no_budget_can_run_in_full_is_screened() {
        let fit = |seconds, screen| {
            let budget = Some(Nanos::from_secs(seconds));
            let wish = TimingWish { budget, screen, matrix: MATRIX, ..TimingWish::default() };
            Timing::fit(wish, 102, Nanos::ZERO)
        };
        let five_minutes = fit(300, None).unwrap();
        assert!(five_minutes.total(102, Nanos::ZERO) <= Some(Nanos::from_secs(300)));
        // Trials are made shorter before they are made fewer.
        assert_eq!(five_minutes.trials, Some(122));
        assert!((MIN_MEASURE..DEFAULT_MEASURE).contains(&five_minutes.measure.time().unwrap()));
        assert!(fit(120, None).unwrap().trials < Some(122));
        let hour = fit(3600, None).unwrap();
        assert_eq!(hour.trials, None, "every cell fits");
        assert!(matches!(fit(300, Some(false)), Err(TimingError::Budget { .. })));
        assert!(matches!(fit(30, None), Err(TimingError::ScreenBudget { .. })));
    }

    #[test]
    fn a_budget_of_wall_time_does_not_bound_virtual_trials() {
        let minute = Some(Nanos::from_secs(60));
        let simulated = TimingWish { virtual_time: true, ..TimingWish::default() };
        let fit = |wish| Timing::fit(wish, 20, Nanos::ZERO);
        let wall = fit(TimingWish { budget: minute, ..simulated }).unwrap();
        assert_eq!(
            (wall.rounds, wall.measure),
            (MAX_VIRTUAL_ROUNDS, TrialLength::Time(DEFAULT_MEASURE))
        );
        assert_eq!((wall.budget, wall.budget_clock), (minute, BudgetClock::Wall));
        assert_eq!(wall.looks(), [5, 10, 20, 40, 80, 160, 320]);
        let hour = Some(Nanos::from_secs(3600));
        let virtual_time = fit(TimingWish { virtual_budget: hour, ..simulated }).unwrap();
        assert_eq!(virtual_time.budget_clock, BudgetClock::Virtual);
        assert!(virtual_time.total(20, Nanos::ZERO) <= hour);
        // What a trace takes is known by nobody, and a run file's number of it is read as that.
        let replay = Timing { measure: TrialLength::Trace, ..virtual_time };
        assert_eq!(replay.total(20, Nanos::ZERO), None);
        for length in [replay.measure, virtual_time.measure] {
            assert_eq!(TrialLength::of_limit(length.limit()), length);
        }
        let both = TimingWish { budget: minute, virtual_budget: hour, ..simulated };
        assert_eq!(fit(both), Err(TimingError::TwoBudgets));
        let real = TimingWish { virtual_budget: hour, ..TimingWish::default() };
        assert_eq!(fit(real), Err(TimingError::NotVirtual));
    }

    proptest! {
        #[test]
        fn what_fits_stays_within_the_budget(
            budget_s in 1u64..100_000,
            slots in 1usize..200,
            before_s in 0u64..100,
            rounds in prop::option::of(1u32..50),
        ) {
            let before = Nanos::from_secs(before_s);
            let budget = Nanos::from_secs(budget_s);
            let wish = TimingWish { budget: Some(budget), rounds, ..TimingWish::default() };
            if let Ok(timing) = Timing::fit(wish, slots, before) {
                prop_assert!(timing.total(slots, before) <= Some(budget), "{:?}", timing);
                prop_assert!(timing.measure.time() >= Some(MIN_MEASURE));
                prop_assert!(timing.rounds >= rounds.unwrap_or(MIN_ROUNDS));
            }
        }
    }
}
