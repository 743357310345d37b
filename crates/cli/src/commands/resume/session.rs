//! `spindle resume --as FACTOR`: the plan of a run once more, under another kernel or server.

use crate::commands::compare::{OutputFlags, execute};
use crate::{
    exit::{Exit, Usage},
    say,
};
use plan::Plan;
use record::{Environment, Run, Session, SessionFactor, Store, WorldKind};
use runner::{Options, Target, World};
use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::{SystemTime, UNIX_EPOCH},
};

/// A session that the user wants.
pub struct Wanted<'a> {
    /// What it differs in from the others.
    pub factor: SessionFactor,
    /// The private server's program, where it is another.
    pub server_program: Option<PathBuf>,
    /// Consent to overwrite the device.
    pub confirm: Option<String>,
    /// Consent to use a running server's database.
    pub use_existing: bool,
    /// How it is shown.
    pub output: &'a OutputFlags,
}

impl Wanted<'_> {
    /// Begins the session and runs it.
    pub fn begin(self, mut store: Store, stop: &Arc<AtomicBool>) -> anyhow::Result<Exit> {
        let run = store.read()?;
        let factor = self.factor;
        refuse(&run, factor, self.server_program.is_some())?;
        let mut plan = run.plan.clone();
        if self.server_program.is_some() {
            plan.workload.server_program.clone_from(&self.server_program);
        }
        let options = Options::resuming(&plan, self.confirm, self.use_existing);
        let world = Target::parse(&plan.target)?.open(&options)?;
        let now = world.describe(&plan)?;
        refuse_elsewhere(&run, factor, &now)?;
        refuse_cells(world.as_ref(), &plan)?;
        refuse_level(&run, factor, &now)?;
        let session = Session {
            factor,
            started_at: SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64,
            environment: now,
            server_program: self.server_program,
            trials: Vec::new(),
            events: Vec::new(),
        };
        if !self.output.quiet() {
            let level = factor.level(&session.environment).unwrap_or_default();
            let number = run.later.len() + 2;
            say::note(&format!("session {number} of {}: {factor} {level}", run.name));
        }
        let state = run.state;
        store.begin_session(&session)?;
        let run = store.read()?.last_session();
        let ended = execute(world.as_ref(), run, &mut store, stop, self.output);
        if ended.is_err() && store.drop_empty_session()? {
            // Nothing of it was measured: the run is what it was.
            store.set_state(state)?;
        }
        ended
    }
}

/// What can be told from the run alone.
fn refuse(run: &Run, factor: SessionFactor, another_program: bool) -> Result<(), Usage> {
    let name = &run.name;
    if run.environment.world == WorldKind::Simulated {
        return Err(Usage(format!(
            "{name} is simulated, and what is simulated does not change with this host: name both in a \
             new comparison"
        )));
    }
    if let Some(other) = run.session_factor().filter(|other| *other != factor) {
        return Err(Usage(format!(
            "the sessions of {name} differ in the {other} already: start a new comparison for the {factor}"
        )));
    }
    if run.last_session().trials.is_empty() {
        return Err(Usage(format!(
            "{name} has nothing yet to compare with: `spindle resume {name}` goes on with it"
        )));
    }
    if factor == SessionFactor::Server && !run.plan.is_of_databases() {
        return Err(Usage(format!("{name} measures blocks, and needs no database server")));
    }
    match another_program && factor != SessionFactor::Server {
        true => Err(Usage("--server-program goes with --as server".to_owned())),
        false => Ok(()),
    }
}

/// The host must be the same but for the factor.
fn refuse_elsewhere(run: &Run, factor: SessionFactor, now: &Environment) -> Result<(), Usage> {
    match factor.difference(&run.environment, now) {
        Some(difference) => Err(Usage(format!(
            "{} was made elsewhere, and sessions may differ in the {factor} alone: the {} was {} and is \
             {}; start a new comparison",
            run.name, difference.what, difference.was, difference.is
        ))),
        None => Ok(()),
    }
}

/// Both levels must be known, and a session of a kernel needs a boot of its own.
fn refuse_level(run: &Run, factor: SessionFactor, now: &Environment) -> Result<(), Usage> {
    let name = &run.name;
    for (environment, which) in [(&run.environment, "its server's version"), (now, "the server")] {
        if factor.level(environment).is_none() {
            return Err(Usage(format!(
                "{name} does not say {which}: the file is of an older version of Spindle, or it compares \
                 several servers; start a new comparison"
            )));
        }
    }
    let of_this_boot = run.sessions().iter().position(|session| is_of_boot(session, now));
    match (factor, of_this_boot) {
        (SessionFactor::Kernel, Some(place)) => Err(Usage(format!(
            "session {} of {name} was made in this boot of Linux {}: boot another kernel, or this one \
             again to see what a boot makes, and then: spindle resume {name} --as kernel",
            place + 1,
            now.kernel
        ))),
        _ => Ok(()),
    }
}

/// Whether a session, or a part of it, was made since the present boot.
fn is_of_boot(session: &Run, now: &Environment) -> bool {
    let since = now
        .booted_at
        .is_some_and(|boot| session.trials.iter().any(|trial| trial.started_at >= boot));
    since || (!now.boot_id.is_empty() && session.environment.boot_id == now.boot_id)
}

/// A session of a kernel is of one boot: what is left of it cannot be made in another.
pub fn refuse_another_boot(run: &Run, now: &Environment) -> Result<(), Usage> {
    let (name, session) = (&run.name, run.last_session());
    let is_of_kernels = run.session_factor() == Some(SessionFactor::Kernel);
    match is_of_kernels && !is_of_boot(&session, now) {
        true => Err(Usage(format!(
            "session {} of {name} was made in another boot, and a session is of one: begin a new one \
             with: spindle resume {name} --as kernel",
            run.later.len() + 1
        ))),
        false => Ok(()),
    }
}

/// Cells that this kernel or server cannot have.
fn refuse_cells(world: &dyn World, plan: &Plan) -> Result<(), Usage> {
    let refused = plan.cells.iter().find_map(|cell| Some((cell, world.refuse(plan, cell)?)));
    match refused {
        Some((cell, reason)) => Err(Usage(format!(
            "{} is not possible here: {reason}; sessions have the same cells, so compare only what both \
             have",
            cell.label(&plan.factors)
        ))),
        None => Ok(()),
    }
}
