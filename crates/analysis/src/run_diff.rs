//! Two runs side by side: what differs in where they were made and what they did, and what may be said
//! of the cells that both have.
//!
//! Within a run cells take turns, so that a ratio to the baseline is free of what changes slowly. Between
//! runs nothing takes turns: a run is one observation of its boot, its day and the state of its device,
//! however many rounds it has. Two things can be computed all the same. Whether a cell's ratio to its
//! baseline is the same in both: each round is an observation of that. And how far the figures themselves
//! lie apart, beside how far the rounds of each run scatter: a difference within that floor is noise; one
//! beyond it shows that the runs differ, and not why.

use crate::{
    Analysis, Comparison, Correction, Estimate, Group, Metric, Verdict, blocks::logs,
    summary::log_ratios, t_quantile,
};
use plan::{Cell, Role};
use record::{EnvironmentChange, Run};
use serde::Serialize;
use std::collections::BTreeMap;

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDiff {
    /// What is another where the second was made.
    pub environment: Vec<EnvironmentChange>,
    /// What is another in what it did.
    pub plan: Vec<PlanDifference>,
    /// The conditions that both have.
    pub groups: Vec<DiffGroup>,
    /// Cells of the first that the second has not, by their labels.
    pub only_first: Vec<String>,
    /// Cells of the second that the first has not.
    pub only_second: Vec<String>,
}

/// A part of a plan that is another in the second run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanDifference {
    /// Which.
    pub part: PlanPart,
    /// In the first.
    pub was: String,
    /// In the second.
    pub is: String,
}

/// Parts of a plan that bear on figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanPart {
    /// The world.
    World,
    /// The target.
    Target,
    /// What the clients do.
    Workload,
    /// What makes the load.
    Engine,
    /// The span that it uses.
    Size,
    /// The bound of the page cache.
    PageCache,
    /// Warm-up and measured time of a trial.
    Trial,
    /// Rounds that were run.
    Rounds,
    /// The seed.
    Seed,
}

/// Cells under conditions that both runs have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffGroup {
    /// The conditions, or nothing when there is only one.
    pub condition: String,
    /// Whether both compare with the same baseline: else verdicts are about different things.
    pub same_baseline: bool,
    /// The smallest difference between the runs that is more than the scatter of their baselines' rounds,
    /// four times in five, by figure.
    pub floor: Vec<(Metric, f64)>,
    /// Cells that both have; the baseline first, where it is the same.
    pub cells: Vec<DiffCell>,
}

/// A cell of both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiffCell {
    /// Its levels, for tables.
    pub label: String,
    /// Its index in the plans.
    pub cells: (usize, usize),
    /// What may be said in each figure.
    pub figures: Vec<DiffFigure>,
}

/// One figure of a cell of both runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DiffFigure {
    /// The figure.
    pub metric: Metric,
    /// Against the first run's baseline; none of the baseline itself.
    pub first: Option<Comparison>,
    /// Against the second's.
    pub second: Option<Comparison>,
    /// The ratio to the baseline in the second over that in the first.
    pub effect: Option<Shift>,
    /// The figure in the second over that in the first.
    pub shift: Option<Shift>,
}

/// How far two runs lie apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// The second over the first.
    pub ratio: f64,
    /// The interval's lower end, by Welch's t.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// What may be said.
    pub standing: ShiftStanding,
}

/// What may be said of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShiftStanding {
    /// The whole interval is within the margin.
    Same,
    /// The interval does not hold "equal".
    Differs,
    /// The interval is too wide to say.
    Open,
}

/// What two verdicts on the same cell come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Both say the same.
    Agree,
    /// One says better, the other worse.
    Contradict,
    /// One finds a difference where the other finds none.
    OneAlone,
    /// One at least is open.
    Open,
}

impl DiffFigure {
    /// What the two verdicts come to; none where one is missing.
    pub fn agreement(&self) -> Option<Agreement> {
        use Verdict::{Better, NotSettled, Worse};
        Some(match (self.first?.verdict, self.second?.verdict) {
            (NotSettled, _) | (_, NotSettled) => Agreement::Open,
            (a, b) if a == b => Agreement::Agree,
            (Better, Worse) | (Worse, Better) => Agreement::Contradict,
            _ => Agreement::OneAlone,
        })
    }
}

impl DiffCell {
    /// What may be said in one figure.
    pub fn figure(&self, metric: Metric) -> Option<&DiffFigure> {
        self.figures.iter().find(|it| it.metric == metric)
    }
}

/// A run with its analysis.
#[derive(Clone, Copy)]
struct Side<'a> {
    run: &'a Run,
    analysis: &'a Analysis,
}

impl RunDiff {
    /// Of two runs, each with its analysis.
    pub fn of(first: (&Run, &Analysis), second: (&Run, &Analysis)) -> RunDiff {
        let first = Side { run: first.0, analysis: first.1 };
        let second = Side { run: second.0, analysis: second.1 };
        let common = common_cells(first.run, second.run);
        let missing = |one: &Run, taken: &dyn Fn(usize) -> bool| {
            let label = |cell: usize| one.plan.cells[cell].label(&one.plan.factors);
            (0..one.plan.cells.len()).filter(|it| !taken(*it)).map(label).collect()
        };
        RunDiff {
            environment: first.run.environment.changes(&second.run.environment),
            plan: plan_differences(first.run, second.run),
            groups: groups(first, second, &common),
            only_first: missing(first.run, &|cell| common.contains_key(&cell)),
            only_second: missing(second.run, &|cell| common.values().any(|it| *it == cell)),
        }
    }
}

/// Cells of the same levels: of the first to those of the second. What one run has as a factor with a
/// single level the other may have fixed; both must say the same of the workload.
fn common_cells(first: &Run, second: &Run) -> BTreeMap<usize, usize> {
    let does = |run: &Run, cell: &Cell| run.plan.workload_of(cell).ok();
    let same = |one: &Cell, other: &Cell| {
        settings(one) == settings(other) && does(first, one) == does(second, other)
    };
    let find = |(place, cell): (usize, &Cell)| {
        let found = second.plan.cells.iter().position(|other| same(cell, other))?;
        Some((place, found))
    };
    first.plan.cells.iter().enumerate().filter_map(find).collect()
}

/// What a cell sets of the host and of the filesystem; its workload has the rest.
fn settings(cell: &Cell) -> Vec<(String, String)> {
    use plan::Factor;
    let of_workload = |factor: &Factor| {
        factor.role() == Role::Condition && *factor != Factor::Without
            || matches!(
                factor,
                Factor::Sync
                    | Factor::IoPriority
                    | Factor::Engine
                    | Factor::Variable { .. }
                    | Factor::Variables
            )
    };
    let levels = cell.levels.iter().filter(|(factor, _)| !of_workload(factor));
    levels.map(|(factor, level)| (factor.to_string(), level.0.clone())).collect()
}

fn groups(first: Side, second: Side, common: &BTreeMap<usize, usize>) -> Vec<DiffGroup> {
    let group_of = |side: Side, cell: usize| -> Option<usize> {
        side.analysis.groups.iter().position(|group| {
            group.baseline.cell == cell || group.cells.iter().any(|it| it.summary.cell == cell)
        })
    };
    let mut pairs: Vec<(usize, usize)> = common
        .iter()
        .filter_map(|(one, other)| Some((group_of(first, *one)?, group_of(second, *other)?)))
        .collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into_iter().map(|pair| group(first, second, common, pair)).collect()
}

fn group(
    first: Side,
    second: Side,
    common: &BTreeMap<usize, usize>,
    (one, other): (usize, usize),
) -> DiffGroup {
    let (a, b) = (&first.analysis.groups[one], &second.analysis.groups[other]);
    let same_baseline = common.get(&a.baseline.cell) == Some(&b.baseline.cell);
    let has = |group: &Group, cell: usize| {
        group.baseline.cell == cell || group.cells.iter().any(|it| it.summary.cell == cell)
    };
    let pairs: Vec<(usize, usize)> = common
        .iter()
        .map(|(cell, other)| (*cell, *other))
        .filter(|(cell, other)| has(a, *cell) && has(b, *other))
        .collect();
    let correction = Correction { cells: pairs.len(), ..Correction::ALONE };
    let margin = first.run.plan.margin.max(second.run.plan.margin);
    let cell = |pair: &(usize, usize)| {
        let found = [(a, pair.0), (b, pair.1)]
            .map(|(group, cell)| group.cells.iter().find(|it| it.summary.cell == cell));
        let label = found[0].map_or(&a.baseline.label, |it| &it.summary.label).clone();
        let figure = |metric| {
            let [one, other] = found.map(|it| it.and_then(|it| it.comparison(metric)).copied());
            let ratios = |side: Side, group: &Group, cell| {
                log_ratios(side.run, metric, cell, group.baseline.cell)
            };
            let effect = found[0].zip(found[1]).filter(|_| same_baseline).and_then(|_| {
                let pair = (ratios(first, a, pair.0), ratios(second, b, pair.1));
                shift(&pair.0, &pair.1, correction, margin)
            });
            let all = (rounds(first.run, metric, pair.0), rounds(second.run, metric, pair.1));
            let shift = shift(&all.0, &all.1, correction, margin);
            DiffFigure { metric, first: one, second: other, effect, shift }
        };
        DiffCell { label, cells: *pair, figures: Metric::ALL.map(figure).to_vec() }
    };
    let floor = Metric::ALL.into_iter().filter_map(|metric| {
        let one = rounds(first.run, metric, a.baseline.cell);
        let other = rounds(second.run, metric, b.baseline.cell);
        let (std_err, freedom) = welch(&one, &other)?;
        let reach = t_quantile(0.975, freedom as f64) + t_quantile(0.8, freedom as f64);
        Some((metric, (reach * std_err).exp_m1()))
    });
    DiffGroup {
        condition: a.condition.clone(),
        same_baseline,
        floor: floor.collect(),
        cells: pairs.iter().map(cell).collect(),
    }
}

/// A cell's figure by round, the baseline's two trials together.
fn rounds(run: &Run, metric: Metric, cell: usize) -> Vec<f64> {
    let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for ((round, _), value) in logs(run, metric, cell) {
        by_round.entry(round).or_default().push(value);
    }
    by_round.into_values().map(|all| all.iter().sum::<f64>() / all.len() as f64).collect()
}

/// The standard error of the difference of two means and its degrees of freedom (Welch 1947); none with
/// fewer than three observations of either.
fn welch(one: &[f64], other: &[f64]) -> Option<(f64, usize)> {
    let (a, b) = (Estimate::of(one)?, Estimate::of(other)?);
    if a.n < 3 || b.n < 3 {
        return None;
    }
    let (v, w) = (a.std_err.powi(2), b.std_err.powi(2));
    let freedom = match v + w > 0.0 {
        true => (v + w).powi(2) / (v * v / (a.n - 1) as f64 + w * w / (b.n - 1) as f64),
        false => (a.n + b.n - 2) as f64,
    };
    Some(((v + w).sqrt(), (freedom.floor() as usize).max(1)))
}

fn shift(one: &[f64], other: &[f64], correction: Correction, margin: f64) -> Option<Shift> {
    let (a, b) = (Estimate::of(one)?, Estimate::of(other)?);
    let difference = b.mean - a.mean;
    let half = welch(one, other).map_or(f64::INFINITY, |(std_err, freedom)| {
        t_quantile(1.0 - correction.alpha() / 2.0, freedom as f64) * std_err
    });
    let (low, high) = (difference - half, difference + half);
    let width = (1.0 + margin).ln();
    let standing = match () {
        () if low >= -width && high <= width => ShiftStanding::Same,
        () if low > 0.0 || high < 0.0 => ShiftStanding::Differs,
        () => ShiftStanding::Open,
    };
    Some(Shift { ratio: difference.exp(), low: low.exp(), high: high.exp(), standing })
}

fn plan_differences(first: &Run, second: &Run) -> Vec<PlanDifference> {
    let parts = |run: &Run| {
        let plan = &run.plan;
        let bound =
            |bytes: Option<units::Bytes>| bytes.map_or("none".to_owned(), |it| it.to_string());
        [
            (PlanPart::World, run.environment.world.to_string()),
            (PlanPart::Target, plan.target.clone()),
            (PlanPart::Workload, workload_words(run)),
            (PlanPart::Engine, plan.engine.to_string()),
            (PlanPart::Size, plan.size.to_string()),
            (PlanPart::PageCache, bound(plan.page_cache)),
            (PlanPart::Trial, trial_words(plan)),
            (PlanPart::Rounds, run.rounds().to_string()),
            (PlanPart::Seed, plan.seed.to_string()),
        ]
    };
    let pairs = parts(first).into_iter().zip(parts(second));
    let differs = |((part, was), (_, is)): ((PlanPart, String), (PlanPart, String))| {
        (was != is).then_some(PlanDifference { part, was, is })
    };
    pairs.filter_map(differs).collect()
}

/// What a trial takes, in words.
pub(crate) fn trial_words(plan: &plan::Plan) -> String {
    format!("{} + {}", plan.timing.warmup, plan.timing.measure)
}

/// What the clients do, in words.
pub(crate) fn workload_words(run: &Run) -> String {
    let workload = &run.plan.workload;
    let mut words = match &workload.database {
        Some(database) => database.to_string(),
        None => workload.job.to_string(),
    };
    if let Some(background) = &workload.background {
        words.push_str(&format!(" beside {background}"));
    }
    for (name, value) in &workload.variables {
        words.push_str(&format!(" {name}={value}"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Correction = Correction::ALONE;

    #[test]
    fn the_interval_is_welchs() {
        // Variances of the means 0.0025/4 and 0.01/4: the standard error is sqrt(0.003125), and
        // Welch's degrees of freedom are 0.003125² / (0.000625²/3 + 0.0025²/3) = 4.41, cut to 4.
        let one = [-0.05, 0.05, -0.05, 0.05].map(|x: f64| x * 0.75_f64.sqrt());
        let other = [-0.1, 0.1, -0.1, 0.1].map(|x: f64| 0.3 + x * 0.75_f64.sqrt());
        let (std_err, freedom) = welch(&one, &other).unwrap();
        assert!((std_err - 0.003125_f64.sqrt()).abs() < 1e-9, "{std_err}");
        assert_eq!(freedom, 4);
        let found = shift(&one, &other, ALONE, 0.03).unwrap();
        // t of 97.5 % with 4 degrees of freedom is 2.776 (NIST, 1.3.6.7.2).
        assert!((found.low.ln() - (0.3 - 2.776 * std_err)).abs() < 1e-3, "{found:?}");
        assert_eq!(found.standing, ShiftStanding::Differs);
    }

    #[test]
    fn few_rounds_say_nothing() {
        assert_eq!(shift(&[0.0, 0.1], &[1.0, 1.1, 1.2], ALONE, 0.03).unwrap().standing, {
            ShiftStanding::Open
        });
        assert_eq!(shift(&[], &[1.0], ALONE, 0.03), None);
        let same = shift(&[0.0, 0.001, 0.002], &[0.001, 0.0, 0.002], ALONE, 0.03).unwrap();
        assert_eq!(same.standing, ShiftStanding::Same);
    }
}
