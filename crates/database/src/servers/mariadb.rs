//! A private MariaDB: `mariadbd` with a configuration of its own and no network.

use super::{
    Search,
    my_option_file::{self, Caches, Vendor, Version, as_root},
};
use crate::{
    Catalog, DatabaseError, Endpoint, Place, Settings, VariableError,
    server::{Purpose, ServerKind, Sizes, Stop, StopSignal, signal},
};
use host::own_group_command;
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    process::Command,
};
use units::Bytes;
use workload::{DatabaseJob, StorageEngine};

/// Its programs.
pub struct MariaDb {
    server: PathBuf,
    install: PathBuf,
    title: String,
}

/// Variables that data are made with.
const MADE_WITH: &[&str] = &[
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

/// Options of Spindle's that some versions do not have.
const OPTIONAL: &[&str] = &["query_cache_type"];

/// Signs of trouble in the log: trials with one of them do not count.
const SIGNS: &[&str] =
    &["[ERROR]", "orrupt", "Assertion failure", "got signal", "No space left", "disk is full"];

/// Since 11.6 snapshot isolation refuses a row that changed since it was read: the client gets error
/// 1020 and retries, and the server logs the storage engine's number of it as an error.
const HARMLESS: &[&str] = &["Got error 123 when reading table"];

impl MariaDb {
    /// Finds them.
    pub fn find(search: &Search<'_>) -> Result<MariaDb, DatabaseError> {
        let missing = |program| DatabaseError::NotInstalled { program, package: "mariadb-server" };
        let server = search.server(&["mariadbd"], &[])?.ok_or_else(|| missing("mariadbd"))?;
        let version = Version::of(&server)?;
        if version.vendor != Vendor::MariaDb {
            return Err(DatabaseError::OtherServer {
                program: server,
                is: version.title(),
                wanted: "mariadb",
                server: "mysql",
            });
        }
        let install = search
            .companion("mariadb-install-db", &[])
            .ok_or_else(|| missing("mariadb-install-db"))?;
        Ok(MariaDb { server, install, title: version.title() })
    }

    fn bare(&self) -> Command {
        let mut command = own_group_command(&self.server);
        command.arg("--no-defaults").args(as_root());
        command
    }
}

impl ServerKind for MariaDb {
    fn title(&self) -> &str {
        &self.title
    }

    fn program(&self) -> &Path {
        &self.server
    }

    fn catalog(&self) -> Result<Catalog, DatabaseError> {
        my_option_file::catalog(self.bare(), &self.title)
    }

    fn check_value(&self, name: &str, value: &str) -> Result<(), VariableError> {
        my_option_file::check_value(self.bare(), &self.title, name, value)
    }

    fn made_with(&self) -> &'static [&'static str] {
        MADE_WITH
    }

    fn initialise(
        &self,
        place: &Place,
        made_with: &BTreeMap<String, String>,
    ) -> io::Result<Command> {
        let mut command = own_group_command(&self.install);
        command
            .arg("--no-defaults")
            .arg(format!("--datadir={}", place.data().display()))
            // A server that starts removes the temporary tables that it finds: others' too, in /tmp.
            .arg(format!("--tmpdir={}", place.run.display()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
            .args(as_root());
        for (name, value) in made_with.iter().filter(|(name, _)| *name != "default_storage_engine")
        {
            command.arg(format!("--{name}={value}"));
        }
        Ok(command)
    }

    /// All that a comparison rests on is named, though most of it is what 10.11 does anyway.
    fn settings(
        &self,
        purpose: Purpose,
        job: &DatabaseJob,
        clients: u32,
        engine: StorageEngine,
    ) -> Settings {
        let loading = purpose == Purpose::Loading;
        let caches = Caches::of(purpose, job, engine);
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
            ("innodb_buffer_pool_size", caches.innodb),
            ("key_buffer_size", caches.myisam),
            ("aria_pagecache_buffer_size", caches.aria),
        ] {
            settings.push((name.to_owned(), size.0.to_string()));
        }
        settings
    }

    fn start(&self, place: &Place, settings: &Settings) -> io::Result<Command> {
        let file = my_option_file::write(place, "mariadbd", settings, OPTIONAL)?;
        let mut command = own_group_command(&self.server);
        command.arg(format!("--defaults-file={}", file.display())).args(as_root());
        Ok(command)
    }

    fn endpoint(&self, place: &Place) -> Endpoint {
        Endpoint::MySqlSocket { socket: place.run.join("socket") }
    }

    fn stop(&self, how: Stop) -> StopSignal {
        StopSignal::new(how, signal::TERM, signal::KILL)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            default_cache: my_option_file::DEFAULT_CACHE,
            memory_beside: Bytes::from_mib(160),
            disk_beside: Bytes::from_mib(300),
        }
    }

    fn signs_of_trouble(&self) -> &'static [&'static str] {
        SIGNS
    }

    fn harmless(&self) -> &'static [&'static str] {
        HARMLESS
    }
}
