//! How files are opened and flushed.
//!
//! Sources: MariaDB's manual (InnoDB Flush Method; MDEV-30136), MySQL's reference manual
//! (innodb_flush_method, innodb_use_fdatasync), PostgreSQL's manual (wal_sync_method).

use super::{Draft, Release, since};
use workload::{PresetLimit, PrivateServer};

pub(super) fn levels(draft: &mut Draft<'_>) {
    match draft.asked.kind {
        PrivateServer::PostgreSql => postgresql(draft),
        PrivateServer::MariaDb if draft.has("innodb_data_file_buffering") => booleans(draft),
        PrivateServer::MariaDb | PrivateServer::MySql => methods(draft),
    }
}

/// MariaDB since 11.0: each of log and data files is cached or not, and written through or flushed.
fn booleans(draft: &mut Draft<'_>) {
    const LOG_BUFFERING: &str = "innodb_log_file_buffering";
    const LOG_THROUGH: &str = "innodb_log_file_write_through";
    const DATA_BUFFERING: &str = "innodb_data_file_buffering";
    const DATA_THROUGH: &str = "innodb_data_file_write_through";
    draft.base(&[
        (LOG_BUFFERING, "OFF"),
        (LOG_THROUGH, "OFF"),
        (DATA_BUFFERING, "OFF"),
        (DATA_THROUGH, "OFF"),
    ]);
    draft.default_level("default");
    draft.level("log buffered", &[(LOG_BUFFERING, "ON")]);
    draft.level("log write-through", &[(LOG_THROUGH, "ON")]);
    draft.level("data buffered", &[(DATA_BUFFERING, "ON")]);
    draft.level("data write-through", &[(DATA_THROUGH, "ON")]);
    draft.level("both buffered", &[(LOG_BUFFERING, "ON"), (DATA_BUFFERING, "ON")]);
    draft.level("both write-through", &[(LOG_THROUGH, "ON"), (DATA_THROUGH, "ON")]);
}

/// The first MySQL that flushes the metadata of a file that grew, whatever the method.
const NO_FSYNC_IS_SAFE: Release = Release(8, 0, 14);

/// MySQL, and MariaDB before 11.0.
fn methods(draft: &mut Draft<'_>) {
    const METHOD: &str = "innodb_flush_method";
    const LOG_BUFFERING: &str = "innodb_log_file_buffering";
    const FDATASYNC: &str = "innodb_use_fdatasync";
    let mariadb = draft.asked.kind == PrivateServer::MariaDb;
    let direct_since = if mariadb { Release(10, 6, 0) } else { Release(8, 4, 0) };
    let default = if draft.release() >= direct_since { "O_DIRECT" } else { "fsync" };
    // 8.4 prints fsync and starts with O_DIRECT.
    draft.base_of_manual(METHOD, default);
    draft.base(&[(LOG_BUFFERING, "OFF"), (FDATASYNC, "OFF")]);
    let default = draft.base_value(METHOD).to_owned();
    draft.default_level(&format!("{default} (default)"));
    for method in ["O_DIRECT", "fsync", "O_DSYNC"] {
        draft.level(method, &[(METHOD, method)]);
    }
    let method = "O_DIRECT_NO_FSYNC";
    let server = draft.asked.title.to_owned();
    match mariadb {
        true => {
            draft.leave_out(method, &[(METHOD, method)], PresetLimit::NoDataFlush { server });
        }
        false if draft.release() >= NO_FSYNC_IS_SAFE => draft.level(method, &[(METHOD, method)]),
        false => {
            let limit =
                PresetLimit::NoMetadataFlush { server, safe_since: "MySQL 8.0.14".to_owned() };
            draft.leave_out(method, &[(METHOD, method)], limit);
        }
    }
    if mariadb {
        let change = [(LOG_BUFFERING, "ON")];
        draft.level_if("log buffered", &change, since("MariaDB 10.8.4"));
        return;
    }
    let other = if draft.base_value(FDATASYNC) == "ON" { "OFF" } else { "ON" };
    let name = if other == "ON" { "fdatasync" } else { "no fdatasync" };
    draft.level_if(name, &[(FDATASYNC, other)], since("MySQL 8.0.26"));
}

fn postgresql(draft: &mut Draft<'_>) {
    const METHOD: &str = "wal_sync_method";
    draft.base(&[(METHOD, "fdatasync")]);
    draft.default_level("fdatasync");
    for method in ["fsync", "open_datasync", "open_sync"] {
        draft.level(method, &[(METHOD, method)]);
    }
}
