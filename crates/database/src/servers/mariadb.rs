//! A private MariaDB: `mariadbd` with a configuration of its own and no network.

use crate::{
    Catalog, DatabaseError, Place, Settings,
    server::{Purpose, output, program},
};
use std::{collections::BTreeMap, fs, io, path::PathBuf, process::Command};
use units::Bytes;
use workload::{DatabaseJob, StorageEngine};

/// Its programs.
pub struct MariaDb {
    server: PathBuf,
    install: PathBuf,
    /// `MariaDB 10.11.14`.
    pub title: String,
}

/// Variables that data are made with.
pub const SHAPING: &[&str] = &[
    "aria_block_size",
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "innodb_checksum_algorithm",
    "innodb_compression_default",
    "innodb_compression_level",
    "innodb_data_file_path",
    "innodb_default_row_format",
    "innodb_file_per_table",
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
    "myisam_block_size",
];

/// What keeps the server apart from all others.
const OWN: &[&str] = &[
    "bind_address",
    "datadir",
    "log_error",
    "pid_file",
    "port",
    "skip_networking",
    "socket",
    "user",
];

/// The server's own cache when nothing is said: what it is by default.
const CACHE_USUAL: Bytes = Bytes::from_mib(128);

impl MariaDb {
    /// Finds them.
    pub fn find() -> Result<MariaDb, DatabaseError> {
        let missing = |what: &str| {
            DatabaseError::Usage(format!(
                "{what} is not here: install the package mariadb-server (Spindle needs no running \
                 service: it may be disabled), or name another server"
            ))
        };
        let server = program("mariadbd", &[]).ok_or_else(|| missing("mariadbd"))?;
        let install =
            program("mariadb-install-db", &[]).ok_or_else(|| missing("mariadb-install-db"))?;
        let version = output(Command::new(&server).arg("--version"))?;
        // mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu …
        let version = version.split_once("Ver ").map_or("", |(_, rest)| rest);
        let version = version.split('-').next().unwrap_or_default();
        Ok(MariaDb { server, install, title: format!("MariaDB {version}") })
    }

    /// The table of names and defaults at the end of its help.
    pub fn catalog(&self) -> Result<Catalog, DatabaseError> {
        let mut command = Command::new(&self.server);
        let help = output(command.args(["--no-defaults", "--verbose", "--help"]).args(as_root()))?;
        let table = help.lines().skip_while(|line| !line.starts_with("-----")).skip(1);
        let variables = table
            .take_while(|line| !line.trim().is_empty())
            .filter_map(|line| {
                let (name, value) = line.split_once(' ')?;
                Some((name.replace('-', "_"), value.trim().to_owned()))
            })
            .collect();
        Ok(Catalog { server: self.title.clone(), variables, own: OWN })
    }

    /// What the server says to a value when it only prints its help.
    pub fn refuse_value(&self, name: &str, value: &str) -> Option<String> {
        let mut command = Command::new(&self.server);
        command.arg("--no-defaults").arg(format!("--{name}={value}"));
        let ended = command.args(["--verbose", "--help"]).args(as_root()).output().ok()?;
        let said = String::from_utf8_lossy(&ended.stderr);
        let complaint = said.lines().find(|line| {
            line.contains("[ERROR]") || (line.contains("[Warning]") && line.contains("adjusted"))
        });
        let complaint = match (complaint, ended.status.success()) {
            (None, true) => return None,
            (Some(line), _) => line.rsplit_once("] ").map_or(line, |(_, words)| words).trim(),
            (None, false) => said.lines().next_back().unwrap_or("it gives no reason").trim(),
        };
        Some(format!("{} would not take {name}={value}: {complaint}", self.title))
    }

    /// Makes an empty data directory.
    pub fn installation(
        &self,
        place: &Place,
        shaping: &BTreeMap<String, String>,
    ) -> io::Result<Command> {
        let mut command = Command::new(&self.install);
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", place.data.display()))
            // A server that starts removes the temporary tables that it finds: others' too, in /tmp.
            .arg(format!("--tmpdir={}", place.run.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(as_root());
        for (name, value) in shaping.iter().filter(|(name, _)| *name != "default_storage_engine") {
            command.arg(format!("--{name}={value}"));
        }
        Ok(command)
    }

    /// Starts it on data that are there.
    pub fn command(&self, place: &Place, settings: &Settings) -> io::Result<Command> {
        let mut text = "[mariadbd]\n".to_owned();
        for (name, value) in settings {
            text += &format!("{name} = {value}\n");
        }
        for (name, path) in [
            ("datadir", &place.data),
            ("socket", &place.run.join("socket")),
            ("tmpdir", &place.run),
        ] {
            text += &format!("{name} = {}\n", path.display());
        }
        text += &format!("pid_file = {}\n", place.run.join("pid").display());
        let path = place.run.join("my.cnf");
        fs::write(&path, text)?;
        let mut command = Command::new(&self.server);
        command.arg(format!("--defaults-file={}", path.display())).args(as_root());
        Ok(command)
    }
}

/// The server asks for its user's name before it runs as root.
fn as_root() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("--user=root")
}

/// What it is told beside the user's variables: all that a comparison rests on is named, though most
/// of it is what 10.11 does anyway.
pub(crate) fn settings(
    purpose: Purpose,
    job: &DatabaseJob,
    clients: u32,
    variables: &BTreeMap<String, String>,
) -> Settings {
    let engine = job.engine.or_else(|| variables.get("default_storage_engine")?.parse().ok());
    let loading = purpose == Purpose::Loading;
    let mut cache = job.buffer_pool.unwrap_or(CACHE_USUAL);
    if loading {
        // Random keys come in as fast as their indexes fit in memory.
        cache = cache.max(job.data_size().clamp(Bytes::from_mib(256), Bytes::from_gib(1)));
    }
    let (pool, keys, aria) = match engine {
        None | Some(StorageEngine::InnoDb) => (cache, CACHE_USUAL, CACHE_USUAL),
        Some(StorageEngine::MyIsam) => (CACHE_USUAL, cache, CACHE_USUAL),
        Some(StorageEngine::Aria) => (CACHE_USUAL, CACHE_USUAL, cache),
    };
    let [durable, doublewrite] = if loading { ["0", "0"] } else { ["1", "1"] };
    let mut settings: Settings = [
        ("skip_networking", "1"),
        ("skip_log_bin", "1"),
        ("sync_binlog", "0"),
        ("innodb_flush_log_at_trx_commit", durable),
        ("innodb_doublewrite", doublewrite),
        ("innodb_io_capacity", if loading { "20000" } else { "200" }),
        // A pool that is filled from a file on the side is no property of the storage.
        ("innodb_buffer_pool_dump_at_shutdown", "0"),
        ("innodb_buffer_pool_load_at_startup", "0"),
        ("performance_schema", "0"),
        ("query_cache_type", "0"),
        ("delay_key_write", "OFF"),
        // A connection prepares each statement for each table.
        ("max_prepared_stmt_count", "1048576"),
        ("table_open_cache", "4000"),
        ("max_allowed_packet", "16777216"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    settings.push(("max_connections".to_owned(), (clients + clients / 10 + 32).to_string()));
    for (name, size) in [
        ("innodb_buffer_pool_size", pool),
        ("key_buffer_size", keys),
        ("aria_pagecache_buffer_size", aria),
    ] {
        settings.push((name.to_owned(), size.0.to_string()));
    }
    settings
}
