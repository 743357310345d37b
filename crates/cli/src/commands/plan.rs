//! `spindle plan`.

use crate::{
    exit::{Exit, Usage},
    flags::ComparisonFlags,
    say,
};
use clap::Args;
use plan::Plan;
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
    let target = raw.target.take().ok_or_else(|| {
        Usage(
            "no target: name a directory, a file or a block device, such as `spindle compare \
             /var/lib/mysql`"
                .to_owned(),
        )
    })?;
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
