//! The file of merged runs: one JSON object, with what is kept of each host's run. What they show together is
//! computed when it is read, so that a newer program can say more of an older file.

use analysis::HostRun;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::{io::Read, path::Path};

/// What the file says that it is.
const FORMAT: &str = "spindle fleet";

/// The form of the file.
const VERSION: u32 = 1;

/// The first bytes of a file that is no SQLite database; no more than this is looked at to tell.
const OBJECT: u8 = b'{';

#[derive(Serialize, Deserialize)]
struct FleetFile {
    format: String,
    version: u32,
    runs: Vec<HostRun>,
}

/// Whether a file may be one of merged runs: it is no database.
pub fn is_one(path: &Path) -> bool {
    let mut first = [0];
    // A pipe would be waited for.
    path.is_file()
        && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && first[0] == OBJECT
}

/// Writes merged runs; what is there is left alone unless it is such a file.
pub fn write(path: &Path, runs: Vec<HostRun>) -> anyhow::Result<()> {
    if path.exists() && !is_one(path) {
        anyhow::bail!(
            "{} exists already and is no file of merged runs: it is left alone; choose another name",
            path.display()
        );
    }
    let file = FleetFile { format: FORMAT.to_owned(), version: VERSION, runs };
    let text = serde_json::to_vec(&file)?;
    // A file that is there stays whole until the new one is.
    let mut draft = path.as_os_str().to_owned();
    draft.push(".draft");
    std::fs::write(&draft, text)
        .and_then(|()| std::fs::rename(&draft, path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Reads merged runs.
pub fn read(path: &Path) -> anyhow::Result<Vec<HostRun>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes).with_context(|| {
        format!("{} is neither a run file nor one of merged runs", path.display())
    })?;
    // Anybody may have made it.
    let value = record::clean_json(value);
    if value["format"] != FORMAT {
        anyhow::bail!("{} is JSON and not a file that `spindle merge` wrote", path.display());
    }
    if value["version"] != VERSION {
        anyhow::bail!(
            "{} has version {} of merged runs and this program knows {VERSION}: use the version of Spindle \
             that made it, or merge the runs again",
            path.display(),
            value["version"]
        );
    }
    let file: FleetFile = serde_json::from_value(value)
        .with_context(|| format!("{} is damaged; merge the runs again", path.display()))?;
    Ok(file.runs)
}
