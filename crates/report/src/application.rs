//! Settings that are applied, and how they stand.

use crate::{Align, Table, sentences, words};
use host::{Owner, Setting, Standing, StandingOf, StandingState, UdevProof};
use record::{Aspect, EnvironmentChange};
use serde::Serialize;
use std::fmt::Write;

/// A setting that would be another, or is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownChange {
    /// The device's name.
    pub device: String,
    /// Which setting.
    pub setting: String,
    /// What it is.
    pub now: String,
    /// What it would be.
    pub then: String,
    /// Whether it only follows another.
    pub follows: bool,
}

/// What `spindle apply` did, or would do, for programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownApplication {
    /// The run.
    pub run: String,
    /// What it recommends; none where that is to keep what is there.
    pub label: Option<String>,
    /// What came of it.
    pub outcome: ApplicationOutcome,
    /// What is, or was, another.
    pub changes: Vec<ShownChange>,
    /// What speaks against it: with any of these it is applied with --anyway alone.
    pub objections: Vec<String>,
    /// Who else sets these settings.
    pub other_owners: Vec<String>,
    /// What is another than in the trials, though it is applied.
    pub deviations: Vec<ShownDeviation>,
    /// Until when it must be confirmed, in seconds since 1970; none where it need not be.
    pub confirm_by: Option<i64>,
    /// The journal's name, for `spindle undo --journal`; none where nothing was set.
    pub journal: Option<String>,
    /// The journal of what it is in the place of.
    pub replaces: Option<String>,
}

/// What came of applying a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplicationOutcome {
    /// The run recommends to keep what is there.
    NothingToApply,
    /// All of it is set already.
    AlreadySet,
    /// It was only looked at (--dry-run).
    WouldApply,
    /// It is applied, and was read back.
    Applied,
}

/// A setting that is another than in the trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ShownDeviation {
    /// The device's name.
    pub device: String,
    /// Which setting.
    pub setting: String,
    /// What it was in the trials.
    pub measured: String,
    /// What it is.
    pub reads: String,
}

/// Changes, a line each.
pub fn setting_diff(changes: &[ShownChange], width: usize) -> String {
    use Align::Left;
    let mut table =
        Table::new(&[("setting", Left), ("now", Left), ("", Left), ("then", Left), ("", Left)]);
    for change in changes {
        let follows = if change.follows { "(follows)" } else { "" };
        table.row([
            format!("{} {}", change.device, change.setting),
            change.now.clone(),
            "→".to_owned(),
            change.then.clone(),
            follows.to_owned(),
        ]);
    }
    table.text(width)
}

/// Who else sets these settings, a sentence each.
pub fn other_owners(owners: &[Owner], settings: &[Setting]) -> Vec<String> {
    let names: Vec<String> = settings.iter().map(ToString::to_string).collect();
    owners
        .iter()
        .filter(|owner| owner.active)
        .filter_map(|owner| {
            let shared: Vec<&str> = owner
                .setting_names()
                .into_iter()
                .filter(|setting| names.iter().any(|name| name == setting))
                .collect();
            (!shared.is_empty()).then(|| {
                let set = if owner.unknown.is_empty() { "is set" } else { "may be set" };
                format!(
                    "{} {set} by {}:{}, too: {}",
                    shared.join(", "),
                    owner.file.display(),
                    owner.line,
                    owner.text
                )
            })
        })
        .collect()
}

/// What was found when udev was asked to act on a rule, in a sentence.
pub fn udev_proof(proof: &UdevProof, device: &str) -> String {
    match proof {
        UdevProof::Proven => {
            format!("A change event of {device} made udev set all of it: the rule works.")
        }
        UdevProof::NotSet { settings } => {
            let each: Vec<String> =
                settings.iter().map(|(setting, reads)| format!("{setting} read {reads}")).collect();
            format!(
                "Not proven: after a change event of {device} {}. Another rule may come later, or udev does \
                 not see this device. The settings are in force now, and may not be after a reboot.",
                each.join(", ")
            )
        }
        UdevProof::NoProgram => format!(
            "Not proven: there is no udevadm here. Whether {device} gets these settings after a reboot is \
             not known."
        ),
        UdevProof::NotRunning => format!(
            "Not proven: udev does not run here. The rule is written, and nothing on this host acts on it \
             for {device} until udev runs."
        ),
    }
}

/// What is applied, and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownStatus {
    /// The journal's name.
    pub name: String,
    /// The run.
    pub run: String,
    /// What was set.
    pub label: String,
    /// The journal of the earlier one in whose place it is; that one is not listed.
    pub replaces: Option<String>,
    /// When, in seconds since 1970.
    pub applied_at: i64,
    /// When the run measured.
    pub measured_at: i64,
    /// Until when it must be confirmed; none where it need not be.
    pub confirm_by: Option<i64>,
    /// How each part stands.
    pub standings: Vec<Standing>,
    /// Who may have changed what is no longer in force.
    pub suspects: Vec<Owner>,
    /// What is another than when the run measured; none where that is not known.
    pub changed: Option<Vec<EnvironmentChange>>,
}

impl ShownStatus {
    /// Whether something is no longer as it was applied.
    pub fn has_drifted(&self) -> bool {
        self.standings.iter().any(|it| it.state != StandingState::InForce)
    }

    /// What changed that the verdict was given for: kernel, firmware, server and the like.
    fn matters(&self) -> impl Iterator<Item = &EnvironmentChange> {
        let matters = |aspect| {
            matches!(
                aspect,
                Aspect::Kernel
                    | Aspect::KernelBuild
                    | Aspect::Device
                    | Aspect::Server
                    | Aspect::Processor
                    | Aspect::Memory
                    | Aspect::MountOptions
            )
        };
        self.changed.iter().flatten().filter(move |change| matters(change.aspect))
    }
}

/// All that is applied, for a terminal. `now` is in seconds since 1970.
pub fn status(all: &[ShownStatus], now: i64, width: usize) -> String {
    let mut out = String::new();
    for status in all {
        let mut line = |indent: usize, text: &str| {
            let start = " ".repeat(indent);
            let _ = writeln!(out, "{}", words::wrap_after(&start, text, width, indent + 2));
        };
        line(0, &format!("{}, from run {}", status.label, status.run));
        line(
            2,
            &format!(
                "applied {} ago; the verdict is {} old ({})",
                age(now - status.applied_at),
                age(now - status.measured_at),
                words::date(status.measured_at)
            ),
        );
        line(2, &format!("its journal is {}", status.name));
        if status.replaces.is_some() {
            let text =
                format!("spindle undo --journal {} brings back the one before it", status.name);
            line(2, &text);
        }
        if let Some(by) = status.confirm_by {
            let left = match by > now {
                true => format!("is taken back in {} unless confirmed", age(by - now)),
                false => "should have been taken back: run spindle undo".to_owned(),
            };
            line(2, &format!("{left}; spindle apply --confirm keeps it"));
        }
        for standing in &status.standings {
            line(2, &self::standing(standing));
        }
        for owner in &status.suspects {
            let text =
                format!("It may have been {}:{}: {}", owner.file.display(), owner.line, owner.text);
            line(4, &text);
        }
        match &status.changed {
            None => line(2, "Whether kernel, firmware or server changed since is not known."),
            Some(_) if status.matters().next().is_none() => {
                line(2, "Kernel, firmware and server are those of the run.");
            }
            Some(_) => {
                for change in status.matters() {
                    line(2, &changed(change));
                }
                line(2, "The verdict was given for what was there before: measure again.");
            }
        }
    }
    out
}

fn changed(change: &EnvironmentChange) -> String {
    let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
    format!(
        "changed since the run: {}: {} → {}",
        sentences::changed_thing(change),
        said(&change.was),
        said(&change.is)
    )
}

fn standing(standing: &Standing) -> String {
    let what = what(&standing.what);
    match &standing.state {
        StandingState::InForce => format!("in force: {what}"),
        StandingState::Changed { to } => format!("CHANGED: {what}, is {to} now"),
        StandingState::EndedWithBoot { to } => format!(
            "ENDED: {what}, is {to} since the host was started again; spindle apply --persist makes it last"
        ),
        StandingState::Gone => format!("GONE: {what}"),
    }
}

fn what(what: &StandingOf) -> String {
    match what {
        StandingOf::Setting { device, setting, set_to } => format!("{device} {setting} {set_to}"),
        StandingOf::File { path } => path.display().to_string(),
        StandingOf::Profile { name } => format!("tuned profile {name}"),
    }
}

/// The same for node_exporter's textfile collector.
pub fn status_prometheus(all: &[ShownStatus]) -> String {
    let mut out = String::new();
    let mut metric = |name: &str, help: &str, samples: Vec<(String, i64)>| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in samples {
            let _ = writeln!(out, "{name}{labels} {value}");
        }
    };
    let of = |status: &ShownStatus, labels: &[(&str, &str)]| {
        let run = [("run", status.run.as_str())];
        let all =
            run.iter().chain(labels).map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        format!("{{{}}}", all.collect::<Vec<_>>().join(","))
    };
    metric(
        "spindle_applied",
        "Recommendations that are applied.",
        vec![(String::new(), all.len() as i64)],
    );
    let each = |value: &dyn Fn(&ShownStatus) -> i64| {
        all.iter().map(|status| (of(status, &[]), value(status))).collect::<Vec<_>>()
    };
    metric(
        "spindle_drift",
        "Whether something is no longer as it was applied.",
        each(&|status| i64::from(status.has_drifted())),
    );
    let standings = all.iter().flat_map(|status| {
        status.standings.iter().map(|it| {
            let labels = match &it.what {
                StandingOf::Setting { device, setting, set_to } => of(
                    status,
                    &[("device", device), ("setting", &setting.to_string()), ("value", set_to)],
                ),
                StandingOf::File { path } => of(status, &[("file", &path.display().to_string())]),
                StandingOf::Profile { name } => of(status, &[("profile", name)]),
            };
            (labels, i64::from(it.state == StandingState::InForce))
        })
    });
    metric("spindle_in_force", "Whether a part of it is as it was applied.", standings.collect());
    metric(
        "spindle_applied_timestamp_seconds",
        "When it was applied.",
        each(&|status| status.applied_at),
    );
    metric(
        "spindle_verdict_timestamp_seconds",
        "When the run measured.",
        each(&|status| status.measured_at),
    );
    metric(
        "spindle_environment_changes",
        "Kernel, firmware, server and the like that are others than in the run.",
        each(&|status| status.matters().count() as i64),
    );
    out
}

/// A label's value, as the exposition format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// `3 days`, `2h 05m`.
pub fn age(seconds: i64) -> String {
    let seconds = seconds.max(0) as u64;
    match seconds / 86_400 {
        0 => units::Nanos::from_secs(seconds).to_string(),
        1 => "a day".to_owned(),
        days => format!("{days} days"),
    }
}
