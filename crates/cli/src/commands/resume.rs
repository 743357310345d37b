//! `spindle resume`.

mod session;

use super::compare::{OutputFlags, execute};
use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    runs_folder, say,
};
use clap::Args;
use record::{Event, EventKind, RunState, SessionFactor, Store, StoreWait, Waiting};
use runner::{Options, Target};
use std::{path::PathBuf, sync::Arc};

/// The flags of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The run: its name, its file, or `last`
    run: String,
    /// Run the plan again as another session, and compare the sessions: `kernel` after a boot of
    /// another kernel (or of the same, to see what a boot makes), `server` with another version of
    /// the database server
    #[arg(long = "as", value_name = "FACTOR")]
    factor: Option<SessionFactor>,
    /// With --as server: the program of the private database server
    #[arg(long, value_name = "PATH", requires = "factor")]
    server_program: Option<PathBuf>,
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
        settle_pending(&stop)?;
        let path = runs_folder::find(&self.run)?;
        let tell = |wait: &StoreWait| say::note(&report::store_wait(wait));
        let waiting = Waiting { stop: Some(Arc::clone(&stop)), tell: Some(Box::new(tell)) };
        let mut store = Store::open_to_resume(&path, waiting)?;
        if let Some(factor) = self.factor {
            let wanted = session::Wanted {
                factor,
                server_program: self.server_program,
                confirm: self.confirm,
                use_existing: self.use_existing,
                output: &self.output,
            };
            return wanted.begin(store, &stop);
        }
        let whole = store.read()?;
        if whole.state == RunState::Done {
            return Err(Usage(format!(
                "{} is complete; `spindle report {}` shows it",
                whole.name, whole.name
            ))
            .into());
        }
        let mut run = whole.last_session();
        let options = Options::resuming(&run.plan, self.confirm.clone(), self.use_existing);
        let world = Target::parse(&run.plan.target)?.open(&options)?;
        let now = world.describe(&run.plan)?;
        if let Some(difference) = run.environment.difference(&now) {
            let next = match difference.what {
                "kernel" => format!(
                    "to compare the two kernels, begin a session with: spindle resume {} --as kernel",
                    run.name
                ),
                _ => "start a new comparison".to_owned(),
            };
            return Err(Usage(format!(
                "{} was made elsewhere, and its trials cannot be compared with new ones here: the {} \
                 was {} and is {}; {next}",
                run.name, difference.what, difference.was, difference.is
            ))
            .into());
        }
        session::refuse_another_boot(&whole, &now)?;
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
