//! Which emulated devices there are, and stopping them.

use super::{mounted_from, usage};
use crate::{exit::Exit, say};
use anyhow::{Context, bail};
use emulate::{Emulation, Transport};
use report::{Align, Table};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use units::Bytes;

/// A device that is up, as its program left it for others to find.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `/dev/loop7`.
    node: PathBuf,
    /// What it emulates.
    profile: String,
    /// How requests reach its server.
    transport: Transport,
    /// Its length.
    size: Bytes,
    /// Where its data are, as it was said.
    data: String,
    /// The program that holds it.
    pid: u32,
    /// When that began, in clock ticks since boot.
    started_ticks: u64,
    /// The process that holds its data.
    server: u32,
}

fn folder() -> anyhow::Result<PathBuf> {
    Ok(host::state_folder()?.join("emulated"))
}

impl Record {
    /// Of a device of this process.
    pub fn of(emulation: &Emulation, data: Option<&str>) -> Record {
        let pid = std::process::id();
        Record {
            node: emulation.node.clone(),
            profile: emulation.profile.name.clone(),
            transport: emulation.transport,
            size: emulation.size,
            data: data.unwrap_or("scratch file").to_owned(),
            pid,
            started_ticks: host::process_began(pid).unwrap_or_default(),
            server: emulation.server,
        }
    }

    fn path(&self) -> anyhow::Result<PathBuf> {
        Ok(folder()?.join(format!("{}.json", self.pid)))
    }

    /// Lets others find it.
    pub fn write(&self) -> anyhow::Result<()> {
        let path = self.path()?;
        let cannot = || format!("cannot write {}", path.display());
        fs::create_dir_all(folder()?).with_context(cannot)?;
        fs::write(&path, serde_json::to_vec(self)?).with_context(cannot)
    }

    /// It is gone.
    pub fn remove(&self) {
        if let Ok(path) = self.path() {
            // A record without its program is passed over anyhow.
            let _ = fs::remove_file(path);
        }
    }

    fn lives(&self) -> bool {
        host::process_began(self.pid) == Some(self.started_ticks)
    }

    fn name(&self) -> String {
        self.node.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Removes what devices left for others to find whose programs were killed.
pub fn forget_dead() -> anyhow::Result<()> {
    records().map(drop)
}

/// All whose programs live.
fn records() -> anyhow::Result<Vec<Record>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder()?) else { return Ok(found) };
    for path in entries.flatten().map(|entry| entry.path()) {
        let record = fs::read(&path).ok().and_then(|it| serde_json::from_slice::<Record>(&it).ok());
        match record {
            Some(record) if record.lives() => found.push(record),
            // Its program was killed; the journal knows what is left.
            _ => drop(fs::remove_file(&path)),
        }
    }
    found.sort_by(|a, b| a.node.cmp(&b.node));
    Ok(found)
}

/// `spindle emulate list`.
pub fn list(json: bool) -> anyhow::Result<Exit> {
    let records = records()?;
    if json {
        say::json(&records)?;
        return Ok(Exit::Done);
    }
    if records.is_empty() {
        say::line("No emulated device is up.")?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        ("device", Align::Left),
        ("profile", Align::Left),
        ("size", Align::Right),
        ("over", Align::Left),
        ("data", Align::Left),
        ("mounted on", Align::Left),
    ]);
    for record in &records {
        let mounted = mounted_from(&record.node).map(|point| point.display().to_string());
        table.row([
            record.node.display().to_string(),
            record.profile.clone(),
            record.size.to_string(),
            record.transport.name().to_owned(),
            record.data.clone(),
            mounted.unwrap_or_default(),
        ]);
    }
    say::result(&table.text(crate::WIDTH))?;
    Ok(Exit::Done)
}

/// `spindle emulate stop`.
pub fn stop(names: &[String]) -> anyhow::Result<Exit> {
    let records = records()?;
    let all = names.iter().any(|name| name == "all");
    if names.is_empty() && records.len() > 1 {
        let up: Vec<String> = records.iter().map(Record::name).collect();
        return Err(usage(format!("which one? {} are up; or say `all`", up.join(", "))));
    }
    for name in names.iter().filter(|name| *name != "all") {
        let known = |record: &Record| record.name() == *name || record.node == Path::new(name);
        if !records.iter().any(known) {
            return Err(usage(format!(
                "no emulated device is called '{name}'; `spindle emulate list` shows those that are up"
            )));
        }
    }
    let chosen = |record: &&Record| {
        let named = names.iter().any(|it| *it == record.name() || Path::new(it) == record.node);
        all || names.is_empty() || named
    };
    for record in records.iter().filter(chosen) {
        end(record)?;
        say::line(&format!("{} ({}) is down", record.node.display(), record.profile))?;
    }
    if records.is_empty() {
        say::line("No emulated device is up.")?;
    }
    Ok(Exit::Done)
}

/// How long a program may take to take its device down.
const PATIENCE: Duration = Duration::from_secs(20);

fn end(record: &Record) -> anyhow::Result<()> {
    if let Some(point) = mounted_from(&record.node) {
        bail!(
            "{} is mounted from {}: unmount it first (umount {0})",
            point.display(),
            record.node.display()
        );
    }
    let pid = i32::try_from(record.pid).ok().and_then(Pid::from_raw);
    let Some(pid) = pid.filter(|_| record.lives()) else { return Ok(()) };
    kill_process(pid, Signal::TERM)
        .with_context(|| format!("cannot ask process {} to stop", record.pid))?;
    let begun = Instant::now();
    while record.lives() {
        if begun.elapsed() > PATIENCE {
            bail!(
                "process {} does not take {} down: something has the device open (see lsof {1})",
                record.pid,
                record.node.display()
            );
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if let Ok(journals) = host::pending(&host::state_folder()?)
        && !journals.is_empty()
    {
        bail!("not everything could be taken down; `spindle undo` tries again");
    }
    Ok(())
}
