//! Where run files are kept, and how a run is named.

use crate::{exit::Usage, say};
use anyhow::{Context, bail};
use plan::Plan;
use record::{Environment, Store, StoreError, StoreWait, Waiting};
use std::{
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

/// The ending of run files.
const ENDING: &str = "spindle";

/// No more runs have the same name but for their numbers.
const MAX_ALIKE: u32 = 10_000;

/// What to do where a run file cannot be written.
const ELSEWHERE: &str =
    "-o FILE writes a run elsewhere, and $SPINDLE_STATE names another state folder";

/// Begins a run's file: `file`, or one in the folder of runs that is called `wanted`, made different by a number
/// where that is taken. Its name is the run's.
pub fn begin(
    file: Option<&Path>,
    wanted: &str,
    started_at: i64,
    environment: &Environment,
    plan: &Plan,
) -> anyhow::Result<Store> {
    let create = |path: &Path| Store::create(path, &stem(path), started_at, environment, plan);
    let context = || format!("cannot begin the run's file; {ELSEWHERE}");
    if let Some(file) = file {
        file.file_stem()
            .ok_or_else(|| Usage(format!("{} does not name a file", file.display())))?;
        return create(file).with_context(context);
    }
    let folder = folder()?;
    for number in 1..MAX_ALIKE {
        let name = match number {
            1 => format!("{wanted}.{ENDING}"),
            _ => format!("{wanted}-{number}.{ENDING}"),
        };
        // Of several programs that want the same name, one gets it.
        match create(&folder.join(name)) {
            Err(StoreError::Exists { .. }) => {}
            made => return made.with_context(context),
        }
    }
    bail!("{} is full of runs called {wanted}", folder.display())
}

/// A file's name without folder and ending.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Opens a run file to read it, and says so where that has to wait for its writer.
pub fn open(path: &Path) -> anyhow::Result<Store> {
    let tell = |wait: &StoreWait| say::note(&report::store_wait(wait));
    Ok(Store::open_waiting(path, Waiting { stop: None, tell: Some(Box::new(tell)) })?)
}

/// The folder of run files: `runs` in the state folder. Made when it is missing.
pub fn folder() -> anyhow::Result<PathBuf> {
    let folder = host::state_folder()?.join("runs");
    std::fs::create_dir_all(&folder).with_context(|| {
        format!("cannot make the folder of runs, {}; {ELSEWHERE}", folder.display())
    })?;
    Ok(folder)
}

/// Which of two runs is the later: by when they began, when their files were made, and how long their names are.
type Order = (i64, Option<SystemTime>, usize);

/// All run files, by name.
pub fn all() -> anyhow::Result<Vec<PathBuf>> {
    let folder = folder()?;
    let entries = std::fs::read_dir(&folder)
        .with_context(|| format!("cannot list the folder of runs, {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    files.sort();
    Ok(files)
}

/// The file of a run that the user named: by path, by name, or `last`.
pub fn find(word: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(word);
    if path.exists() || word.contains('/') {
        return Ok(path.to_owned());
    }
    let files = all()?;
    if word == "last" {
        return last(&files);
    }
    let named = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem == word);
    files.iter().find(named).cloned().ok_or_else(|| {
        let known: Vec<String> = files
            .iter()
            .rev()
            .take(5)
            .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
            .collect();
        let hint = match known.is_empty() {
            true => "there are no runs yet".to_owned(),
            false => format!("the latest are {}", known.join(", ")),
        };
        Usage(format!("no run is called '{word}'; {hint}")).into()
    })
}

/// The run that began last. Where a later one cannot be read, that is said and no other is taken for it.
fn last(files: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let mut newest: Option<(Order, &PathBuf)> = None;
    let mut unread = Vec::new();
    for path in files {
        match open(path).and_then(|store| Ok(store.started_at()?)) {
            Ok(began) => {
                // Runs know the second in which they began. Of two in the same one the later file is the later run;
                // where a filesystem keeps no such time, the one whose name `begin` has made longer.
                let made = path.metadata().and_then(|it| it.created()).ok();
                let place = (began, made, path.as_os_str().len());
                if newest.as_ref().is_none_or(|(latest, _)| place >= *latest) {
                    newest = Some((place, path));
                }
            }
            Err(error) => unread.push((path, error)),
        }
    }
    let latest = newest.as_ref().map_or(i64::MIN, |((began, ..), _)| *began);
    for (path, error) in unread {
        if holds_no_run(&error) {
            say::note(&format!("{error:#}"));
        } else if written_since(path, latest) {
            let other = newest.map_or_else(String::new, |(_, other)| {
                format!("; the latest that can be read is {}", stem(other))
            });
            return Err(error.context(format!(
                "the last run may be {}, and it cannot be read: name the run that you mean{other}",
                stem(path)
            )));
        }
    }
    newest
        .map(|(_, path)| path.clone())
        .context("there are no runs yet; `spindle compare` makes one")
}

/// Whether a file that cannot be read is none of a run, of any version.
fn holds_no_run(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(StoreError::NotOurs { .. } | StoreError::Empty { .. } | StoreError::Missing { .. })
    )
}

/// Whether a file was written at a time or later; so it is taken where that is not known.
fn written_since(path: &Path, seconds: i64) -> bool {
    let modified = path.metadata().and_then(|it| it.modified());
    let since = modified.ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    since.is_none_or(|it| i64::try_from(it.as_secs()).is_ok_and(|it| it >= seconds))
}
