//! A run file whose writer was killed within a commit: beside it lies SQLite's journal, from which the file has to be put
//! back before anything in it can be believed (<https://www.sqlite.org/lockingv3.html#hot_journals>).

use super::{StoreError, explain, guarded::guarded};
use rusqlite::{Connection, OpenFlags, ffi};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};
use tempfile::TempDir;

/// The last bytes of a journal that belongs to several files at once
/// (<https://www.sqlite.org/fileformat2.html#the_rollback_journal>).
const OF_SEVERAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];

/// Copies are tried so often: a file that another program puts right meanwhile needs none.
const TRIES: u32 = 3;

/// Why a commit that was cut off cannot be rolled back.
#[derive(Debug, thiserror::Error)]
pub enum NotRolledBack {
    /// The journal says that it belongs to other files too, as one of a run file never does.
    #[error("its journal {} belongs to other files too, and was not written by Spindle", journal.display())]
    OfSeveral {
        /// The journal.
        journal: PathBuf,
    },
    /// The file may not be written, and no copy could be made.
    #[error("its journal {} lies beside it, and neither may be written nor copied: {cause}", journal.display())]
    NoCopy {
        /// The journal.
        journal: PathBuf,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
}

/// Whether a file that is open to be read waits for a rollback.
pub(super) fn is_cut_off(path: &Path, connection: &Connection) -> bool {
    let looked = connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
    let code = looked.err().and_then(|it| it.sqlite_error().map(|it| it.extended_code));
    match code {
        Some(ffi::SQLITE_READONLY_ROLLBACK) => true,
        // Where the journal cannot be opened to see what it is.
        Some(ffi::SQLITE_CANTOPEN) => journal_of(path).exists(),
        _ => false,
    }
}

fn journal_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

fn refused(path: &Path, why: NotRolledBack) -> StoreError {
    StoreError::CutOff { path: path.to_owned(), why }
}

/// Refuses a journal that names another file: rolling back would delete that.
pub(super) fn refuse_another_files_journal(path: &Path) -> Result<(), StoreError> {
    let journal = journal_of(path);
    let mut last = [0; OF_SEVERAL.len()];
    let read = File::open(&journal).and_then(|mut file| {
        file.seek(SeekFrom::End(-(last.len() as i64)))?;
        file.read_exact(&mut last)
    });
    if read.is_ok() && last == OF_SEVERAL {
        Err(refused(path, NotRolledBack::OfSeveral { journal }))
    } else {
        Ok(())
    }
}

/// Rolls back a commit that was cut off: in the file, or in a copy of it that is returned.
pub(super) fn roll_back(path: &Path) -> Result<Option<(TempDir, PathBuf)>, StoreError> {
    refuse_another_files_journal(path)?;
    if rolled_back(path).is_ok() {
        return Ok(None);
    }
    let no_copy = |cause| refused(path, NotRolledBack::NoCopy { journal: journal_of(path), cause });
    let mut tries = 0;
    loop {
        let before = stamp(path);
        let (folder, copy) = copied(path).map_err(no_copy)?;
        tries += 1;
        if stamp(path) == before || tries == TRIES {
            rolled_back(&copy).map_err(|error| explain(path, error))?;
            return Ok(Some((folder, copy)));
        }
    }
}

/// SQLite rolls back at the first read by somebody who may write.
fn rolled_back(path: &Path) -> rusqlite::Result<()> {
    let (connection, _) = guarded(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0)).map(drop)
}

fn copied(path: &Path) -> std::io::Result<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("run");
    for (from, to) in [(path.to_owned(), copy.clone()), (journal_of(path), journal_of(&copy))] {
        // Not its permissions: the copy has to be written.
        io::copy(&mut File::open(from)?, &mut File::create(to)?)?;
    }
    Ok((folder, copy))
}

/// What changes when somebody writes a file or its journal.
fn stamp(path: &Path) -> [Option<(u64, SystemTime)>; 2] {
    [path.to_owned(), journal_of(path)].map(|file| {
        let data = file.metadata().ok()?;
        Some((data.len(), data.modified().ok()?))
    })
}
