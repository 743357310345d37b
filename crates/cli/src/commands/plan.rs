//! `spindle plan`.

use crate::{
    exit::{Exit, Usage},
    flags::ComparisonFlags,
    say,
};
use clap::Args;
use plan::{Plan, RawPlan};
use record::WorldKind;
use runner::{Options, Target, World};
use units::Nanos;
use workload::Preset;

/// The flags of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    #[command(flatten)]
    comparison: ComparisonFlags,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl PlanArgs {
    /// Prints the plan; changes nothing.
    pub fn run(self) -> anyhow::Result<Exit> {
        if let Some(list) = self.comparison.list() {
            say::result(&list)?;
            return Ok(Exit::Done);
        }
        let (plan, world) = resolve(&self.comparison)?;
        if self.json {
            say::json(&plan)?;
        } else {
            say::result(&text(&plan, world.as_ref()))?;
        }
        Ok(Exit::Done)
    }
}

/// What a comparison will do.
pub fn text(plan: &Plan, world: &dyn World) -> String {
    let (intentions, caveats) = (world.intentions(plan), world.caveats());
    report::plan_text(plan, world.kind(), (&intentions, &caveats), crate::WIDTH)
}

/// The time that a comparison may take when neither budget nor rounds are named.
const DEFAULT_BUDGET: Nanos = Nanos::from_secs(300);

/// The same in the simulated world, where hours of a disk take a second.
const DEFAULT_SIMULATED_BUDGET: Nanos = Nanos::from_secs(60);

/// The world that a target names, and the plan made for it.
pub fn resolve(flags: &ComparisonFlags) -> anyhow::Result<(Plan, Box<dyn World>)> {
    let mut raw = flags.raw()?;
    let options = Options::of(&raw);
    let target = match raw.target.take() {
        Some(target) => Target::parse(&target)?,
        None => default_target(&options)?,
    };
    raw.target = Some(target.to_string());
    if let Some(replay) = &mut raw.replay {
        // The run may be resumed from another directory.
        replay.file = std::path::absolute(&replay.file)?.to_string_lossy().into_owned();
    }
    let world = target.open(&options)?;
    let timed = raw.rounds.is_some()
        || raw.measure.is_some()
        || raw.virtual_budget.is_some()
        || raw.detect_percent.is_some();
    if raw.budget.is_none() && !timed {
        raw.budget = Some(match world.kind() {
            WorldKind::Simulated => DEFAULT_SIMULATED_BUDGET,
            _ => DEFAULT_BUDGET,
        });
    }
    if let Some(preset) = raw.preset {
        raw = raw_with(preset, raw, world.as_ref())?;
    }
    let offer = world.offer()?;
    let plan = raw
        .resolve(&offer, &|plan, cell| world.refuse(plan, cell))
        .map_err(|error| Usage(error.to_string()))?;
    Ok((plan, world))
}

/// The plan with what a preset stands for on its server.
fn raw_with(preset: Preset, raw: RawPlan, world: &dyn World) -> anyhow::Result<RawPlan> {
    let facts = world.preset(&raw, preset)?;
    Ok(raw.with_preset(&facts))
}

/// What is shown of Spindle where nothing is named and nothing can be measured.
const SHOWN: &str = "hdd-15k";

/// Without a target: the simulated world where the host allows nothing else, with the reason; else the
/// user has to name one.
fn default_target(options: &Options) -> anyhow::Result<Target> {
    let emulated = Target::parse(&format!("emulated:{SHOWN}"))?;
    let Err(error) = emulated.open(options) else {
        return Err(Usage(format!(
            "no target: name a directory, a file or a block device, such as `spindle compare \
             /var/lib/mysql`; or emulated:{SHOWN} for a disk that you do not have, or \
             simulated:{SHOWN} for a kernel that you do not have (`spindle profiles` lists devices)"
        ))
        .into());
    };
    say::note(&format!(
        "no target is named, and this host allows no emulated device ({error}): here is a \
         comparison in the simulated world, simulated:{SHOWN}; to measure storage, name a directory"
    ));
    Ok(Target::parse(&format!("simulated:{SHOWN}"))?)
}
