//! Putting the host back: from the entries of a journal, of this process or of one that has ended.
//!
//! In reverse order, each step verified. Where the journal is damaged it does what the readable
//! entries prove, says what it does not know, and leaves that alone.

use crate::{
    Change, DeviceNumber, Entry, Event, FileId, Host, HostIdentity, Identity, Made, Outcome,
    PendingJournal, Setting, Snapshot,
    error::{Result, io_error},
    journal::{APPLIED, Reading, VERSION, boot_id, sync_folder},
    queue_folder::QueueFolder,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

/// One thing put back, or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What: "vda (254:0) nr_requests".
    pub what: String,
    /// What it was found at and what it is to be: "64 → 256"; empty for things that were made.
    pub change: String,
    /// What came of it.
    pub outcome: Outcome,
}

/// What an undo did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoReport {
    /// The journal.
    pub journal: PathBuf,
    /// The command whose changes these were, when the journal says.
    pub command: Option<String>,
    /// Every step, in the order in which it was done.
    pub steps: Vec<Step>,
    /// What the journal could not say.
    pub unknown: Vec<String>,
    /// The host that wrote it, where that is another: then nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_host: Option<String>,
    /// Where the journal is kept, when something is left; `None` when it was removed.
    pub kept: Option<PathBuf>,
}

impl UndoReport {
    /// Whether everything that is known is as it was, and everything is known. What another host changed is no matter
    /// of this one.
    pub fn is_complete(&self) -> bool {
        self.other_host.is_some() || self.is_done()
    }

    fn is_done(&self) -> bool {
        self.unknown.is_empty() && self.steps.iter().all(|step| step.outcome.is_right())
    }
}

/// The journals in `folder` that other hosts wrote, which can be undone there alone: what an undo here says of them.
pub fn of_other_hosts(host: &Host, folder: &Path) -> Vec<UndoReport> {
    let here = HostIdentity::read(host);
    let is_journal =
        |path: &PathBuf| path.extension().is_some_and(|it| it == "journal" || it == APPLIED);
    let paths = crate::tree::names(folder).into_iter().map(|name| folder.join(name));
    let of = |path: PathBuf| {
        let reading = Reading::of(&fs::read(&path).ok()?);
        Some(UndoReport {
            command: reading.started().map(|(.., command)| command.to_owned()),
            other_host: Some(reading.other_host(&here)?.name.clone()),
            kept: Some(path.clone()),
            journal: path,
            ..UndoReport::default()
        })
    };
    paths.filter(is_journal).filter_map(of).collect()
}

/// Puts back what a process that has ended had changed, and removes its journal when all is well. What another host
/// changed is left alone.
///
/// A journal with steps that may succeed later stays pending; one with steps that never can, or with
/// unreadable lines, is kept under the name `….kept` and not offered again.
pub fn undo(host: &Host, journal: PendingJournal) -> Result<UndoReport> {
    let reading = &journal.reading;
    let mut report = UndoReport {
        journal: journal.path.clone(),
        command: reading.started().map(|(.., command)| command.to_owned()),
        ..UndoReport::default()
    };
    if let Some(other) = reading.other_host(&HostIdentity::read(host)) {
        report.other_host = Some(other.name.clone());
        report.kept = Some(journal.path.clone());
        return Ok(report);
    }
    report.unknown.extend(reading.damage.iter().map(ToString::to_string));
    match reading.started() {
        Some((version, ..)) if version > VERSION => {
            report.unknown.push(format!(
                "the journal is of version {version} and this program reads up to {VERSION}: \
                 undo it with the program that wrote it"
            ));
            report.kept = Some(journal.path.clone());
            return Ok(report);
        }
        Some((_, boot, ..)) if boot != boot_id(host) => {
            undo_after_restart(host, reading, &mut report)
        }
        _ => undo_entries(host, reading, &Held::new(), &mut report),
    }
    let folder = journal.path.parent().map(PathBuf::from).unwrap_or_default();
    if report.steps.iter().any(|step| matches!(step.outcome, Outcome::Failed { .. })) {
        report.kept = Some(journal.path.clone());
    } else if report.is_complete() {
        fs::remove_file(&journal.path).map_err(io_error("delete", &journal.path))?;
        sync_folder(&folder)?;
    } else {
        let kept = journal.path.with_extension("journal.kept");
        fs::rename(&journal.path, &kept).map_err(io_error("rename", &journal.path))?;
        sync_folder(&folder)?;
        report.kept = Some(kept);
    }
    Ok(report)
}

/// Queues, loop devices, mounts, groups and processes ended with the boot; files did not, and a rule
/// among them has set the queues again.
fn undo_after_restart(host: &Host, reading: &Reading, report: &mut UndoReport) {
    let all = things(&reading.entries);
    let lasting = has_rule(&all);
    for thing in all.into_iter().rev() {
        match thing {
            Thing::Made { made, id, .. } if made.outlives_boot() => report.steps.push(Step {
                what: made.title(),
                change: String::new(),
                outcome: made.unmake(host, id, None),
            }),
            Thing::Queue(queue) if lasting => {
                if let Some(queue) = set_again(host, queue) {
                    report.steps.extend(restore_queue(host, &queue, false, &mut |_| Ok(())));
                }
            }
            Thing::Made { .. } | Thing::Queue(_) => {}
        }
    }
}

/// A device of an earlier boot as it is now, if something set it again as we had.
fn set_again(host: &Host, queue: ChangedQueue) -> Option<ChangedQueue> {
    let device = queue.device.find_again(host)?;
    let folder = QueueFolder::of(host, device.number).ok()?;
    // Any value that it had from us: when the rule was tried, the originals were written last by us, and
    // what is in force by udev.
    let is_ours = queue.changes.iter().any(|change| {
        change.original.as_ref() != Some(&change.after)
            && folder.read(&change.what).is_ok_and(|reads| reads == change.after)
    });
    is_ours.then_some(ChangedQueue { device, ..queue })
}

/// Whether there is something that sets the queues again when their devices appear.
fn has_rule(all: &[Thing]) -> bool {
    all.iter().any(|it| matches!(it, Thing::Made { made: Made::LastingFile { .. }, .. }))
}

/// Whether a device of this boot went and came back since.
fn came_back(host: &Host, device: &Identity) -> bool {
    let under_its_number = Identity::read(host, device.number);
    under_its_number.map_or(true, |now| device.difference(&now).is_some())
        && device.find_again(host).is_some()
}

/// What this process made and holds open, by the numbers of the entries that announced it.
pub(crate) type Held = BTreeMap<u64, Arc<OwnedFd>>;

/// Does all steps of `reading` in reverse order and adds them to `report`.
pub(crate) fn undo_entries(host: &Host, reading: &Reading, held: &Held, report: &mut UndoReport) {
    let damaged = !reading.damage.is_empty();
    let all = things(&reading.entries);
    let lasting = has_rule(&all);
    for thing in all.into_iter().rev() {
        match thing {
            // It came with the kernel's defaults, and the rule set it.
            Thing::Queue(queue) if lasting && came_back(host, &queue.device) => {
                if let Some(queue) = set_again(host, queue) {
                    report.steps.extend(restore_queue(host, &queue, damaged, &mut |_| Ok(())));
                }
            }
            Thing::Made { n, made, id } => report.steps.push(Step {
                what: made.title(),
                change: String::new(),
                outcome: made.unmake(host, id, held.get(&n).map(AsFd::as_fd)),
            }),
            Thing::Queue(queue) => {
                report.steps.extend(restore_queue(host, &queue, damaged, &mut |_| Ok(())));
                if damaged {
                    report.unknown.extend(unexplained(host, &queue));
                }
            }
        }
    }
}

/// What there is to put back, in the order in which it was begun.
pub(crate) enum Thing {
    /// Something made and not yet gone.
    Made { n: u64, made: Made, id: Option<FileId> },
    /// A device whose settings were changed and not yet restored.
    Queue(ChangedQueue),
}

/// A device's settings before, and what was done to them.
#[derive(Clone, Debug)]
pub(crate) struct ChangedQueue {
    pub device: Identity,
    /// `None` when its line cannot be read.
    pub snapshot: Option<Snapshot>,
    pub changes: Vec<Change>,
}

pub(crate) fn things(entries: &[Entry]) -> Vec<Thing> {
    let mut things: Vec<Thing> = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::Started { .. }
            | Event::Measures { .. }
            | Event::Applied(_)
            | Event::Confirmed => {}
            Event::Make(made) => {
                things.push(Thing::Made { n: entry.n, made: made.clone(), id: None });
            }
            Event::Is { n, id: found } => {
                for thing in &mut things {
                    if let Thing::Made { n: its, id, .. } = thing
                        && its == n
                    {
                        *id = Some(*found);
                    }
                }
            }
            Event::Gone { n } => {
                things.retain(|thing| !matches!(thing, Thing::Made { n: its, .. } if its == n));
            }
            Event::Snapshot(snapshot) => things.push(Thing::Queue(ChangedQueue {
                device: snapshot.device.clone(),
                snapshot: Some(snapshot.clone()),
                changes: Vec::new(),
            })),
            Event::Change(change) => {
                queue_of(&mut things, &change.device).changes.push(change.clone())
            }
            Event::Restored { device } => things.retain(
                |thing| !matches!(thing, Thing::Queue(queue) if queue.device.number == *device),
            ),
        }
    }
    things
}

/// The device's open record; a new one without a snapshot when the line that opened it is lost.
fn queue_of<'a>(things: &'a mut Vec<Thing>, device: &Identity) -> &'a mut ChangedQueue {
    let found = things
        .iter()
        .rposition(|thing| matches!(thing, Thing::Queue(queue) if queue.device == *device));
    let at = found.unwrap_or_else(|| {
        things.push(Thing::Queue(ChangedQueue {
            device: device.clone(),
            snapshot: None,
            changes: Vec::new(),
        }));
        things.len() - 1
    });
    match &mut things[at] {
        Thing::Queue(queue) => queue,
        Thing::Made { .. } => unreachable!("the index is that of a queue"),
    }
}

impl ChangedQueue {
    fn touched(&self) -> BTreeSet<&Setting> {
        self.changes.iter().map(|change| &change.what).collect()
    }

    /// Whether something that we changed may have moved it.
    fn may_have_moved(&self, setting: &Setting) -> bool {
        self.touched().into_iter().any(|changed| setting.is_moved_by(changed))
    }

    /// What is to be put back, in the order in which it must be: what we changed, and what may have
    /// moved with it.
    fn goals(&self) -> BTreeMap<Setting, String> {
        let mut goals: BTreeMap<Setting, String> = self
            .changes
            .iter()
            .filter_map(|change| Some((change.what.clone(), change.original.clone()?)))
            .collect();
        if let Some(snapshot) = &self.snapshot {
            let moved = snapshot.values.iter().filter(|(setting, _)| self.may_have_moved(setting));
            goals.extend(moved.map(|(setting, value)| (setting.clone(), value.clone())));
        }
        goals
    }

    /// Whether a readable entry accounts for the value that a setting has now.
    fn explains(&self, setting: &Setting, now: &str) -> bool {
        let ours = self.changes.iter().any(|change| change.what == *setting && change.after == now);
        // The kernel moves these to values that no entry names.
        ours || self.may_have_moved(setting)
    }
}

/// Puts a device's settings back. `announce` is called with each before it is written.
pub(crate) fn restore_queue(
    host: &Host,
    queue: &ChangedQueue,
    damaged: bool,
    announce: &mut dyn FnMut(Change) -> Result<()>,
) -> Vec<Step> {
    let title = queue.device.title();
    let all = |outcome: Outcome| {
        let step = |(setting, value): (Setting, String)| Step {
            what: format!("{title} {setting}"),
            change: format!("→ {value}"),
            outcome: outcome.clone(),
        };
        queue.goals().into_iter().map(step).collect::<Vec<_>>()
    };
    let now = match Identity::read(host, queue.device.number) {
        Ok(now) => now,
        Err(_) if queue.device.leaves_nothing() => return all(Outcome::AlreadyRight),
        Err(_) => {
            let why = "the device is gone; if it comes back, the kernel gives it default settings";
            return all(Outcome::refused(why));
        }
    };
    if let Some(difference) = queue.device.difference(&now) {
        if queue.device.is_ublk() {
            return all(Outcome::AlreadyRight);
        }
        let why = format!("{title} is another device now: {difference}");
        return all(Outcome::refused(why));
    }
    let folder = match QueueFolder::of(host, queue.device.number) {
        Ok(folder) => folder,
        Err(error) => return all(Outcome::failed(error.to_string())),
    };
    let goals = queue.goals();
    let mut steps = Vec::new();
    for (setting, goal) in goals {
        let touched = queue.touched().contains(&setting);
        let step = restore_setting(&folder, queue, &setting, &goal, damaged, announce);
        // What could have moved and did not is not worth a line.
        if touched || step.outcome != Outcome::AlreadyRight {
            steps.push(Step { what: format!("{title} {setting}"), ..step });
        }
    }
    steps
}

fn restore_setting(
    folder: &QueueFolder,
    queue: &ChangedQueue,
    setting: &Setting,
    goal: &str,
    damaged: bool,
    announce: &mut dyn FnMut(Change) -> Result<()>,
) -> Step {
    let step = |change: String, outcome: Outcome| Step { what: String::new(), change, outcome };
    let now = match folder.read(setting) {
        Ok(now) => now,
        Err(error) => return step(format!("→ {goal}"), Outcome::failed(error.to_string())),
    };
    if now == goal {
        // It may show so and have fewer tags in use: see `use_all_tags`.
        if *setting == Setting::NrRequests
            && queue.touched().contains(setting)
            && let Err(error) = folder.use_all_tags()
        {
            return step(goal.to_owned(), Outcome::failed(error.to_string()));
        }
        return step(goal.to_owned(), Outcome::AlreadyRight);
    }
    let arrow = format!("{now} → {goal}");
    if damaged && !queue.explains(setting, &now) {
        let why = format!(
            "it reads {now}, which no readable line of the journal accounts for: \
             if you know it to be ours, write {goal} to it yourself"
        );
        return step(arrow, Outcome::refused(why));
    }
    let change = Change {
        device: queue.device.clone(),
        what: setting.clone(),
        before: now,
        after: goal.to_owned(),
        original: Some(goal.to_owned()),
    };
    let outcome = match announce(change).and_then(|()| folder.write(setting, goal)) {
        Ok(reads) if reads == goal => Outcome::Done,
        Ok(reads) => Outcome::failed(format!(
            "wrote {goal}, and it reads {reads}: a udev rule or tuned may own it"
        )),
        Err(error) => Outcome::failed(error.to_string()),
    };
    step(arrow, outcome)
}

/// Settings that differ from the snapshot and that no readable entry says we changed: only worth
/// telling when lines of the journal are lost.
fn unexplained(host: &Host, queue: &ChangedQueue) -> Vec<String> {
    let title = queue.device.title();
    let Some(snapshot) = &queue.snapshot else {
        return vec![format!(
            "{title}: the line with all its settings is unreadable; \
             only those that other lines name were put back"
        )];
    };
    let Ok(folder) = QueueFolder::of(host, queue.device.number) else {
        return Vec::new();
    };
    let goals = queue.goals();
    let differs = |(setting, before): (&Setting, &String)| {
        let now = folder.read(setting).ok()?;
        (now != *before && !goals.contains_key(setting)).then(|| {
            format!(
                "{title} {setting} reads {now} and was {before}; no readable line says that we \
                 changed it, so it was left alone"
            )
        })
    };
    snapshot.values.iter().filter_map(differs).collect()
}

/// Whether a removed journal file matters: it may have been removed by another undo.
pub(crate) fn removed(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The open record of a device among `things`.
pub(crate) fn open_queue(entries: &[Entry], number: DeviceNumber) -> Option<ChangedQueue> {
    things(entries).into_iter().rev().find_map(|thing| match thing {
        Thing::Queue(queue) if queue.device.number == number => Some(queue),
        _ => None,
    })
}
