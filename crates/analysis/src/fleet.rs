//! The runs of many hosts as one: which may be pooled, what they have in common, how far they lie apart.
//!
//! [`Run`] → [`HostRun`], which keeps the observations and not what was made of them → [`FleetAnalysis`].
//! Hosts are pooled only where all that bears on an effect is the same: the plan's conditions, the kernel,
//! the kind of device, the server, and what is compared with.

use crate::{
    Analysis, Estimate, Metric, Wish, comparison::MIN_ROUNDS, recommend, summary::log_ratios,
};
use record::{Aspect, EventKind, Fact, Run, WorldKind};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod verdict;

pub use verdict::{FleetVerdict, HostStanding, PooledFigure};

/// What is kept of a host's run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRun {
    /// The host's name.
    pub host: String,
    /// The run's name.
    pub run: String,
    /// When it started, in seconds since 1970.
    pub started_at: i64,
    /// The boot it was made in; empty where that is not known.
    pub boot_id: String,
    /// The world.
    pub world: WorldKind,
    /// The margin of its verdicts.
    pub margin: f64,
    /// What must be the same for hosts to be pooled.
    pub kind: BTreeMap<Likeness, String>,
    /// The cells that were compared.
    pub cells: Vec<HostCell>,
    /// What the run recommends by itself, in words; none where it says to keep what is there.
    pub recommends: Option<String>,
}

/// What must be the same for hosts to be pooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// The kinds of device and filesystem below the target.
    Device,
    /// The devices' firmware.
    Firmware,
    /// The kernel's release.
    Kernel,
    /// The database server's version.
    Server,
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
    /// What is compared with.
    Baseline,
}

/// A cell of a host's run: its figures over the baseline's, a logarithm a round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostCell {
    /// The condition; empty where there is one alone.
    pub condition: String,
    /// What is set.
    pub label: String,
    /// The logarithms of throughput's ratios.
    pub throughput: Vec<f64>,
    /// Those of the 99th percentile's.
    pub p99: Vec<f64>,
    /// Those of fairness's.
    pub fairness: Vec<f64>,
}

/// Why runs cannot be merged.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FleetError {
    /// One run, or none.
    #[error(
        "{0} run was named: a fleet takes the runs of two hosts at least; spindle report shows one run"
    )]
    TooFew(usize),
    /// A run compares nothing.
    #[error(
        "run {run} of {host} has no verdict: it has fewer than three rounds that count, or no cell beside \
         its baseline; spindle resume {run} may go on with it"
    )]
    NoVerdicts {
        /// The host.
        host: String,
        /// The run.
        run: String,
    },
    /// A run is there twice.
    #[error(
        "run {run} of {host} is named twice: it would count as two hosts; name each run once (copies of a \
         file, and simulated runs of one seed, are the same run)"
    )]
    Twice {
        /// The host.
        host: String,
        /// The run.
        run: String,
    },
    /// Real hosts beside models, or beside what other programs printed.
    #[error(
        "run {first} is {was} and run {other} is {is}: a fleet is of one world; merge {was} and {is} runs \
         into files of their own"
    )]
    Worlds {
        /// A run.
        first: String,
        /// Its world.
        was: WorldKind,
        /// A run of another world.
        other: String,
        /// That world.
        is: WorldKind,
    },
}

impl HostCell {
    /// The logarithms in one figure.
    pub fn logs(&self, metric: Metric) -> &[f64] {
        match metric {
            Metric::Throughput => &self.throughput,
            Metric::P99 => &self.p99,
            Metric::Fairness => &self.fairness,
        }
    }
}

impl HostRun {
    /// What is kept of a run; of one with several sessions, of the one that it is.
    pub fn of(run: &Run) -> Result<HostRun, FleetError> {
        let analysis = Analysis::of(run);
        let mut cells = Vec::new();
        for group in &analysis.groups {
            let baseline = group.baseline.cell;
            for cell in &group.cells {
                let logs = |metric| log_ratios(run, metric, cell.summary.cell, baseline);
                cells.push(HostCell {
                    condition: group.condition.clone(),
                    label: cell.summary.phrase.clone(),
                    throughput: logs(Metric::Throughput),
                    p99: logs(Metric::P99),
                    fairness: logs(Metric::Fairness),
                });
            }
        }
        let environment = &run.environment;
        if !cells.iter().any(|cell| cell.throughput.len() >= MIN_ROUNDS) {
            return Err(FleetError::NoVerdicts {
                host: environment.hostname.clone(),
                run: run.name.clone(),
            });
        }
        let recommends = recommend(run, &analysis, &Wish::default())
            .cell()
            .map(|cell| run.plan.cells[cell].phrase(&run.plan.compared()));
        Ok(HostRun {
            // Each simulated run stands for a host.
            host: match environment.world {
                WorldKind::Simulated => run.name.clone(),
                _ => environment.hostname.clone(),
            },
            run: run.name.clone(),
            started_at: run.started_at,
            boot_id: environment.boot_id.clone(),
            world: environment.world,
            margin: run.plan.margin,
            kind: likeness(run, &analysis),
            cells,
            recommends,
        })
    }

    /// Models have no host, and the same seed gives the same figures.
    fn same_run(&self, other: &HostRun) -> bool {
        let same_place = self.host == other.host
            && self.run == other.run
            && self.started_at == other.started_at
            && self.boot_id == other.boot_id;
        (same_place || self.world == WorldKind::Simulated) && self.cells == other.cells
    }
}

fn likeness(run: &Run, analysis: &Analysis) -> BTreeMap<Likeness, String> {
    let (plan, environment) = (&run.plan, &run.environment);
    let firmware: Vec<&str> = environment
        .facts
        .iter()
        .filter(|fact| fact.aspect == Aspect::Device)
        .map(|fact| fact.value.as_str())
        .collect();
    let server = environment.fact(Aspect::Server, Fact::SERVER_VERSION).unwrap_or("none");
    let baselines: Vec<&str> =
        analysis.groups.iter().map(|it| it.baseline.phrase.as_str()).collect();
    // A pilot chooses a length for each host, and ratios are taken not to depend on it.
    let piloted = run.events.iter().any(|it| matches!(it.kind, EventKind::Piloted { .. }));
    let trial = match piloted {
        true => "as a pilot chose".to_owned(),
        false => crate::run_diff::trial_words(plan),
    };
    let bound = plan.page_cache.map_or("none".to_owned(), |it| it.to_string());
    [
        (Likeness::Device, environment.device_kind()),
        (Likeness::Firmware, firmware.join(", ")),
        (Likeness::Kernel, environment.kernel.clone()),
        (Likeness::Server, server.to_owned()),
        (Likeness::Workload, crate::run_diff::workload_words(run)),
        (Likeness::Engine, plan.engine.to_string()),
        (Likeness::Size, plan.size.to_string()),
        (Likeness::PageCache, bound),
        (Likeness::Trial, trial),
        (Likeness::Baseline, baselines.join("; ")),
    ]
    .into()
}

/// What may be said of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetAnalysis {
    /// The world of all runs.
    pub world: WorldKind,
    /// Hosts that are alike, the most first.
    pub groups: Vec<FleetGroup>,
    /// Runs that are not pooled because a later one of the same host in the same group is: host, run, and
    /// that run.
    pub superseded: Vec<(String, String, String)>,
}

/// Hosts that are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetGroup {
    /// What they have in common.
    pub kind: BTreeMap<Likeness, String>,
    /// What is another in the first group, the largest: which, there, here.
    pub apart: Vec<(Likeness, String, String)>,
    /// The hosts and their runs, by name.
    pub hosts: Vec<(String, String)>,
    /// The cells that two of them have at least.
    pub cells: Vec<FleetCell>,
    /// What all of them recommend, each by itself; none where one does not.
    pub agreed: Option<String>,
    /// The figure in which the fleet speaks against that: hosts disagree, one is an outlier, or the mean is
    /// worse.
    pub against: Option<Metric>,
}

/// A cell of several hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetCell {
    /// The condition; empty where there is one alone.
    pub condition: String,
    /// What is set.
    pub label: String,
    /// What may be said in each figure.
    pub figures: Vec<PooledFigure>,
}

impl FleetCell {
    /// What may be said in one figure.
    pub fn figure(&self, metric: Metric) -> Option<&PooledFigure> {
        self.figures.iter().find(|it| it.metric == metric)
    }
}

impl FleetAnalysis {
    /// Of runs of many hosts.
    pub fn of(runs: &[HostRun]) -> Result<FleetAnalysis, FleetError> {
        let [first, _, ..] = runs else { return Err(FleetError::TooFew(runs.len())) };
        if let Some(other) = runs.iter().find(|it| it.world != first.world) {
            return Err(FleetError::Worlds {
                first: first.run.clone(),
                was: first.world,
                other: other.run.clone(),
                is: other.world,
            });
        }
        refuse_twice(runs)?;
        let mut by_kind: BTreeMap<&BTreeMap<Likeness, String>, Vec<&HostRun>> = BTreeMap::new();
        for run in runs {
            by_kind.entry(&run.kind).or_default().push(run);
        }
        let mut superseded = Vec::new();
        let mut groups: Vec<Vec<&HostRun>> =
            by_kind.into_values().map(|all| last_of_each_host(all, &mut superseded)).collect();
        groups.sort_by_key(|hosts| std::cmp::Reverse(hosts.len()));
        let largest = groups[0][0].kind.clone();
        let groups = groups.iter().map(|hosts| group(hosts, &largest)).collect();
        Ok(FleetAnalysis { world: first.world, groups, superseded })
    }
}

fn refuse_twice(runs: &[HostRun]) -> Result<(), FleetError> {
    for (at, run) in runs.iter().enumerate() {
        if runs[..at].iter().any(|other| other.same_run(run)) {
            return Err(FleetError::Twice { host: run.host.clone(), run: run.run.clone() });
        }
    }
    Ok(())
}

/// Two runs of a host are not two hosts: the last of each.
fn last_of_each_host<'a>(
    mut all: Vec<&'a HostRun>,
    superseded: &mut Vec<(String, String, String)>,
) -> Vec<&'a HostRun> {
    all.sort_by(|a, b| (&a.host, a.started_at, &a.run).cmp(&(&b.host, b.started_at, &b.run)));
    let mut kept: Vec<&HostRun> = Vec::new();
    for run in all {
        match kept.last_mut() {
            Some(last) if last.host == run.host => {
                superseded.push((last.host.clone(), last.run.clone(), run.run.clone()));
                *last = run;
            }
            _ => kept.push(run),
        }
    }
    kept
}

fn group(hosts: &[&HostRun], largest: &BTreeMap<Likeness, String>) -> FleetGroup {
    let kind = hosts[0].kind.clone();
    let apart = largest
        .iter()
        .filter_map(|(what, was)| {
            let is = kind.get(what).filter(|is| *is != was)?;
            Some((*what, was.clone(), is.clone()))
        })
        .collect();
    let mut labels: Vec<(&str, &str)> = Vec::new();
    let mut seen = BTreeSet::new();
    for cell in hosts.iter().flat_map(|host| &host.cells) {
        if seen.insert((&cell.condition, &cell.label)) {
            labels.push((&cell.condition, &cell.label));
        }
    }
    let compared = labels.len();
    let cells: Vec<FleetCell> =
        labels.into_iter().filter_map(|label| cell(hosts, label, compared)).collect();
    let first = hosts[0].recommends.clone();
    let agreed = first.filter(|_| {
        hosts.len() > 1 && hosts.iter().all(|host| host.recommends == hosts[0].recommends)
    });
    let names = hosts.iter().map(|it| (it.host.clone(), it.run.clone())).collect();
    let against = agreed.as_deref().and_then(|label| speaks_against(&cells, label));
    FleetGroup { kind, apart, hosts: names, cells, agreed, against }
}

fn speaks_against(cells: &[FleetCell], label: &str) -> Option<Metric> {
    let figures = cells.iter().filter(|cell| cell.label == label).flat_map(|cell| &cell.figures);
    let against = |it: &&PooledFigure| {
        it.metric != Metric::Fairness
            && (matches!(it.verdict, FleetVerdict::ByHost | FleetVerdict::Worse)
                || !it.outliers().is_empty())
    };
    figures.filter(against).map(|it| it.metric).next()
}

fn cell(
    hosts: &[&HostRun],
    (condition, label): (&str, &str),
    compared: usize,
) -> Option<FleetCell> {
    let of_host = |host: &&HostRun| {
        host.cells.iter().find(|it| it.condition == condition && it.label == label).cloned()
    };
    let cells: Vec<Option<HostCell>> = hosts.iter().map(of_host).collect();
    let margin = hosts.iter().map(|host| host.margin).fold(0.0, f64::max);
    let figure = |metric: Metric| {
        // Of a host without the cell, nothing.
        let estimates: Vec<Option<Estimate>> =
            cells.iter().map(|cell| Estimate::of_series(cell.as_ref()?.logs(metric))).collect();
        PooledFigure::of(metric, &estimates, compared, margin)
    };
    let figures: Vec<PooledFigure> = Metric::ALL.into_iter().filter_map(figure).collect();
    (!figures.is_empty()).then(|| FleetCell {
        condition: condition.to_owned(),
        label: label.to_owned(),
        figures,
    })
}
