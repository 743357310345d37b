//! How reads and writes are handed to the kernel.
//!
//! Sources: MySQL's and MariaDB's manuals (innodb_use_native_aio, innodb_read_io_threads: 4, in MySQL
//! since 8.4 half the processors and at least 4), MariaDB
//! (MDEV-36234, innodb_linux_aio), PostgreSQL's manual (io_method, io_workers,
//! effective_io_concurrency: 1 before 18, 16 since).

use super::{Draft, Release, since};
use workload::{PresetLimit, PrivateServer};

pub(super) fn levels(draft: &mut Draft<'_>) {
    match draft.asked.kind {
        PrivateServer::PostgreSql => postgresql(draft),
        PrivateServer::MariaDb | PrivateServer::MySql => innodb(draft),
    }
}

fn innodb(draft: &mut Draft<'_>) {
    const NATIVE: &str = "innodb_use_native_aio";
    const LINUX: &str = "innodb_linux_aio";
    const THREADS: [&str; 2] = ["innodb_read_io_threads", "innodb_write_io_threads"];
    draft.base(&[(NATIVE, "ON"), (LINUX, "auto"), (THREADS[1], "4")]);
    let follows_cpus =
        draft.asked.kind == PrivateServer::MySql && draft.release() >= Release(8, 4, 0);
    let readers = if follows_cpus { (draft.asked.cpus / 2).clamp(4, 64) } else { 4 };
    draft.base_of_manual(THREADS[0], &readers.to_string());
    draft.default_level("default");
    if draft.asked.kind == PrivateServer::MariaDb {
        let came = || since("MDEV-36234, which MariaDB 10.11.14 has");
        draft.level_if("libaio", &[(LINUX, "aio")], came());
        io_uring(draft, &[(LINUX, "io_uring")], |draft, name, change| {
            draft.level_if(name, change, came());
        });
    }
    draft.level("no native AIO", &[(NATIVE, "OFF")]);
    draft.level("16 I/O threads", &THREADS.map(|name| (name, "16")));
}

/// The level io_uring, where the kernel lets the server use it.
fn io_uring(
    draft: &mut Draft<'_>,
    change: &[(&str, &str)],
    add: impl FnOnce(&mut Draft<'_>, &str, &[(&str, &str)]),
) {
    const NAME: &str = "io_uring";
    match draft.asked.io_uring_disabled {
        None => add(draft, NAME, change),
        Some(value) => draft.leave_out(NAME, change, PresetLimit::IoUringDisabled { value }),
    }
}

fn postgresql(draft: &mut Draft<'_>) {
    const METHOD: &str = "io_method";
    const WORKERS: &str = "io_workers";
    const CONCURRENCY: &str = "effective_io_concurrency";
    let asynchronous = draft.has(METHOD);
    let concurrency = if draft.release() >= Release(18, 0, 0) { "16" } else { "1" };
    draft.base(&[(METHOD, "worker"), (WORKERS, "3"), (CONCURRENCY, concurrency)]);
    draft.default_level("default");
    let came = || since("PostgreSQL 18");
    draft.level_if("8 workers", &[(WORKERS, "8")], came());
    if asynchronous {
        io_uring(draft, &[(METHOD, "io_uring")], |draft, name, change| draft.level(name, change));
    } else {
        draft.level_if("io_uring", &[(METHOD, "io_uring")], came());
    }
    draft.level_if("sync", &[(METHOD, "sync")], came());
    for count in ["0", "16", "64"] {
        draft.level(&format!("concurrency {count}"), &[(CONCURRENCY, count)]);
    }
}
