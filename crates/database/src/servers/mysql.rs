//! A private MySQL, or Percona Server for MySQL: `mysqld` with a configuration of its own and no
//! network.

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

/// Its program.
pub struct MySql {
    server: PathBuf,
    title: String,
    /// Options for a program that is not where its packages put it: where its messages are.
    unpacked: Vec<String>,
}

/// Variables that data are made with.
const MADE_WITH: &[&str] = &[
    "character_set_server",
    "collation_server",
    "default_storage_engine",
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_default_row_format",
    "innodb_file_per_table",
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
];

/// Where Oracle's and Percona's archives are unpacked to by their manuals, beside the folders of
/// system programs.
const FOLDERS: [&str; 3] = ["/usr/local/mysql/bin", "/usr/libexec", "/opt/mysql/bin"];

/// Options of Spindle's that some versions do not have.
const OPTIONAL: &[&str] =
    &["mysqlx", "performance_schema", "delay_key_write", "innodb_io_capacity_max"];

/// Signs of trouble in the log: trials with one of them do not count.
const SIGNS: &[&str] =
    &["[ERROR]", "orrupt", "Assertion failure", "got signal", "No space left", "disk is full"];

impl MySql {
    /// Finds it.
    pub fn find(search: &Search<'_>) -> Result<MySql, DatabaseError> {
        let folders = FOLDERS.map(PathBuf::from);
        let server = search.server(&["mysqld"], &folders)?.ok_or(DatabaseError::NotInstalled {
            program: "mysqld",
            package: "mysql-server (or mysql-server-core, mysql-community-server, \
                      percona-server-server)",
        })?;
        let version = Version::of(&server)?;
        if version.vendor == Vendor::MariaDb {
            return Err(DatabaseError::OtherServer {
                program: server,
                is: version.title(),
                wanted: "mysql",
                server: "mariadb",
            });
        }
        let unpacked = search.program.map(unpacked).unwrap_or_default();
        Ok(MySql { server, title: version.title(), unpacked })
    }

    fn bare(&self) -> Command {
        let mut command = own_group_command(&self.server);
        command.arg("--no-defaults").args(&self.unpacked).args(as_root());
        command
    }
}

/// Options for a server below `PREFIX/bin` or `PREFIX/sbin` that finds its messages in `PREFIX/share`.
fn unpacked(program: &Path) -> Vec<String> {
    let Some(prefix) = program.parent().and_then(Path::parent) else { return Vec::new() };
    ["share/mysql", "share"]
        .iter()
        .map(|folder| prefix.join(folder))
        .find(|folder| folder.join("english/errmsg.sys").is_file())
        .map(|messages| {
            vec![
                format!("--basedir={}", prefix.display()),
                format!("--lc-messages-dir={}", messages.display()),
            ]
        })
        .unwrap_or_default()
}

impl ServerKind for MySql {
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
        let mut command = self.bare();
        command
            .arg("--initialize-insecure")
            .arg(format!("--datadir={}", place.data().display()))
            .arg(format!("--tmpdir={}", place.run.display()))
            .arg("--secure-file-priv=NULL")
            // Otherwise the dump of system tables goes through a log that nobody reads.
            .arg("--skip-log-bin");
        for (name, value) in made_with.iter().filter(|(name, _)| *name != "default_storage_engine")
        {
            command.arg(format!("--{name}={value}"));
        }
        Ok(command)
    }

    /// All that a comparison rests on is named, except what differs between versions: that is the
    /// version's own default.
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
            ("mysqlx", "0"),
            ("secure_file_priv", "NULL"),
            ("skip_log_bin", "1"),
            ("sync_binlog", "0"),
            ("innodb_flush_log_at_trx_commit", durable),
            ("innodb_doublewrite", doublewrite),
            // A pool that is filled from a file on the side is no property of the storage.
            ("innodb_buffer_pool_dump_at_shutdown", "0"),
            ("innodb_buffer_pool_load_at_startup", "0"),
            ("performance_schema", "0"),
            ("delay_key_write", "OFF"),
            // A connection prepares each statement for each table.
            ("max_prepared_stmt_count", "1048576"),
            ("table_open_cache", "4000"),
            ("max_allowed_packet", "16777216"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        if loading {
            settings.push(("innodb_io_capacity".to_owned(), "20000".to_owned()));
            settings.push(("innodb_io_capacity_max".to_owned(), "40000".to_owned()));
        }
        settings.push(("max_connections".to_owned(), (clients + clients / 10 + 32).to_string()));
        settings.push(("innodb_buffer_pool_size".to_owned(), caches.innodb.0.to_string()));
        settings.push(("key_buffer_size".to_owned(), caches.myisam.0.to_string()));
        settings
    }

    fn start(&self, place: &Place, settings: &Settings) -> io::Result<Command> {
        let file = my_option_file::write(place, "mysqld", settings, OPTIONAL)?;
        let mut command = own_group_command(&self.server);
        command.arg(format!("--defaults-file={}", file.display()));
        command.args(&self.unpacked).args(as_root());
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
            memory_beside: Bytes::from_mib(400),
            disk_beside: Bytes::from_mib(400),
        }
    }

    fn signs_of_trouble(&self) -> &'static [&'static str] {
        SIGNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_unpacked_server_finds_its_messages() {
        let tree = tempfile::tempdir().unwrap();
        let prefix = tree.path();
        fs::create_dir_all(prefix.join("sbin")).unwrap();
        assert!(unpacked(&prefix.join("sbin/mysqld")).is_empty());
        fs::create_dir_all(prefix.join("share/mysql/english")).unwrap();
        fs::write(prefix.join("share/mysql/english/errmsg.sys"), "").unwrap();
        let options = unpacked(&prefix.join("sbin/mysqld"));
        assert_eq!(options[0], format!("--basedir={}", prefix.display()));
        assert_eq!(options[1], format!("--lc-messages-dir={}/share/mysql", prefix.display()));
    }
}
