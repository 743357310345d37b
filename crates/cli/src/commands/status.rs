//! `spindle status`.

use super::apply::now;
use crate::{exit::Exit, runs_folder, say};
use clap::Args;
use host::{AppliedJournal, Expired, Host, Owner, StandingOf, StandingState};
use record::EnvironmentChange;
use report::ShownStatus;
use runner::{Options, Target};

/// The flags of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print as JSON
    #[arg(long, group = "format")]
    json: bool,
    /// Print for node_exporter's textfile collector
    #[arg(long, group = "format")]
    prometheus: bool,
}

impl StatusArgs {
    /// Shows what is applied, and whether it is in force; exit code 3 where it is not.
    pub fn run(self) -> anyhow::Result<Exit> {
        let host = Host::here();
        let (applied, elsewhere): (Vec<AppliedJournal>, Vec<AppliedJournal>) =
            host::applied_anywhere(&host::state_folder()?)?
                .into_iter()
                .partition(|it| it.other_host.is_none());
        for AppliedJournal { application, other_host, .. } in &elsewhere {
            let host = other_host.as_deref().unwrap_or_default();
            say::note(&format!(
                "{} from run {} is applied on host {host}: ask there",
                application.label, application.run
            ));
        }
        let in_force = applied.iter().filter(|it| it.replaced_by(&applied).is_none());
        let all: Vec<ShownStatus> = in_force.map(|it| shown(&host, it)).collect();
        if self.json {
            say::json(&all)?;
        } else if self.prometheus {
            say::result(&report::status_prometheus(&all))?;
        } else if all.is_empty() {
            if let Some(Expired { run, label, at }) = Expired::last(&host::state_folder()?) {
                let text = format!(
                    "{label}, from run {run}, was taken back {} ago: its time was over, and nobody had said \
                     spindle apply --confirm.",
                    report::age(now() - at)
                );
                say::line(&report::wrap(&text, crate::WIDTH, 2))?;
            }
            say::line("Nothing is applied; `spindle apply RUN` sets what a run recommends.")?;
        } else {
            say::result(&report::status(&all, now(), crate::WIDTH))?;
        }
        Ok(if all.iter().any(ShownStatus::has_drifted) { Exit::Missed } else { Exit::Done })
    }
}

fn shown(host: &Host, applied: &AppliedJournal) -> ShownStatus {
    let application = &applied.application;
    let standings = applied.standings(host);
    let drifted: Vec<String> = standings
        .iter()
        .filter(|it| matches!(it.state, StandingState::Changed { .. }))
        .filter_map(|it| match &it.what {
            StandingOf::Setting { setting, .. } => Some(setting.to_string()),
            _ => None,
        })
        .collect();
    ShownStatus {
        name: applied.name(),
        run: application.run.clone(),
        label: application.label.clone(),
        replaces: application.replaces.clone(),
        applied_at: application.applied_at,
        measured_at: application.measured_at,
        confirm_by: application.confirm_by.filter(|_| !applied.confirmed),
        suspects: suspects(host, applied, &drifted),
        changed: changed(applied),
        standings,
    }
}

/// Who else sets what is no longer in force.
fn suspects(host: &Host, applied: &AppliedJournal, drifted: &[String]) -> Vec<Owner> {
    let ours = |owner: &Owner| {
        applied
            .made
            .iter()
            .any(|made| matches!(made, host::Made::LastingFile { path, .. } if *path == owner.file))
    };
    let devices: Vec<_> = applied
        .application
        .settings
        .iter()
        .filter_map(|it| Some(it.device.find_again(host)?.number))
        .collect();
    let mut all = host::owners(host, &devices);
    all.retain(|it| {
        it.active
            && !ours(it)
            && it.setting_names().iter().any(|name| drifted.iter().any(|it| it == name))
    });
    all
}

/// What is another than when the run measured; `None` where the run, or what it measured, cannot be
/// looked at any more.
fn changed(applied: &AppliedJournal) -> Option<Vec<EnvironmentChange>> {
    let run = runs_folder::open(&applied.application.run_file).ok()?.read().ok()?.last_session();
    let target = Target::parse(&run.plan.target).ok()?;
    let world = target.open(&Options::resuming(&run.plan, None, true)).ok()?;
    Some(run.environment.changes(&world.describe(&run.plan).ok()?))
}
