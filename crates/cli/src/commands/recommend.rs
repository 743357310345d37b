//! `spindle recommend`.

use crate::{
    exit::{Exit, Usage},
    runs_folder, say,
};
use analysis::{Analysis, Limit, Metric, Recommendation, Wish, recommend};
use clap::{Args, ValueEnum};
use plan::LossKind;
use record::Run;

/// What a recommendation is to be good for: also the flags of `apply`.
#[derive(Debug, Args)]
pub struct WishFlags {
    /// What shall get better; by default throughput, or p99 latency where nothing is better in that.
    /// What is worse in the other is not recommended without a --slo that allows it
    #[arg(long, value_enum, value_name = "FIGURE")]
    objective: Option<Objective>,
    /// A limit that has to be kept, such as 'p99<20ms' or 'throughput>1000/s' (p50, p99, p99.9,
    /// throughput; repeatable)
    #[arg(long, value_name = "LIMIT")]
    slo: Vec<Limit>,
    /// Accept a setting that can lose this: everything, mount, data-files, torn-pages, file-growth,
    /// commits, binlog (repeatable)
    #[arg(long, value_name = "LOSS")]
    risk: Vec<LossKind>,
    /// Of a run with several conditions, the one that counts: its label or a part of it; by default
    /// all do
    #[arg(long, value_name = "CONDITION")]
    condition: Option<String>,
}

/// Figures that can be wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Objective {
    /// Operations or transactions a second
    Throughput,
    /// The 99th percentile of latency
    P99,
    /// Equal shares of the clients
    Fairness,
}

/// The flags of `recommend`.
#[derive(Debug, Args)]
pub struct RecommendArgs {
    /// The run: its name, its file, or `last`
    #[arg(default_value = "last")]
    run: String,
    #[command(flatten)]
    wish: WishFlags,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl RecommendArgs {
    /// Says what to set, or to keep what is there; exit code 3 where a limit is not shown to be kept.
    pub fn run(self) -> anyhow::Result<Exit> {
        let run = runs_folder::open(&runs_folder::find(&self.run)?)?.read()?;
        let (run, analysis, recommendation) = self.wish.recommend(&run)?;
        if self.json {
            say::json(&report::recommendation_json(&run, &analysis, &recommendation))?;
        } else {
            say::result(&report::recommendation(&run, &analysis, &recommendation, crate::WIDTH))?;
        }
        Ok(if recommendation.misses_limits() { Exit::Missed } else { Exit::Done })
    }
}

impl WishFlags {
    /// The recommendation of a run; of one with several sessions, of the last.
    pub fn recommend(&self, run: &Run) -> anyhow::Result<(Run, Analysis, Recommendation)> {
        if !run.later.is_empty() {
            say::note(&format!(
                "{} has {} sessions; this is about the last",
                run.name,
                run.later.len() + 1
            ));
        }
        let run = run.last_session();
        let analysis = Analysis::of(&run);
        let wish = Wish {
            objective: self.objective.map(|it| match it {
                Objective::Throughput => Metric::Throughput,
                Objective::P99 => Metric::P99,
                Objective::Fairness => Metric::Fairness,
            }),
            limits: self.slo.clone(),
            accepted: self.risk.iter().copied().collect(),
            condition: self.condition.as_deref().map(|it| condition(&analysis, it)).transpose()?,
        };
        let recommendation = recommend(&run, &analysis, &wish);
        Ok((run, analysis, recommendation))
    }
}

/// The group whose condition has this label, or has it as a part.
fn condition(analysis: &Analysis, wanted: &str) -> anyhow::Result<usize> {
    let labels: Vec<&str> = analysis.groups.iter().map(|it| it.condition.as_str()).collect();
    let exact = labels.iter().position(|label| *label == wanted);
    let parts: Vec<usize> =
        (0..labels.len()).filter(|place| labels[*place].contains(wanted)).collect();
    match (exact, &parts[..]) {
        (Some(place), _) => Ok(place),
        (None, [place]) => Ok(*place),
        (None, []) if labels == [""] => {
            Err(Usage("the run has one condition alone: leave --condition out".to_owned()).into())
        }
        (None, []) => Err(Usage(format!(
            "no condition of the run is called '{wanted}': there are {}",
            labels.join("; ")
        ))
        .into()),
        (None, several) => {
            let several: Vec<&str> = several.iter().map(|place| labels[*place]).collect();
            let text = format!("'{wanted}' fits several conditions: {}", several.join("; "));
            Err(Usage(text).into())
        }
    }
}
