//! Where run files are kept, and how a run is named.

use crate::exit::Usage;
use anyhow::Context;
use plan::Plan;
use record::{Environment, Store};
use std::path::{Path, PathBuf};

/// The ending of run files.
const ENDING: &str = "spindle";

/// What to do where a run file cannot be written.
const ELSEWHERE: &str =
    "-o FILE writes a run elsewhere, and $SPINDLE_STATE names another state folder";

/// Begins a run's file.
pub fn create(
    path: &Path,
    name: &str,
    started_at: i64,
    environment: &Environment,
    plan: &Plan,
) -> anyhow::Result<Store> {
    Store::create(path, name, started_at, environment, plan)
        .with_context(|| format!("cannot begin the run's file; {ELSEWHERE}"))
}

/// The folder of run files: `runs` in the state folder. Made when it is missing.
pub fn folder() -> anyhow::Result<PathBuf> {
    let folder = host::state_folder()?.join("runs");
    std::fs::create_dir_all(&folder).with_context(|| {
        format!("cannot make the folder of runs, {}; {ELSEWHERE}", folder.display())
    })?;
    Ok(folder)
}

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

/// A path for a new run called `name`, made different by a number where it is taken.
pub fn new_path(name: &str) -> anyhow::Result<PathBuf> {
    let folder = folder()?;
    let numbered = |number: u32| match number {
        1 => folder.join(format!("{name}.{ENDING}")),
        _ => folder.join(format!("{name}-{number}.{ENDING}")),
    };
    (1..10_000)
        .map(numbered)
        .find(|path| !path.exists())
        .with_context(|| format!("{} is full of runs called {name}", folder.display()))
}

/// The file of a run that the user named: by path, by name, or `last`.
pub fn find(word: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(word);
    if path.exists() || word.contains('/') {
        return Ok(path.to_owned());
    }
    let files = all()?;
    if word == "last" {
        // Runs know the second in which they began. Of two in the same one the later file is the later run;
        // where a filesystem keeps no such time, the one whose name `new_path` has made longer.
        let newest = files.iter().max_by_key(|path| {
            let began = Store::open(path).and_then(|store| store.started_at()).unwrap_or(i64::MIN);
            let file_made = path.metadata().and_then(|it| it.created()).ok();
            (began, file_made, path.as_os_str().len())
        });
        return newest.cloned().context("there are no runs yet; `spindle compare` makes one");
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
