//! How much is written in the background.
//!
//! Sources: MySQL's and MariaDB's manuals (innodb_io_capacity, innodb_io_capacity_max: twice that and
//! at least 2000, innodb_page_cleaners, innodb_lru_scan_depth), PostgreSQL's manual (background
//! writer, checkpoints; checkpoint_completion_target is 0.5 before 14 and 0.9 since).

use super::{Draft, Release};
use units::Bytes;
use workload::{Presence, PresetLimit, PrivateServer};

pub(super) fn levels(draft: &mut Draft<'_>) {
    match draft.asked.kind {
        PrivateServer::PostgreSql => postgresql(draft),
        PrivateServer::MariaDb | PrivateServer::MySql => innodb(draft),
    }
}

/// Above it InnoDB divides its buffer pool.
const ONE_INSTANCE: Bytes = Bytes::from_gib(1);

const CAPACITY: &str = "innodb_io_capacity";
const MAX: &str = "innodb_io_capacity_max";
const CLEANERS: &str = "innodb_page_cleaners";
const DEPTH: &str = "innodb_lru_scan_depth";

fn innodb(draft: &mut Draft<'_>) {
    draft.base(&[(CAPACITY, "200"), (DEPTH, "1024")]);
    let max_of = |capacity: u64| (2 * capacity).max(2000).to_string();
    let default = draft.base_value(CAPACITY).parse().unwrap_or(200);
    draft.base(&[(MAX, &max_of(default))]);
    if buffer_pool(draft) > ONE_INSTANCE {
        let cleaners = cleaners_by_default(draft).to_string();
        draft.base_of_manual(CLEANERS, &cleaners);
    }
    draft.default_level("default");
    for capacity in [200, 1000, 4000, 10_000] {
        let (capacity, max) = (capacity.to_string(), max_of(capacity));
        let name = format!("io_capacity {capacity}");
        draft.level(&name, &[(CAPACITY, &capacity), (MAX, &max)]);
    }
    for depth in ["256", "4096"] {
        draft.level(&format!("lru_scan_depth {depth}"), &[(DEPTH, depth)]);
    }
    cleaners(draft);
}

fn buffer_pool(draft: &Draft<'_>) -> Bytes {
    draft.asked.job.buffer_pool.unwrap_or(Bytes::from_mib(128))
}

/// 4 before MySQL 8.4; since then as many as buffer pools: half of those that chunks of 128 MiB would
/// make, and at most one for four processors.
fn cleaners_by_default(draft: &Draft<'_>) -> u64 {
    if draft.release() < Release(8, 4, 0) {
        return 4;
    }
    let chunks = buffer_pool(draft).0 / Bytes::from_mib(128).0;
    (chunks / 2).min(draft.asked.cpus / 4).clamp(1, 64)
}

fn cleaners(draft: &mut Draft<'_>) {
    let buffer_pool = buffer_pool(draft);
    let changes = |count| [(CLEANERS, count)];
    if !draft.has(CLEANERS) {
        draft.level_if(
            "1 page cleaner",
            &changes("1"),
            Presence::Until("MariaDB 10.6, which has one".to_owned()),
        );
    } else if buffer_pool <= ONE_INSTANCE {
        let limit = PresetLimit::OneInstance { buffer_pool };
        draft.leave_out("8 page cleaners", &changes("8"), limit);
    } else {
        draft.level("1 page cleaner", &changes("1"));
        draft.level("8 page cleaners", &changes("8"));
    }
}

fn postgresql(draft: &mut Draft<'_>) {
    const DELAY: &str = "bgwriter_delay";
    const PAGES: &str = "bgwriter_lru_maxpages";
    const TARGET: &str = "checkpoint_completion_target";
    const WAL: &str = "max_wal_size";
    let target = if draft.release() >= Release(14, 0, 0) { "0.9" } else { "0.5" };
    draft.base(&[(DELAY, "200ms"), (PAGES, "100"), (TARGET, target), (WAL, "1GB")]);
    draft.default_level("default");
    draft.level("no background writer", &[(PAGES, "0")]);
    draft.level("fast background writer", &[(DELAY, "50ms"), (PAGES, "1000")]);
    for target in ["0.5", "0.9"] {
        draft.level(&format!("checkpoints over {target}"), &[(TARGET, target)]);
    }
    draft.level("frequent checkpoints", &[(WAL, "256MB")]);
}
