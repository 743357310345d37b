//! Watching whether somebody sets back what was applied: tuned may strike minutes later.

use crate::{exit::Exit, say};
use host::{Host, StandingOf, StandingState};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};
use units::Nanos;

/// Looks once a second for as long as `time`, and tells how that ended; exit code 3 as soon as something is
/// no longer in force.
pub fn watch(
    host: &Host,
    journal: &Path,
    time: Nanos,
    stop: &AtomicBool,
    tell: &dyn Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Exit> {
    say::note(&format!("watching for {time}; Ctrl-C ends that and leaves all in force"));
    let begun = Instant::now();
    while begun.elapsed() < time.as_duration() {
        if stop.load(Ordering::Relaxed) {
            tell("Left in force, and no longer watched.")?;
            return Ok(Exit::Done);
        }
        let folder = journal.parent().unwrap_or(Path::new("/"));
        let ours = host::applied(folder)?.into_iter().find(|it| it.path == journal);
        let Some(ours) = ours else {
            tell("It was taken back meanwhile.")?;
            return Ok(Exit::Missed);
        };
        let moved = ours.standings(host).into_iter().find(|it| it.state != StandingState::InForce);
        if let Some(moved) = moved {
            let after = Nanos::from(begun.elapsed());
            let what = match &moved.what {
                StandingOf::Setting { device, setting, .. } => format!("{device} {setting}"),
                StandingOf::File { path } => path.display().to_string(),
                StandingOf::Profile { name } => format!("tuned profile {name}"),
            };
            tell(&format!(
                "{what} is no longer as it was applied, after {after}: spindle status says more."
            ))?;
            return Ok(Exit::Missed);
        }
        let left = time.as_duration().saturating_sub(begun.elapsed());
        sleep(left.min(Duration::from_secs(1)));
    }
    tell("Nobody set it back.")?;
    Ok(Exit::Done)
}
