//! `spindle plan`.

use crate::{
    exit::{Exit, Usage},
    flags::ComparisonFlags,
    say,
};
use clap::Args;
use plan::{Plan, RawPlan};
use runner::World;

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
        let (plan, world) = resolve(&self.comparison)?;
        if self.json {
            say::json(&plan)?;
        } else {
            say::result(&report::plan_text(&plan, &world.intentions(&plan), crate::WIDTH))?;
        }
        Ok(Exit::Done)
    }
}

/// The world that a target names, and the plan made for it.
pub fn resolve(flags: &ComparisonFlags) -> anyhow::Result<(Plan, Box<dyn World>)> {
    let mut raw = flags.raw()?;
    let target = match raw.target.take() {
        Some(target) => target,
        None => target_usual(&raw)?,
    };
    let target = runner::lasting(&target);
    raw.target = Some(target.clone());
    if let Some(replay) = &mut raw.replay {
        // The run may be resumed from another folder.
        replay.file = std::path::absolute(&replay.file)?.to_string_lossy().into_owned();
    }
    let mut world = runner::open(&target, &raw)?;
    let offer = world.offer()?;
    let plan = raw
        .resolve(&offer, &|plan, cell| world.refuse(plan, cell))
        .map_err(|error| Usage(error.to_string()))?;
    Ok((plan, world))
}

/// What is shown of Spindle where nothing is named and nothing can be measured.
const SHOWN: &str = "hdd-15k";

/// Without a target: the simulated world where the host allows nothing else, and says why; else it is
/// the user's to name one.
fn target_usual(raw: &RawPlan) -> anyhow::Result<String> {
    let Err(error) = runner::open(&format!("emulated:{SHOWN}"), raw) else {
        return Err(Usage(format!(
            "no target: name a directory, a file or a block device, such as `spindle compare \
             /var/lib/mysql`; or emulated:{SHOWN} for a disk that you do not have, or \
             simulated:{SHOWN} for a kernel that you do not have (`spindle profiles` lists devices)"
        ))
        .into());
    };
    say::note(&format!(
        "no target is named, and this host allows no device of our own ({error}): here is a \
         comparison in the simulated world, simulated:{SHOWN}; to measure storage, name a directory"
    ));
    Ok(format!("simulated:{SHOWN}"))
}
