//! How pages are protected from writes that a power failure cuts short.
//!
//! Sources: MySQL's reference manual (innodb_doublewrite), MariaDB (MDEV-33545), PostgreSQL's manual
//! (full_page_writes, wal_compression).

use super::{Draft, Release};
use units::Bytes;
use workload::{PresetLimit, PrivateServer};

/// PostgreSQL's block, unless it was built with another.
const POSTGRESQL_BLOCK: Bytes = Bytes::from_kib(8);

pub(super) fn levels(draft: &mut Draft<'_>) {
    const DOUBLEWRITE: &str = "innodb_doublewrite";
    match draft.asked.kind {
        PrivateServer::PostgreSql => {
            const FULL_PAGES: &str = "full_page_writes";
            draft.base(&[(FULL_PAGES, "on"), ("wal_compression", "off")]);
            draft.default_level("on");
            // The word for pglz where there is a choice.
            let compressed = if draft.release() >= Release(15, 0, 0) { "pglz" } else { "on" };
            draft.level("on, compressed", &[("wal_compression", compressed)]);
            draft.level_if_atomic("off", &[(FULL_PAGES, "off")], POSTGRESQL_BLOCK);
        }
        PrivateServer::MySql => {
            draft.base(&[(DOUBLEWRITE, "ON")]);
            draft.default_level("ON");
            // `DETECT_AND_RECOVER` is `ON` under another name: what differs between them is chance.
            for value in ["DETECT_AND_RECOVER", "DETECT_ONLY"] {
                draft.level(value, &[(DOUBLEWRITE, value)]);
            }
            let page = draft.innodb_page();
            draft.level_if_atomic("OFF", &[(DOUBLEWRITE, "OFF")], page);
        }
        PrivateServer::MariaDb => {
            draft.base(&[(DOUBLEWRITE, "ON")]);
            draft.default_level("ON");
            // It leaves out the flush of data files before a checkpoint.
            let limit = PresetLimit::NoDataFlush { server: draft.asked.title.to_owned() };
            draft.leave_out("fast", &[(DOUBLEWRITE, "fast")], limit);
            let page = draft.innodb_page();
            draft.level_if_atomic("OFF", &[(DOUBLEWRITE, "OFF")], page);
        }
    }
}
