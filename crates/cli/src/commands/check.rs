//! `spindle check`.

use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    progress::Progress,
    runs_folder, say,
};
use analysis::{
    Analysis, CheckOutcome, CheckPlan, Finding, FindingKind, check_outcome, check_plan, findings,
};
use anyhow::Context;
use clap::Args;
use record::Run;
use runner::{Ending, Options, Target};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{SystemTime, UNIX_EPOCH},
};

/// The flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The run: its name, its file, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Check only this finding; several by repeating the flag [default: all]
    #[arg(long = "finding", value_name = "FINDING")]
    only: Vec<String>,
    /// Show what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// The block device's serial, as your consent to overwrite it
    #[arg(long, value_name = "SERIAL")]
    confirm: Option<String>,
    /// Use the database of a running server though it holds what Spindle did not make
    #[arg(long)]
    use_existing: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// No progress, only the outcomes
    #[arg(long, short)]
    quiet: bool,
}

impl CheckArgs {
    /// Runs the trials that could prove findings wrong, and says what became of each.
    pub fn run(self) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        let run = runs_folder::open(&runs_folder::find(&self.run)?)?.read()?.last_session();
        let wanted = self.wanted(&run)?;
        if !self.dry_run {
            settle_pending(&stop)?;
        }
        let mut outcomes = Vec::new();
        for finding in wanted {
            let checked = match check_plan(&run, &finding) {
                Err(reason) => report::Checked::NotRun { reason: reason.to_string() },
                Ok(check) if self.dry_run => {
                    report::Checked::Planned { plan: Box::new(check.plan) }
                }
                Ok(check) => match self.execute(&run, &finding, check, &stop)? {
                    Some(checked) => checked,
                    None => return Ok(Exit::Interrupted),
                },
            };
            if !self.json {
                say::result(&report::checked(&run, &finding, &checked, crate::WIDTH))?;
            }
            outcomes.push((finding, checked));
        }
        if self.json {
            say::json(&report::checked_json(&outcomes))?;
        } else if outcomes.is_empty() {
            say::result("The run has no findings: there is nothing to check.\n")?;
        }
        Ok(Exit::Done)
    }

    fn wanted(&self, run: &Run) -> anyhow::Result<Vec<Finding>> {
        let all = findings(run, &Analysis::of(run));
        for name in &self.only {
            if !FindingKind::all().any(|kind| kind.id() == name) {
                let known: Vec<&str> = FindingKind::all().map(FindingKind::id).collect();
                return Err(Usage(format!(
                    "finding '{name}' is not known: there are {}",
                    known.join(", ")
                ))
                .into());
            }
            if !all.iter().any(|finding| finding.kind.id() == name) {
                return Err(Usage(format!("{} does not show the finding {name}", run.name)).into());
            }
        }
        let is_wanted = |finding: &Finding| {
            self.only.is_empty() || self.only.iter().any(|name| name == finding.kind.id())
        };
        Ok(all.into_iter().filter(is_wanted).collect())
    }

    /// Runs one check; none if the user interrupted it.
    fn execute(
        &self,
        run: &Run,
        finding: &Finding,
        check: CheckPlan,
        stop: &Arc<AtomicBool>,
    ) -> anyhow::Result<Option<report::Checked>> {
        let options = Options::resuming(&check.plan, self.confirm.clone(), self.use_existing);
        let world = Target::parse(&check.plan.target)?.open(&options)?;
        let environment = world.describe(&check.plan)?;
        if let Some(difference) = run.environment.difference(&environment) {
            let reason = format!(
                "the {} was {} and is {}: a check here would be one of something else",
                difference.what, difference.was, difference.is
            );
            return Ok(Some(report::Checked::NotRun { reason }));
        }
        let refused = check.plan.cells.iter().find_map(|cell| world.refuse(&check.plan, cell));
        if let Some(refusal) = refused {
            return Ok(Some(report::Checked::NotRun { reason: refusal.to_string() }));
        }
        let name = format!("{}-check-{}", run.name, finding.kind.id());
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
        let mut store = runs_folder::begin(None, &name, started_at, &environment, &check.plan)?;
        let mut of_check = store.read()?;
        let mut progress = Progress::new(&of_check.plan, world.kind(), 0, self.quiet || self.json);
        store.set_waiting(progress.waiting(stop))?;
        let ended =
            runner::run_rounds(world.as_ref(), &mut of_check, &mut store, stop, &mut progress);
        progress.finish();
        let ending = ended.with_context(|| format!("checking {} failed", finding.kind.id()))?;
        if ending == Ending::Interrupted {
            return Ok(None);
        }
        let of_check = store.read()?;
        let outcome: CheckOutcome = check_outcome(finding, &check, &of_check);
        Ok(Some(report::Checked::Run {
            outcome,
            run: Box::new(of_check),
            file: store.path().to_owned(),
        }))
    }
}
