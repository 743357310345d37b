//! `spindle apply`.

mod lasting;
mod replace;
mod watch;

use super::recommend::WishFlags;
use crate::{
    exit::{Exit, Usage},
    interrupt,
    pending::settle_pending,
    runs_folder, say,
};
use anyhow::Context;
use clap::{Args, ValueEnum};
use host::{Application, Changes, Expired, Host, KeptSetting, KeyedSettings};
use record::Run;
use replace::Earlier;
use report::{ApplicationOutcome, EmitFormat, ShownApplication, ShownChange, ShownDeviation};
use runner::{Deviation, Intended};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};
use units::Nanos;

/// The flags of `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The run: its name, its file, or `last`
    #[arg(required_unless_present = "confirm")]
    run: Option<String>,
    #[command(flatten)]
    wish: WishFlags,
    /// Show what would be set; change nothing
    #[arg(long, help_heading = "How")]
    dry_run: bool,
    /// Apply it though something speaks against it: another host, kernel or device than in the run, or
    /// a run that did not measure this host's storage
    #[arg(long, help_heading = "How")]
    anyway: bool,
    /// The device to set, or a directory on it, where it is not the run's
    #[arg(long, value_name = "PATH", help_heading = "How")]
    device: Option<PathBuf>,
    /// Take it back after this time, unless `spindle apply --confirm` is said before
    #[arg(long = "for", value_name = "TIME", help_heading = "How")]
    for_time: Option<Nanos>,
    /// Keep what was applied with --for
    #[arg(long, conflicts_with_all = ["run", "dry_run", "persist", "for_time", "replace", "emit", "json"])]
    #[arg(help_heading = "How")]
    confirm: bool,
    /// Put it in the place of what is applied: one step, back to the earlier settings if it fails. What the
    /// earlier one set and this one does not name stays. `spindle undo --journal NAME` takes this one back,
    /// `spindle undo` both
    #[arg(long, help_heading = "How")]
    replace: bool,
    /// Make it outlive a reboot: with a udev rule that knows the device by its world-wide name or
    /// serial number, and a tuned profile that includes the active one where tuned runs
    #[arg(long, conflicts_with_all = ["for_time", "dry_run"], help_heading = "How")]
    persist: bool,
    /// With --persist: how long to watch whether somebody sets it back; Ctrl-C ends the watch and
    /// leaves all in force
    #[arg(long, value_name = "TIME", requires = "persist", default_value = "3m")]
    #[arg(help_heading = "How")]
    watch_time: Nanos,
    /// With --persist: the folder of the udev rule
    #[arg(long, value_name = "FOLDER", requires = "persist", default_value = host::RULES_FOLDER)]
    #[arg(help_heading = "How")]
    rules_folder: PathBuf,
    /// Print the settings in a form in which hosts are configured; change nothing
    #[arg(long, value_enum, value_name = "FORMAT")]
    #[arg(conflicts_with_all = ["dry_run", "persist", "json"], help_heading = "How")]
    emit: Option<Emit>,
    /// Print what is set, or would be, as JSON; all else goes to stderr
    #[arg(long, help_heading = "How")]
    json: bool,
}

/// Forms of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// A file for /etc/udev/rules.d
    Udev,
    /// A tuned profile that includes the active one: scheduler and read-ahead alone
    Tuned,
    /// Ansible tasks that write the udev rule
    Ansible,
    /// A file for sysfsutils, by the device's name
    Sysfs,
    /// A shell script
    Shell,
}

impl ApplyArgs {
    /// Sets what the run recommends, and leaves it so.
    pub fn run(self) -> anyhow::Result<Exit> {
        if self.confirm {
            return confirm();
        }
        let file = runs_folder::find(self.run.as_deref().unwrap_or("last"))?;
        let (run, _, recommendation) = self.wish.recommend(&runs_folder::open(&file)?.read()?)?;
        let Some(cell) = recommendation.cell() else {
            self.line(&format!(
                "There is nothing to apply: keep what you have. spindle recommend {} says why.",
                run.name
            ))?;
            return self.done(&ShownApplication {
                run: run.name,
                label: None,
                outcome: ApplicationOutcome::NothingToApply,
                changes: Vec::new(),
                objections: Vec::new(),
                other_owners: Vec::new(),
                deviations: Vec::new(),
                confirm_by: None,
                journal: None,
                replaces: None,
            });
        };
        let host = Host::here();
        let intended = Intended::of(&host, &run, cell, self.device.as_deref())
            .map_err(|error| Usage(format!("{} cannot be applied: {error}", run.name)))?;
        if let Some(format) = self.emit {
            return self.print(format, &host, &run, &intended);
        }
        let shown = self.show(&host, &run, cell, &intended)?;
        if self.dry_run {
            return self.done(&shown);
        }
        self.refuse_objections(&run, &intended)?;
        if !intended.changes_anything() && !self.persist {
            self.line("All of it is set already.")?;
            return self.done(&shown);
        }
        let stop = interrupt::flag()?;
        settle_pending(&stop)?;
        let earlier = Earlier::find(&host, self.replace, self.persist, &intended)?;
        let earlier = earlier.as_ref();
        let about =
            Subject { host: &host, run: &run, cell, file: &file, intended: &intended, earlier };
        self.make(&about, shown, &stop)
    }

    /// A line for people: beside the result, where that is JSON.
    fn line(&self, text: &str) -> anyhow::Result<()> {
        match self.json {
            true => say::note(text),
            false => say::line(text)?,
        }
        Ok(())
    }

    /// Ends with what was done, where a program asks.
    fn done(&self, shown: &ShownApplication) -> anyhow::Result<Exit> {
        if self.json {
            say::json(shown)?;
        }
        Ok(Exit::Done)
    }

    /// What would be set, and what to know before that.
    fn show(
        &self,
        host: &Host,
        run: &Run,
        cell: usize,
        intended: &Intended,
    ) -> anyhow::Result<ShownApplication> {
        let changes = shown(intended);
        if !self.json {
            say::line(&format!("From run {}", run.name))?;
        }
        if !self.json && !changes.is_empty() {
            say::result(&report::setting_diff(&changes, crate::WIDTH))?;
        }
        let settings: Vec<_> =
            intended.devices.iter().flat_map(|it| it.named.keys().cloned()).collect();
        let devices: Vec<_> = intended.devices.iter().map(|it| it.device.number).collect();
        let other_owners = report::other_owners(&host::owners(host, &devices), &settings);
        let objections: Vec<String> = intended.objections.iter().map(|it| it.to_string()).collect();
        for note in other_owners.iter().chain(&objections) {
            say::note(note);
        }
        let outcome = match intended.changes_anything() {
            true => ApplicationOutcome::WouldApply,
            false => ApplicationOutcome::AlreadySet,
        };
        Ok(ShownApplication {
            run: run.name.clone(),
            label: Some(label_of(run, cell)),
            outcome,
            changes,
            objections,
            other_owners,
            deviations: Vec::new(),
            confirm_by: None,
            journal: None,
            replaces: None,
        })
    }

    fn refuse_objections(&self, run: &Run, intended: &Intended) -> anyhow::Result<()> {
        if self.anyway || intended.objections.is_empty() {
            return Ok(());
        }
        let all: Vec<String> = intended.objections.iter().map(ToString::to_string).collect();
        Err(Usage(format!(
            "{} is not applied: {}; --anyway applies it all the same",
            run.name,
            all.join("; ")
        ))
        .into())
    }

    fn print(
        &self,
        format: Emit,
        host: &Host,
        run: &Run,
        intended: &Intended,
    ) -> anyhow::Result<Exit> {
        for objection in &intended.objections {
            say::note(&objection.to_string());
        }
        let keyed = lasting::keyed(host, intended, None)?;
        let active = host::active_profile(host).unwrap_or_else(|| "balanced".to_owned());
        let format = match format {
            Emit::Udev => EmitFormat::Udev,
            Emit::Tuned => EmitFormat::Tuned,
            Emit::Ansible => EmitFormat::Ansible,
            Emit::Sysfs => EmitFormat::Sysfs,
            Emit::Shell => EmitFormat::Shell,
        };
        let name = host::rule_path(Path::new(""), &lasting::device_names(&keyed), "rule");
        let name = name.to_string_lossy();
        let about = format!(
            "made by Spindle from run {}; `spindle undo` does not know of it: it holds as long as it is there",
            run.name
        );
        match report::emit(format, &about, &keyed, &active, &name) {
            Some(text) => {
                let left = match format {
                    EmitFormat::Tuned => host::not_in_profile(&keyed),
                    _ => Vec::new(),
                };
                if !left.is_empty() {
                    say::note(&format!(
                        "NOT in this profile, because tuned has no option for it: {}. --emit udev has all",
                        left.join(", ")
                    ));
                }
                say::result(&text)?;
            }
            None => {
                return Err(Usage(
                    "tuned sets scheduler and read-ahead alone, and the recommendation is about neither: \
                     use --emit udev"
                        .to_owned(),
                )
                .into());
            }
        }
        Ok(Exit::Done)
    }

    fn make(
        &self,
        about: &Subject,
        mut shown: ShownApplication,
        stop: &AtomicBool,
    ) -> anyhow::Result<Exit> {
        let Subject { host, run, cell, file, intended, earlier } = *about;
        // What no rule can be written for is known before anything is set.
        let keys = self.persist.then(|| lasting::keyed(host, intended, None)).transpose()?;
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let mut changes = Changes::begin(host, &command)?;
        let mut kept = intended.apply(&mut changes, &run.plan.cells[cell])?;
        kept.extend(earlier.map(|it| it.stays(host, &kept)).unwrap_or_default());
        let mut notes = Vec::new();
        if keys.is_some() {
            let keyed = lasting::keyed(host, intended, Some(&kept))?;
            let words = self::about(run);
            notes = lasting::persist(&mut changes, &self.rules_folder, &words, &keyed, earlier)?;
        }
        let confirm_by = self.reverse_later(&mut changes)?;
        if let Some(drift) = changes.verify().first() {
            anyhow::bail!(
                "{} {} was set to {} and reads {} already: somebody else sets it (spindle inspect names \
                 owners); all is put back",
                drift.device,
                drift.setting,
                drift.set_to,
                drift.reads
            );
        }
        if stop.load(Ordering::Relaxed) {
            say::note("interrupted: all is put back");
            return Ok(Exit::Interrupted);
        }
        let application = Application {
            run: run.name.clone(),
            measured_at: run.started_at,
            label: label_of(run, cell),
            applied_at: now(),
            kernel: run.environment.kernel.clone(),
            run_file: std::path::absolute(file)?,
            settings: kept,
            confirm_by,
            replaces: earlier.map(Earlier::name),
        };
        shown.replaces = application.replaces.clone();
        let journal = changes.keep(application)?;
        Expired::forget(&host::state_folder()?)?;
        let name = journal.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        self.tell(about, &notes, confirm_by, &name)?;
        shown.journal = Some(name);
        shown.outcome = ApplicationOutcome::Applied;
        shown.confirm_by = confirm_by;
        shown.deviations = intended.deviations(host).into_iter().map(deviation).collect();
        self.done(&shown)?;
        match self.persist && self.watch_time > Nanos::ZERO {
            true => watch::watch(host, &journal, self.watch_time, stop, &|text| self.line(text)),
            false => Ok(Exit::Done),
        }
    }

    /// Starts what takes it back; gives until when it must be confirmed.
    fn reverse_later(&self, changes: &mut Changes) -> anyhow::Result<Option<i64>> {
        let Some(time) = self.for_time else { return Ok(None) };
        let seconds = (time.as_secs_f64().ceil() as u64).max(1);
        let name = changes.journal().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        changes.reverse_after(seconds, &program, &["reverse", &name])?;
        Ok(Some(now() + seconds as i64))
    }

    fn tell(
        &self,
        about: &Subject,
        notes: &[String],
        confirm_by: Option<i64>,
        journal: &str,
    ) -> anyhow::Result<()> {
        let line = |text: &str| match self.json {
            true => self.line(text),
            false => say::line(&report::wrap(text, crate::WIDTH, 2)),
        };
        line("Applied, and read back.")?;
        for it in about.intended.deviations(about.host) {
            line(&format!(
                "{} {} is {} and was {} in the trials: the verdict was given for that.",
                it.device, it.setting, it.reads, it.measured
            ))?;
        }
        if let Some(earlier) = about.earlier {
            line(&format!(
                "It is in the place of {}, which is in force again after: spindle undo --journal {journal}",
                earlier.label()
            ))?;
        }
        for note in notes {
            line(note)?;
        }
        line(&format!("Its journal is {journal}."))?;
        match (confirm_by, self.persist) {
            (Some(_), _) => line(&format!(
                "It is taken back in {} unless you run: spindle apply --confirm",
                self.for_time.unwrap_or_default()
            )),
            (None, true) => {
                line("spindle status shows whether it stays; spindle undo takes it back.")
            }
            (None, false) => line(
                "It lasts until the next reboot; --persist would make it outlive that. spindle undo takes \
                 it back.",
            ),
        }
    }
}

/// What is applied.
#[derive(Clone, Copy)]
struct Subject<'a> {
    host: &'a Host,
    run: &'a Run,
    cell: usize,
    file: &'a Path,
    intended: &'a Intended,
    earlier: Option<&'a Earlier>,
}

/// What a cell sets, in words.
fn label_of(run: &Run, cell: usize) -> String {
    run.plan.cells[cell].phrase(&run.plan.compared())
}

fn deviation(from: Deviation) -> ShownDeviation {
    ShownDeviation {
        device: from.device,
        setting: from.setting.to_string(),
        measured: from.measured,
        reads: from.reads,
    }
}

fn shown(intended: &Intended) -> Vec<ShownChange> {
    let each = intended.devices.iter().flat_map(|it| {
        it.changes.iter().map(|change| ShownChange {
            device: it.device.name.clone(),
            setting: change.setting.to_string(),
            now: change.now.clone(),
            then: change.then.clone(),
            follows: change.follows,
        })
    });
    each.collect()
}

/// Where settings come from, for those who find them.
fn about(run: &Run) -> String {
    format!("made by Spindle from run {}; `spindle undo` takes it back", run.name)
}

fn usage(text: String) -> anyhow::Error {
    Usage(text).into()
}

/// Keeps what waits to be confirmed.
fn confirm() -> anyhow::Result<Exit> {
    interrupt::hold()?;
    let waiting: Vec<_> = host::applied(&host::state_folder()?)?
        .into_iter()
        .filter(|applied| !applied.confirmed)
        .collect();
    if waiting.is_empty() {
        return Err(Usage("nothing waits to be confirmed".to_owned()).into());
    }
    for applied in waiting {
        applied.confirm(&Host::here())?;
        say::line(&format!(
            "Kept: {}, until the next reboot or spindle undo.",
            applied.application.label
        ))?;
    }
    Ok(Exit::Done)
}

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// What a device is to have in force.
fn settings_of(kept: &[KeptSetting], keyed: &KeyedSettings) -> Vec<(host::Setting, String)> {
    let of = |it: &&KeptSetting| it.device.number == keyed.device.number;
    let mut all: Vec<_> =
        kept.iter().filter(of).map(|it| (it.setting.clone(), it.value.clone())).collect();
    all.sort();
    all
}
