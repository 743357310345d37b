//! `spindle resume`.

use super::compare::{OutputFlags, execute};
use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    runs_folder,
};
use clap::Args;
use record::{Event, EventKind, RunState, Store};
use runner::{Options, Target};

/// The flags of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run: its name, its file, or `last`
    run: String,
    /// The block device's serial, as your consent to overwrite it
    #[arg(long, value_name = "SERIAL")]
    confirm: Option<String>,
    /// Use the database of a running server though it holds what Spindle did not make
    #[arg(long)]
    use_existing: bool,
    #[command(flatten)]
    output: OutputFlags,
}

impl ResumeArgs {
    /// Goes on where the run stopped.
    pub fn run(self) -> anyhow::Result<Exit> {
        let stop = interrupt::flag()?;
        settle_pending()?;
        let path = runs_folder::find(&self.run)?;
        let mut store = Store::open_to_resume(&path)?;
        let mut run = store.read()?;
        if run.state == RunState::Done {
            return Err(Usage(format!(
                "{} is complete; `spindle report {}` shows it",
                run.name, run.name
            ))
            .into());
        }
        let options = Options::resuming(&run.plan, self.confirm.clone(), self.use_existing);
        let world = Target::parse(&run.plan.target)?.open(&options)?;
        let now = world.describe(&run.plan)?;
        if let Some(difference) = run.environment.difference(&now) {
            return Err(Usage(format!(
                "{} was made elsewhere, and its trials cannot be compared with new ones here: the {} \
                 was {} and is {}; start a new comparison",
                run.name, difference.what, difference.was, difference.is
            ))
            .into());
        }
        let event = Event {
            round: run.rounds().saturating_sub(1),
            kind: EventKind::Resumed { trials: run.trials.len() as u64 },
        };
        store.add_event(&event)?;
        run.events.push(event);
        store.set_state(RunState::Running)?;
        execute(world.as_ref(), run, &mut store, &stop, &self.output)
    }
}
