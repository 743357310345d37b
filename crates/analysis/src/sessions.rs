//! Sessions of a run: what cannot change while a run goes on (the kernel, the server) is not interleaved
//! with anything, so that not a round but a session is one observation of it.
//!
//! A session's figure is the mean logarithm of a cell's trials in it. Two levels are compared by their
//! sessions' figures: the difference of the means, with Student's t interval from the variance within the
//! levels, pooled, of k₁ + k₂ − 2 degrees of freedom. Whatever else a boot brings (where things lie in
//! memory, which processor an interrupt goes to) is in that variance; what changed together with the
//! level is in the difference, and nothing here can tell it apart.

use crate::{
    Correction, Metric, Verdict,
    blocks::logs,
    comparison::verdict,
    estimate::{mean, squares},
    summary::label_of,
    t_quantile,
};
use record::{Aspect, EnvironmentChange, Run, SessionFactor};
use serde::Serialize;

/// What may be said of a run's sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionAnalysis {
    /// What differs on purpose.
    pub factor: SessionFactor,
    /// Its levels, in the order in which they were first run.
    pub levels: Vec<SessionLevel>,
    /// The sessions, in the order in which they ran.
    pub sessions: Vec<SessionSummary>,
    /// Whether all sessions of each level ran before the next level's: then time, too, is in the
    /// difference.
    pub in_order: bool,
    /// One for each condition.
    pub groups: Vec<SessionGroup>,
}

/// A level of what differs between sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionLevel {
    /// The kernel's release, or the server's name and version; with its build where another level has the
    /// same.
    pub name: String,
    /// How many sessions have it.
    pub sessions: usize,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionSummary {
    /// Its level's place.
    pub level: usize,
    /// When it started, in seconds since 1970.
    pub started_at: i64,
    /// Rounds that have a trial.
    pub rounds: u32,
    /// What is another in it than in the first session, beside the level.
    pub also_changed: Vec<EnvironmentChange>,
}

/// Cells under the same conditions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionGroup {
    /// The conditions' levels, or nothing when there is only one condition.
    pub condition: String,
    /// The baseline of one session against that of another of the same level, by figure; nothing where
    /// no level has two sessions.
    pub floor: Vec<(Metric, SessionFloor)>,
    /// Every cell, the baseline first.
    pub cells: Vec<SessionCell>,
}

/// How far sessions of the same level differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SessionFloor {
    /// Degrees of freedom: sessions of levels that have several, less those levels.
    pub freedom: usize,
    /// Standard deviation of a session's figure, as the logarithm: about a share (0.02: 2 %).
    pub session: f64,
    /// What the noise of its trials would make of it, if sessions differed in nothing else.
    pub trials: f64,
}

/// A cell, level against level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionCell {
    /// The cell's index in the plan.
    pub cell: usize,
    /// The levels of what is compared within a session, for tables.
    pub label: String,
    /// Against the first level, by level and figure.
    pub comparisons: Vec<SessionComparison>,
}

/// A level against the first, in one figure of one cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SessionComparison {
    /// The level's place.
    pub level: usize,
    /// The figure.
    pub metric: Metric,
    /// Sessions of the first level, and of this one, in which it could be measured.
    pub sessions: (usize, usize),
    /// The figure under this level over that under the first.
    pub ratio: f64,
    /// The interval's lower end; 0 without one.
    pub low: f64,
    /// Its upper end; infinite without one.
    pub high: f64,
    /// What may be said.
    pub verdict: Verdict,
}

/// Fewer degrees of freedom have an interval in name only, as with fewer than three rounds.
const MIN_FREEDOM: usize = 2;

impl SessionAnalysis {
    /// Of a run; `None` where it has one session alone.
    pub fn of(run: &Run) -> Option<SessionAnalysis> {
        let factor = run.session_factor()?;
        let sessions = run.sessions();
        let (names, places) = levels(factor, &sessions);
        let levels: Vec<SessionLevel> = names
            .into_iter()
            .enumerate()
            .map(|(level, name)| SessionLevel {
                name,
                sessions: places.iter().filter(|place| **place == level).count(),
            })
            .collect();
        let compared = run.plan.cells.len() * (levels.len() - 1);
        let correction = Correction { cells: compared, ..Correction::ALONE };
        let groups = run
            .plan
            .baselines()
            .into_iter()
            .map(|baseline| group(run, &sessions, &places, baseline, correction))
            .collect();
        Some(SessionAnalysis {
            factor,
            in_order: places.is_sorted(),
            sessions: sessions
                .iter()
                .zip(&places)
                .map(|(session, level)| SessionSummary {
                    level: *level,
                    started_at: session.started_at,
                    rounds: session.rounds(),
                    also_changed: also_changed(factor, run, session),
                })
                .collect(),
            levels,
            groups,
        })
    }

    /// Whether every comparison of throughput and of the 99th percentile has a verdict.
    pub fn settled(&self) -> bool {
        let all = self.groups.iter().flat_map(|group| &group.cells);
        all.flat_map(|cell| &cell.comparisons)
            .filter(|comparison| comparison.metric != Metric::Fairness)
            .all(|comparison| comparison.verdict != Verdict::NotSettled)
    }

    /// The places of levels that have one session alone.
    pub fn run_once(&self) -> Vec<usize> {
        (0..self.levels.len()).filter(|level| self.levels[*level].sessions < 2).collect()
    }
}

impl SessionCell {
    /// The comparison of a level in one figure, if it could be made.
    pub fn comparison(&self, level: usize, metric: Metric) -> Option<&SessionComparison> {
        self.comparisons.iter().find(|it| it.level == level && it.metric == metric)
    }
}

/// The levels' names, and each session's level. Two that have the same name and were built otherwise are
/// two levels.
fn levels(factor: SessionFactor, sessions: &[Run]) -> (Vec<String>, Vec<usize>) {
    let of = |run: &Run| {
        let name = factor.level(&run.environment).unwrap_or_default();
        (name, factor.build(&run.environment).map(str::to_owned))
    };
    let mut all: Vec<(String, Option<String>)> = Vec::new();
    let places = sessions
        .iter()
        .map(|session| {
            let (name, build) = of(session);
            // Of a build that an older file does not name, nothing can be told.
            let known = all.iter().position(|(other, its)| {
                *other == name && (*its == build || its.is_none() || build.is_none())
            });
            known.unwrap_or_else(|| {
                all.push((name, build));
                all.len() - 1
            })
        })
        .collect();
    let names = all
        .iter()
        .map(|(name, build)| match (all.iter().filter(|(it, _)| it == name).count(), build) {
            (2.., Some(build)) => format!("{name} ({build})"),
            _ => name.clone(),
        })
        .collect();
    (names, places)
}

/// What changed beside the factor.
fn also_changed(factor: SessionFactor, first: &Run, session: &Run) -> Vec<EnvironmentChange> {
    let is_the_factor = |change: &EnvironmentChange| match (factor, change.aspect) {
        (SessionFactor::Kernel, Aspect::Kernel | Aspect::KernelBuild) => true,
        (SessionFactor::Kernel, Aspect::Package) => change.name == record::Fact::KERNEL_PACKAGE,
        (SessionFactor::Server, Aspect::Server) => true,
        _ => false,
    };
    let mut all = first.environment.changes(&session.environment);
    all.retain(|change| !is_the_factor(change));
    all
}

fn group(
    run: &Run,
    sessions: &[Run],
    places: &[usize],
    baseline: usize,
    correction: Correction,
) -> SessionGroup {
    let of_group =
        |cell: &usize| *cell == baseline || run.plan.cells[*cell].baseline == Some(baseline);
    let (condition, shown) = label_of(run, baseline);
    let cells = (0..run.plan.cells.len())
        .filter(of_group)
        .map(|cell| SessionCell {
            cell,
            label: run.plan.cells[cell].label(&shown),
            comparisons: comparisons(run, sessions, places, cell, correction),
        })
        .collect();
    let floor = Metric::ALL
        .into_iter()
        .filter_map(|metric| Some((metric, floor(sessions, places, metric, baseline)?)))
        .collect();
    SessionGroup { condition, floor, cells }
}

/// A figure of a cell in each session that has it, with the session's level.
fn figures(
    sessions: &[Run],
    places: &[usize],
    metric: Metric,
    cell: usize,
) -> Vec<(usize, Vec<f64>)> {
    sessions
        .iter()
        .zip(places)
        .map(|(session, level)| (*level, logs(session, metric, cell).into_values().collect()))
        .filter(|(_, values): &(usize, Vec<f64>)| !values.is_empty())
        .collect()
}

fn comparisons(
    run: &Run,
    sessions: &[Run],
    places: &[usize],
    cell: usize,
    correction: Correction,
) -> Vec<SessionComparison> {
    let levels = places.iter().max().map_or(0, |last| last + 1);
    let mut all = Vec::new();
    for metric in Metric::ALL {
        let means: Vec<(usize, f64)> = figures(sessions, places, metric, cell)
            .into_iter()
            .map(|(level, values)| (level, mean(&values)))
            .collect();
        let of = |wanted: usize| -> Vec<f64> {
            means.iter().filter(|(level, _)| *level == wanted).map(|(_, mean)| *mean).collect()
        };
        let first = of(0);
        for level in 1..levels {
            let other = of(level);
            all.extend(compare(metric, level, &first, &other, correction, run.plan.margin));
        }
    }
    all
}

/// A level's sessions against the first level's; `None` where either has no figure.
fn compare(
    metric: Metric,
    level: usize,
    first: &[f64],
    other: &[f64],
    correction: Correction,
    margin: f64,
) -> Option<SessionComparison> {
    if first.is_empty() || other.is_empty() {
        return None;
    }
    let sessions = (first.len(), other.len());
    let freedom = first.len() + other.len() - 2;
    let difference = mean(other) - mean(first);
    let half_width = match freedom {
        0 => f64::INFINITY,
        _ => {
            let variance = (squares(first) + squares(other)) / freedom as f64;
            let shares = 1.0 / first.len() as f64 + 1.0 / other.len() as f64;
            t_quantile(1.0 - correction.alpha() / 2.0, freedom as f64) * (variance * shares).sqrt()
        }
    };
    let (low, high) = (difference - half_width, difference + half_width);
    let verdict = match freedom >= MIN_FREEDOM {
        true => verdict(metric, low, high, margin),
        false => Verdict::NotSettled,
    };
    let (ratio, low, high) = (difference.exp(), low.exp(), high.exp());
    Some(SessionComparison { level, metric, sessions, ratio, low, high, verdict })
}

/// How far the baseline's figure differs between sessions of the same level.
fn floor(
    sessions: &[Run],
    places: &[usize],
    metric: Metric,
    baseline: usize,
) -> Option<SessionFloor> {
    let figures = figures(sessions, places, metric, baseline);
    let levels = places.iter().max().map_or(0, |last| last + 1);
    let (mut sum, mut freedom) = (0.0, 0);
    for wanted in 0..levels {
        let means: Vec<f64> = figures
            .iter()
            .filter(|(level, _)| *level == wanted)
            .map(|(_, values)| mean(values))
            .collect();
        if means.len() > 1 {
            sum += squares(&means);
            freedom += means.len() - 1;
        }
    }
    let within: Vec<f64> = figures
        .iter()
        .filter(|(_, values)| values.len() > 1)
        .map(|(_, values)| {
            let n = values.len() as f64;
            squares(values) / (n - 1.0) / n
        })
        .collect();
    (freedom > 0).then(|| SessionFloor {
        freedom,
        session: (sum / freedom as f64).sqrt(),
        trials: if within.is_empty() { f64::NAN } else { mean(&within).sqrt() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Correction = Correction::ALONE;

    fn compared(first: &[f64], other: &[f64]) -> SessionComparison {
        compare(Metric::Throughput, 1, first, other, ALONE, 0.03).unwrap()
    }

    #[test]
    fn two_levels_with_a_session_each_are_open() {
        let found = compared(&[1.0], &[1.5]);
        assert_eq!((found.low, found.high), (0.0, f64::INFINITY));
        assert_eq!(found.verdict, Verdict::NotSettled);
        assert!((found.ratio - 0.5_f64.exp()).abs() < 1e-12);
        // With three in all there is an interval, and not enough to say anything.
        let found = compared(&[1.0, 1.001], &[1.5]);
        assert!(found.high.is_finite());
        assert_eq!(found.verdict, Verdict::NotSettled);
    }

    #[test]
    fn the_interval_is_students_with_pooled_variance() {
        // Means 0 and 0.3, sums of squares 0.02 and 0.02, two degrees of freedom: the standard error is
        // sqrt(0.02 · (1/2 + 1/2)), and t of 97.5 % with two degrees is 4.303 (NIST, 1.3.6.7.2).
        let found = compared(&[-0.1, 0.1], &[0.2, 0.4]);
        let half = 4.303 * 0.02_f64.sqrt();
        assert!((found.low.ln() - (0.3 - half)).abs() < 1e-3, "{found:?}");
        assert!((found.high.ln() - (0.3 + half)).abs() < 1e-3, "{found:?}");
        assert_eq!(found.verdict, Verdict::NotSettled, "boots differ as much as kernels");
        let found = compared(&[-0.001, 0.001], &[0.299, 0.301]);
        assert_eq!(found.verdict, Verdict::Better);
        let found = compared(&[-0.001, 0.001], &[0.001, 0.003]);
        assert_eq!(found.verdict, Verdict::NoDifference);
    }
}
