//! What may be said of one figure of a cell over a fleet.

use crate::{
    Correction, Estimate, Metric, Pooled, Verdict,
    comparison::{MIN_ROUNDS, verdict},
    pool,
    random_effects::{discoveries, outliers},
};
use serde::Serialize;

/// The probability with which outliers, and differences between hosts, are named where there are none.
const ALPHA: f64 = 0.05;

/// A figure of a cell over its baseline's, on many hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PooledFigure {
    /// The figure.
    pub metric: Metric,
    /// What the hosts have in common, in logarithms.
    pub pooled: Pooled,
    /// The mean ratio.
    pub ratio: f64,
    /// Its interval's lower end, corrected for the cells that are compared.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The ratio that a run of as many rounds shows on the next host, 19 times in 20; none with two hosts.
    pub next_host: Option<(f64, f64)>,
    /// What may be said of the fleet.
    pub verdict: FleetVerdict,
    /// Each host, in the group's order; none where it has no figure.
    pub hosts: Vec<Option<HostStanding>>,
    /// What the others have in common where outliers are left out; none without outliers.
    pub without_outliers: Option<(f64, f64, f64)>,
}

/// What may be said of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetVerdict {
    /// The mean of the hosts is better.
    Better,
    /// It is worse.
    Worse,
    /// Mean and hosts are within the margin.
    NoDifference,
    /// Some hosts gain and others lose, or they differ by more than the margin about no change: the mean says
    /// nothing of a host.
    ByHost,
    /// Not enough is known.
    NotSettled,
}

/// How a host stands.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostStanding {
    /// Rounds or blocks of them.
    pub rounds: usize,
    /// The cell's figure over the baseline's.
    pub ratio: f64,
    /// The lower end of an interval that holds over all hosts (false discoveries).
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// What may be said of it.
    pub verdict: Verdict,
    /// Whether it lies outside of what the other hosts predict.
    pub outlier: bool,
}

impl PooledFigure {
    /// Of the hosts' estimates, where `compared` cells are; `None` where fewer than two can be pooled.
    pub(super) fn of(
        metric: Metric,
        hosts: &[Option<Estimate>],
        compared: usize,
        margin: f64,
    ) -> Option<PooledFigure> {
        let alpha = Correction { cells: compared, ..Correction::ALONE }.alpha();
        let places: Vec<usize> = (0..hosts.len()).filter(|at| hosts[*at].is_some()).collect();
        let effects: Vec<Estimate> = hosts.iter().copied().flatten().collect();
        let pooled = pool(&effects)?;
        let (low, high) = pooled.interval(alpha);
        let far = outliers(&effects, ALPHA / compared.max(1) as f64);
        let (found, level) = discoveries(&effects, alpha);
        let mut standings: Vec<Option<HostStanding>> = vec![None; hosts.len()];
        for (at, effect) in effects.iter().enumerate() {
            let standing = standing(metric, effect, if found[at] { level } else { alpha }, margin);
            let verdict = match standing.verdict {
                // Chosen among many, it is not shown.
                Verdict::Better | Verdict::Worse if !found[at] => Verdict::NotSettled,
                other => other,
            };
            let outlier = far.contains(&at);
            standings[places[at]] = Some(HostStanding { verdict, outlier, ..standing });
        }
        let rest: Vec<Estimate> =
            (0..effects.len()).filter(|at| !far.contains(at)).map(|at| effects[at]).collect();
        let without = (!far.is_empty()).then(|| pool(&rest)).flatten().map(|it| {
            let (low, high) = it.interval(alpha);
            (it.mean.exp(), low.exp(), high.exp())
        });
        Some(PooledFigure {
            metric,
            ratio: pooled.mean.exp(),
            low: low.exp(),
            high: high.exp(),
            next_host: pooled.next_host(ALPHA).map(|(low, high)| (low.exp(), high.exp())),
            verdict: of_fleet(metric, &pooled, (low, high), &standings, margin),
            hosts: standings,
            without_outliers: without,
            pooled,
        })
    }

    /// How many hosts stand so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.hosts.iter().flatten().filter(|it| it.verdict == verdict).count()
    }

    /// Hosts that lie outside of what the others predict, by their places in the group.
    pub fn outliers(&self) -> Vec<usize> {
        let all = self.hosts.iter().enumerate();
        all.filter(|(_, it)| it.is_some_and(|it| it.outlier)).map(|(at, _)| at).collect()
    }
}

fn standing(metric: Metric, effect: &Estimate, alpha: f64, margin: f64) -> HostStanding {
    let half = match effect.n < MIN_ROUNDS {
        true => f64::INFINITY,
        false => effect.half_width(alpha),
    };
    let (low, high) = (effect.mean - half, effect.mean + half);
    HostStanding {
        rounds: effect.n,
        ratio: effect.mean.exp(),
        low: low.exp(),
        high: high.exp(),
        verdict: verdict(metric, low, high, margin),
        outlier: false,
    }
}

fn of_fleet(
    metric: Metric,
    pooled: &Pooled,
    (low, high): (f64, f64),
    hosts: &[Option<HostStanding>],
    margin: f64,
) -> FleetVerdict {
    // Outliers are named by themselves: they do not make the verdict of the others *by host*.
    let count = |verdict: Verdict| {
        hosts.iter().flatten().filter(|it| it.verdict == verdict && !it.outlier).count()
    };
    let mean = verdict(metric, low, high, margin);
    let opposed = count(Verdict::Better) > 0 && count(Verdict::Worse) > 0;
    // Half of all hosts are farther from the mean than two thirds of τ.
    let wide = pooled.between > (1.0 + margin).ln() && pooled.alike_probability < ALPHA;
    match mean {
        _ if opposed => FleetVerdict::ByHost,
        Verdict::Better => FleetVerdict::Better,
        Verdict::Worse => FleetVerdict::Worse,
        Verdict::NoDifference if wide => FleetVerdict::ByHost,
        Verdict::NotSettled if wide && (count(Verdict::Better) + count(Verdict::Worse) > 0) => {
            FleetVerdict::ByHost
        }
        Verdict::NoDifference if count(Verdict::Better) + count(Verdict::Worse) == 0 => {
            FleetVerdict::NoDifference
        }
        Verdict::NoDifference | Verdict::NotSettled => FleetVerdict::NotSettled,
    }
}
