//! A connection to a file that anybody may have made.

use rusqlite::{Connection, OpenFlags, config::DbConfig, limits::Limit};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// No column of a run is as long.
const MAX_COLUMN_BYTES: i32 = 64 << 20;
/// Instructions of SQLite's machine between two looks at how many there were.
const INSTRUCTIONS: i32 = 1000;
/// Instructions that reading takes for a byte of the file at the most, and for a file that is short. A row takes some
/// fifty, and is longer than ten bytes.
const INSTRUCTIONS_A_BYTE: u64 = 100;
const MIN_INSTRUCTIONS: u64 = 20_000_000;

/// Bounds what a file can make the program do: a table without its index would be read anew for each trial.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    /// Looks left.
    left: Arc<AtomicU64>,
}

impl Work {
    /// Allows what reading the whole of a file takes, once more.
    pub(super) fn allow(&self, path: &Path) {
        let bytes = path.metadata().map_or(0, |it| it.len());
        let instructions = MIN_INSTRUCTIONS.saturating_add(bytes * INSTRUCTIONS_A_BYTE);
        self.left.store(instructions / INSTRUCTIONS as u64, Ordering::Relaxed);
    }

    /// Allows everything: what is written is this program's own.
    pub(super) fn unbounded(&self) {
        self.left.store(u64::MAX, Ordering::Relaxed);
    }

    fn bound(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let left = Arc::clone(&self.left);
        connection.progress_handler(
            INSTRUCTIONS,
            Some(move || {
                let before = left.load(Ordering::Relaxed);
                left.store(before.saturating_sub(1), Ordering::Relaxed);
                before == 0
            }),
        )
    }
}

/// A connection that believes nothing of what the file says of itself.
pub(super) fn guarded(path: &Path, flags: OpenFlags) -> rusqlite::Result<(Connection, Work)> {
    let mut connection =
        Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    let work = Work::default();
    work.allow(path);
    work.bound(&mut connection)?;
    for (what, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(what, on)?;
    }
    for (what, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_COLUMN_BYTES),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0),
    ] {
        connection.set_limit(what, most)?;
    }
    connection.pragma_update(None, "cell_size_check", true)?;
    Ok((connection, work))
}
