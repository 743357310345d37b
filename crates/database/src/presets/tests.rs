use super::*;
use PrivateServer::{MariaDb, MySql, PostgreSql};

/// A server by the variables that its version has, with what its program prints as their defaults.
fn catalog(title: &str, variables: &[(&str, &str)]) -> Catalog {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Catalog {
        server: title.to_owned(),
        variables: variables.iter().map(owned).collect(),
        reserved: &[],
    }
}

const INNODB: &[(&str, &str)] = &[
    ("innodb_doublewrite", "TRUE"),
    ("innodb_flush_log_at_trx_commit", "1"),
    ("innodb_io_capacity", "200"),
    ("innodb_io_capacity_max", "4294967295"),
    ("innodb_lru_scan_depth", "1024"),
    ("innodb_read_io_threads", "4"),
    ("innodb_write_io_threads", "4"),
    ("innodb_use_native_aio", "TRUE"),
    ("log_bin", "(No default value)"),
];

/// A version of a server, with the variables that presets look at.
fn server(title: &str) -> (PrivateServer, Catalog) {
    let more: &[(&str, &str)] = match title {
        "MySQL 5.7.44" => &[
            ("innodb_flush_method", "(No default value)"),
            ("innodb_page_cleaners", "4"),
            ("sync_binlog", "1"),
        ],
        "MySQL 8.0.13" | "MySQL 8.0.25" => {
            &[("innodb_flush_method", "fsync"), ("innodb_page_cleaners", "4"), ("sync_binlog", "1")]
        }
        "MySQL 8.0.40" => &[
            ("innodb_flush_method", "fsync"),
            ("innodb_use_fdatasync", "FALSE"),
            ("innodb_page_cleaners", "4"),
            ("sync_binlog", "1"),
        ],
        // They print fsync and start with O_DIRECT.
        "MySQL 8.4.3" | "MySQL 9.7.4" | "Percona Server for MySQL 8.4.3" => &[
            ("innodb_flush_method", "fsync"),
            ("innodb_use_fdatasync", "TRUE"),
            ("innodb_io_capacity", "10000"),
            ("innodb_page_cleaners", "4"),
            ("sync_binlog", "1"),
        ],
        "MariaDB 10.5.25" => &[("innodb_flush_method", "fsync"), ("sync_binlog", "0")],
        "MariaDB 10.6.18" => &[("innodb_flush_method", "O_DIRECT"), ("sync_binlog", "0")],
        "MariaDB 10.11.14" => &[
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_log_file_buffering", "FALSE"),
            ("innodb_linux_aio", "auto"),
            ("innodb_lru_scan_depth", "1536"),
            ("sync_binlog", "0"),
        ],
        "MariaDB 11.8.9" => &[
            ("innodb_flush_method", "O_DIRECT"),
            ("innodb_log_file_buffering", "FALSE"),
            ("innodb_log_file_write_through", "FALSE"),
            ("innodb_data_file_buffering", "FALSE"),
            ("innodb_data_file_write_through", "FALSE"),
            ("innodb_linux_aio", "auto"),
            ("sync_binlog", "0"),
        ],
        _ => &[],
    };
    if title.starts_with("PostgreSQL") {
        let all = [
            ("wal_sync_method", "fdatasync"),
            ("full_page_writes", "FALSE"),
            ("wal_compression", "off"),
            ("synchronous_commit", "on"),
            ("effective_io_concurrency", "0"),
            ("bgwriter_delay", "0"),
            ("bgwriter_lru_maxpages", "0"),
            ("checkpoint_completion_target", "0"),
            ("max_wal_size", "0"),
        ];
        let asynchronous = [("io_method", "worker"), ("io_workers", "0")];
        let new = Release::of(title) >= Release(18, 0, 0);
        let variables = [&all[..], if new { &asynchronous[..] } else { &[] }].concat();
        return (PostgreSql, catalog(title, &variables));
    }
    let kind = if title.starts_with("MariaDB") { MariaDb } else { MySql };
    (kind, catalog(title, &[INNODB, more].concat()))
}

/// Where data are, as far as presets depend on it.
struct Storage {
    atomic: Option<u64>,
    io_uring_disabled: Option<u32>,
}

const ORDINARY: Storage = Storage { atomic: None, io_uring_disabled: None };

fn on(preset: Preset, title: &str, job: &str, storage: &Storage) -> Resolved {
    let (kind, catalog) = server(title);
    let atomic = |size: Bytes| match storage.atomic {
        Some(max) if size.0 <= max => Ok(()),
        Some(max) => Err(AtomicLimit::Above { max: Bytes(max) }),
        None => Err(AtomicLimit::Device),
    };
    let asked = Asked {
        kind,
        title,
        catalog: &catalog,
        job: &job.parse().unwrap(),
        variables: &BTreeMap::new(),
        atomic: &atomic,
        io_uring_disabled: storage.io_uring_disabled,
        cpus: 16,
    };
    resolve(preset, &asked)
}

fn of(preset: Preset, title: &str) -> Resolved {
    on(preset, title, "oltp_read_write", &ORDINARY)
}

fn labels(resolved: &Resolved) -> Vec<String> {
    resolved.sets.iter().map(VariableSet::label).collect()
}

fn left_out(resolved: &Resolved) -> Vec<(String, String)> {
    let said = |(set, limit): &(VariableSet, PresetLimit)| (set.label(), limit.to_string());
    resolved.left_out.iter().map(said).collect()
}

const ALL: [&str; 14] = [
    "MySQL 5.7.44",
    "MySQL 8.0.13",
    "MySQL 8.0.25",
    "MySQL 8.0.40",
    "MySQL 8.4.3",
    "MySQL 9.7.4",
    "Percona Server for MySQL 8.4.3",
    "MariaDB 10.5.25",
    "MariaDB 10.6.18",
    "MariaDB 10.11.14",
    "MariaDB 11.8.9",
    "PostgreSQL 13.18",
    "PostgreSQL 15.14",
    "PostgreSQL 18.6",
];

#[test]
fn every_level_names_variables_that_the_server_has_and_all_of_them() {
    for title in ALL {
        let (_, catalog) = server(title);
        for preset in Preset::ALL {
            let resolved = of(*preset, title);
            let first = resolved.sets.first().unwrap_or_else(|| panic!("{preset} on {title}"));
            for set in &resolved.sets {
                assert!(set.variables.keys().eq(first.variables.keys()), "{preset} on {title}");
                let known = |name: &String| catalog.variables.contains_key(name);
                assert!(set.variables.keys().all(known), "{preset} on {title}: {set}");
            }
            for (at, set) in resolved.sets.iter().enumerate() {
                let twice = |other: &VariableSet| other.variables == set.variables;
                assert!(!resolved.sets[..at].iter().any(twice), "{preset} on {title}: {set}");
            }
        }
    }
}

#[test]
fn flush_follows_the_version() {
    let first = |title| labels(&of(Preset::Flush, title))[0].clone();
    assert_eq!(first("MySQL 5.7.44"), "fsync (default)");
    assert_eq!(first("MySQL 8.4.3"), "O_DIRECT (default)");
    assert_eq!(first("MariaDB 10.5.25"), "fsync (default)");
    assert_eq!(
        labels(&of(Preset::Flush, "MySQL 8.0.40")),
        ["fsync (default)", "O_DIRECT", "O_DSYNC", "O_DIRECT_NO_FSYNC", "fdatasync"]
    );
    assert_eq!(
        labels(&of(Preset::Flush, "MySQL 9.7.4")).last().unwrap(),
        "no fdatasync",
        "it is the default since 8.4"
    );
    assert_eq!(
        labels(&of(Preset::Flush, "MariaDB 10.11.14")),
        ["O_DIRECT (default)", "fsync", "O_DSYNC", "log buffered"]
    );
    let booleans = of(Preset::Flush, "MariaDB 11.8.9");
    assert_eq!(booleans.sets.len(), 7);
    assert_eq!(booleans.sets[0].variables.len(), 4);
    assert!(booleans.sets[0].variables.values().all(|value| value == "OFF"));
    assert_eq!(
        labels(&of(Preset::Flush, "PostgreSQL 15.14")),
        ["fdatasync", "fsync", "open_datasync", "open_sync"]
    );
}

#[test]
fn what_a_version_does_not_flush_is_left_out_with_the_reason() {
    let old = left_out(&of(Preset::Flush, "MySQL 8.0.13"));
    assert_eq!(old[0].0, "O_DIRECT_NO_FSYNC");
    assert!(old[0].1.contains("safe since MySQL 8.0.14"), "{old:?}");
    assert!(old[1].1.contains("came with MySQL 8.0.26"), "{old:?}");
    assert_eq!(left_out(&of(Preset::Flush, "MySQL 9.7.4")), []);
    let mariadb = left_out(&of(Preset::Flush, "MariaDB 10.6.18"));
    assert!(mariadb[0].1.contains("does not flush its data files"), "{mariadb:?}");
    assert!(mariadb[1].1.contains("10.8.4"), "{mariadb:?}");
}

#[test]
fn doublewrite_is_off_only_where_atomic_writes_are_proven() {
    for (title, page) in
        [("MySQL 8.4.3", 16384), ("MariaDB 11.8.9", 16384), ("PostgreSQL 15.14", 8192)]
    {
        let word = if title.starts_with("Post") { "off" } else { "OFF" };
        let refused = of(Preset::Doublewrite, title);
        assert!(!labels(&refused).contains(&word.to_owned()), "{title}");
        let (_, reason) = refused.left_out.iter().find(|(set, _)| set.label() == word).unwrap();
        assert!(
            matches!(reason, PresetLimit::Torn { page: size, .. } if size.0 == page),
            "{reason}"
        );
        let small = Storage { atomic: Some(page / 2), ..ORDINARY };
        let resolved = on(Preset::Doublewrite, title, "tpcc", &small);
        assert!(!labels(&resolved).contains(&word.to_owned()), "{title}");
        let proven = Storage { atomic: Some(page), ..ORDINARY };
        let resolved = on(Preset::Doublewrite, title, "tpcc", &proven);
        assert_eq!(labels(&resolved).last().unwrap(), word, "{title}");
    }
    let fast = left_out(&of(Preset::Doublewrite, "MariaDB 11.8.9"));
    assert!(
        fast.iter().any(|(label, why)| label == "fast" && why.contains("data files")),
        "{fast:?}"
    );
    assert!(labels(&of(Preset::Doublewrite, "MySQL 8.4.3")).contains(&"DETECT_ONLY".to_owned()));
}

#[test]
fn aio_of_postgresql_came_with_18() {
    let old = of(Preset::Aio, "PostgreSQL 15.14");
    assert_eq!(old.sets[0].variables["effective_io_concurrency"], "1");
    assert_eq!(labels(&old), ["default", "concurrency 0", "concurrency 16", "concurrency 64"]);
    let reasons = left_out(&old);
    let io_uring = reasons.iter().find(|(label, _)| label == "io_uring").unwrap();
    assert!(io_uring.1.contains("no io_method: it came with PostgreSQL 18"), "{io_uring:?}");
    let new = of(Preset::Aio, "PostgreSQL 18.6");
    assert_eq!(
        labels(&new),
        ["default", "8 workers", "io_uring", "sync", "concurrency 0", "concurrency 64"]
    );
    assert_eq!(new.left_out, []);
    let forbidden = Storage { io_uring_disabled: Some(2), ..ORDINARY };
    let new = on(Preset::Aio, "PostgreSQL 18.6", "tpcc", &forbidden);
    assert!(!labels(&new).contains(&"io_uring".to_owned()));
    assert!(left_out(&new)[0].1.contains("kernel.io_uring_disabled=2"), "{:?}", left_out(&new));
}

#[test]
fn aio_of_innodb_is_io_uring_only_where_the_server_lets_it_be_chosen() {
    assert!(labels(&of(Preset::Aio, "MariaDB 10.11.14")).contains(&"io_uring".to_owned()));
    let old = of(Preset::Aio, "MariaDB 10.6.18");
    assert_eq!(labels(&old), ["default", "no native AIO", "16 I/O threads"]);
    assert!(left_out(&old)[0].1.contains("MDEV-36234"));
    let mysql = of(Preset::Aio, "MySQL 9.7.4");
    assert_eq!(labels(&mysql), labels(&old));
    assert_eq!(mysql.sets[0].variables["innodb_read_io_threads"], "8", "half of 16 processors");
    assert_eq!(old.sets[0].variables["innodb_read_io_threads"], "4");
}

#[test]
fn capacity_begins_with_the_versions_default_and_keeps_max_above_it() {
    let new = of(Preset::Capacity, "MySQL 8.4.3");
    assert_eq!(new.sets[0].variables["innodb_io_capacity"], "10000");
    assert_eq!(new.sets[0].variables["innodb_io_capacity_max"], "20000");
    let old = of(Preset::Capacity, "MySQL 8.0.40");
    assert_eq!(old.sets[0].variables["innodb_io_capacity_max"], "2000");
    for set in new.sets.iter().chain(&old.sets) {
        let number = |name: &str| set.variables[name].parse::<u64>().unwrap();
        assert!(number("innodb_io_capacity") <= number("innodb_io_capacity_max"), "{set}");
    }
    assert_eq!(
        of(Preset::Capacity, "PostgreSQL 13.18").sets[0].variables["checkpoint_completion_target"],
        "0.5"
    );
    assert_eq!(
        of(Preset::Capacity, "PostgreSQL 15.14").sets[0].variables["checkpoint_completion_target"],
        "0.9"
    );
}

#[test]
fn page_cleaners_need_several_buffer_pools() {
    let small = left_out(&of(Preset::Capacity, "MySQL 8.4.3"));
    assert!(small[0].1.contains("128 MiB") && small[0].1.contains("one page cleaner"), "{small:?}");
    let large = on(Preset::Capacity, "MySQL 8.4.3", "tpcc,buffer_pool=2G", &ORDINARY);
    assert!(labels(&large).contains(&"8 page cleaners".to_owned()));
    assert_eq!(large.sets[0].variables["innodb_page_cleaners"], "4", "one for 4 of 16 processors");
    let gone = left_out(&of(Preset::Capacity, "MariaDB 10.11.14"));
    assert!(gone[0].1.contains("it went with MariaDB 10.6"), "{gone:?}");
}

#[test]
fn durability_turns_the_binary_log_on_and_never_turns_fsync_off() {
    let mysql = of(Preset::Durability, "MySQL 9.7.4");
    assert_eq!(mysql.fixed["log_bin"], "binlog");
    assert_eq!(labels(&mysql)[0], "log 1, binlog 1");
    assert_eq!(mysql.sets.len(), 4);
    let mariadb = of(Preset::Durability, "MariaDB 11.8.9");
    assert_eq!(labels(&mariadb)[0], "log 1, binlog 0", "its own default");
    assert_eq!(mariadb.sets.len(), 4);
    let postgresql = of(Preset::Durability, "PostgreSQL 18.6");
    assert!(postgresql.fixed.is_empty());
    let names = postgresql.sets.iter().flat_map(|set| set.variables.keys());
    assert!(names.into_iter().all(|name| name == "synchronous_commit"));
}

#[test]
fn releases_are_read_from_titles() {
    assert_eq!(Release::of("MariaDB 10.11.14"), Release(10, 11, 14));
    assert_eq!(Release::of("PostgreSQL 19beta1"), Release(19, 0, 0));
    assert_eq!(Release::of("Percona Server for MySQL 8.0.36"), Release(8, 0, 36));
}
