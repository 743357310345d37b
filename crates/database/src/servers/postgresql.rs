//! A private PostgreSQL: `postgres` with a configuration of its own and no network.

use super::Search;
use crate::session::postgresql::SUPERUSER;
use crate::{
    Catalog, DatabaseError, Endpoint, Place, Settings, VariableError,
    server::{Purpose, ServerKind, Sizes, Stop, StopSignal, output, signal},
};
use host::{User, own_group_command};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::lchown,
    },
    path::{Path, PathBuf},
    process::Command,
};
use units::Bytes;
use workload::{DatabaseJob, StorageEngine};

/// Its programs.
pub struct PostgreSql {
    server: PathBuf,
    install: PathBuf,
    title: String,
    /// Whom it runs as: it refuses root.
    user: Option<User>,
}

/// What a data directory is made with; both are read-only variables of a running server.
const MADE_WITH: &[&str] = &["data_checksums", "wal_segment_size"];

/// Variables that Spindle sets itself, because they keep the server apart from all others.
const RESERVED: &[&str] = &[
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "listen_addresses",
    "logging_collector",
    "port",
    "unix_socket_directories",
];

/// `shared_buffers` when nothing is said: what initdb chooses where it can.
const DEFAULT_CACHE: Bytes = Bytes::from_mib(128);

/// Signs of trouble in the log: trials with one of them do not count.
const SIGNS: &[&str] = &[
    "orrupt",
    "PANIC:",
    "invalid page",
    "No space left",
    "could not extend",
    "could not write",
    "could not fsync",
    "was terminated by signal",
];

impl PostgreSql {
    /// Gives something open, and the folder of the socket, to the server's user.
    fn own(&self, made: BorrowedFd, place: &Place) -> io::Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        user.own(made)?;
        lchown(&place.run, Some(user.uid), Some(user.gid))
    }

    /// Finds them: Debian keeps them apart by version, the newest counts.
    pub fn find(search: &Search<'_>) -> Result<PostgreSql, DatabaseError> {
        let mut folders: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let version = entry.file_name().to_str()?.parse().ok()?;
                Some((version, entry.path().join("bin")))
            })
            .collect();
        folders.sort_unstable_by(|a, b| b.cmp(a));
        let folders: Vec<PathBuf> = folders.into_iter().map(|(_, folder)| folder).collect();
        let missing = |program| DatabaseError::NotInstalled { program, package: "postgresql" };
        let server = search.server(&["postgres"], &folders)?.ok_or_else(|| missing("postgres"))?;
        let text = output(own_group_command(&server).arg("--version"))?;
        // postgres (PostgreSQL) 18.6 (Debian 18.6-1)
        let version = text
            .split_once("(PostgreSQL) ")
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .ok_or_else(|| DatabaseError::UnknownVersion {
                program: server.clone(),
                text: text.trim().to_owned(),
            })?
            .to_owned();
        let install = search.companion("initdb", &folders).ok_or_else(|| missing("initdb"))?;
        let user = match rustix::process::geteuid().is_root() {
            false => None,
            true => {
                let found = ["postgres", "nobody"]
                    .into_iter()
                    .find_map(|name| User::named(search.host, name));
                Some(found.ok_or(DatabaseError::NoUserForServer)?)
            }
        };
        Ok(PostgreSql { server, install, title: format!("PostgreSQL {version}"), user })
    }

    fn as_user(&self, mut command: Command) -> Command {
        use std::os::unix::process::CommandExt;
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command.current_dir("/");
        command
    }
}

impl ServerKind for PostgreSql {
    fn title(&self) -> &str {
        &self.title
    }

    fn program(&self) -> &Path {
        &self.server
    }

    fn user(&self) -> Option<&User> {
        self.user.as_ref()
    }

    /// Its own list; `data_checksums` and the like, which it only shows, are in it too.
    fn catalog(&self) -> Result<Catalog, DatabaseError> {
        // It refuses root before it looks at its arguments.
        let text = output(self.as_user(own_group_command(&self.server)).arg("--describe-config"))?;
        let variables = text
            .lines()
            .filter_map(|line| {
                let mut fields = line.split('\t');
                let name = fields.next()?.trim();
                Some((name.to_owned(), fields.nth(3).unwrap_or_default().to_owned()))
            })
            .filter(|(name, _)| !name.is_empty())
            .chain(MADE_WITH.iter().map(|name| ((*name).to_owned(), String::new())))
            .collect();
        Ok(Catalog { server: self.title.clone(), variables, reserved: RESERVED })
    }

    /// Whether the value is of the variable's type and range, as its own list has them.
    fn check_value(&self, name: &str, value: &str) -> Result<(), VariableError> {
        if MADE_WITH.contains(&name) {
            return Ok(());
        }
        // Without a data directory it complains of that after it has looked at the value.
        let mut command = self.as_user(own_group_command(&self.server));
        command.args(["-D", "/nonexistent", "-c"]).arg(format!("{name}={value}"));
        let Ok(ended) = command.args(["-C", name]).output() else { return Ok(()) };
        let said = String::from_utf8_lossy(&ended.stderr);
        let Some(complaint) = said.lines().find(|line| line.contains(name)) else {
            return Ok(());
        };
        let hint =
            said.lines().find_map(|line| line.split_once("HINT:")).map(|(_, hint)| hint.trim());
        let words = complaint.split_once("FATAL:").map_or(complaint, |(_, words)| words).trim();
        let hint = hint.map(|hint| format!(" ({})", hint.trim_end_matches('.')));
        Err(VariableError::Value {
            server: self.title.clone(),
            name: name.to_owned(),
            value: value.to_owned(),
            complaint: format!("{words}{}", hint.unwrap_or_default()),
        })
    }

    fn made_with(&self) -> &'static [&'static str] {
        MADE_WITH
    }

    /// initdb takes them; a running server only shows them.
    fn set_when_made_only(&self) -> bool {
        true
    }

    fn initialise(
        &self,
        place: &Place,
        made_with: &BTreeMap<String, String>,
    ) -> io::Result<Command> {
        let data = place.home.create_folder(&place.name).map_err(io::Error::other)?;
        self.own(data.as_fd(), place)?;
        let mut command = own_group_command(&self.install);
        command.arg("-D").arg(place.data()).args([
            "-U",
            SUPERUSER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        for (name, value) in made_with {
            match name.as_str() {
                "wal_segment_size" => {
                    let size: Bytes = value.parse().map_err(io::Error::other)?;
                    command.arg(format!("--wal-segsize={}", size.0 >> 20));
                }
                "data_checksums" if matches!(value.as_str(), "on" | "true" | "1") => {
                    command.arg("--data-checksums");
                }
                _ => {}
            }
        }
        Ok(command)
    }

    fn start(&self, place: &Place, settings: &Settings) -> io::Result<Command> {
        let quoted = |value: &str| value.replace('\'', "''");
        let mut text = String::new();
        for (name, value) in settings {
            text += &format!("{name} = '{}'\n", quoted(value));
        }
        text += "listen_addresses = ''\nlogging_collector = off\n";
        let run = place.run.display().to_string();
        text += &format!("unix_socket_directories = '{}'\n", quoted(&run));
        const CONFIGURATION: &str = "postgresql.conf";
        // The folder is the server's user's: what is there is not written through, but made anew.
        let data = place.open_data().map_err(io::Error::other)?;
        data.remove_file(CONFIGURATION).map_err(io::Error::other)?;
        let mut file = data.create_file(CONFIGURATION).map_err(io::Error::other)?;
        file.write_all(text.as_bytes())?;
        self.own(file.as_fd(), place)?;
        // Left by a server that was ended at once, in data that were copied while it ran.
        data.remove_file("postmaster.pid").map_err(io::Error::other)?;
        let mut command = own_group_command(&self.server);
        command.arg("-D").arg(place.data());
        Ok(command)
    }

    /// All that a comparison rests on is named, though most of it is what 15 does anyway.
    fn settings(
        &self,
        purpose: Purpose,
        job: &DatabaseJob,
        clients: u32,
        _engine: StorageEngine,
    ) -> Settings {
        let loading = purpose == Purpose::Loading;
        let durable = if loading { "off" } else { "on" };
        let cache = job.buffer_pool.unwrap_or(DEFAULT_CACHE);
        let wal = if loading { "8GB" } else { "1GB" };
        let mut settings: Settings = [
            ("fsync", durable),
            ("synchronous_commit", durable),
            ("full_page_writes", durable),
            ("max_wal_size", wal),
            ("checkpoint_timeout", "5min"),
            ("autovacuum", "on"),
            ("wal_level", "replica"),
            ("max_wal_senders", "0"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        if loading {
            settings.push(("wal_level".to_owned(), "minimal".to_owned()));
            settings.push(("maintenance_work_mem".to_owned(), "256MB".to_owned()));
        }
        settings.push(("shared_buffers".to_owned(), format!("{}kB", cache.0.div_ceil(1024))));
        settings.push(("max_connections".to_owned(), (clients + clients / 10 + 32).to_string()));
        settings
    }

    fn endpoint(&self, place: &Place) -> Endpoint {
        Endpoint::PostgreSqlSocket { folder: place.run.clone() }
    }

    /// The fast and the immediate shutdown of pg_ctl(1): both leave no shared memory behind.
    fn stop(&self, how: Stop) -> StopSignal {
        StopSignal::new(how, signal::INT, signal::QUIT)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            default_cache: DEFAULT_CACHE,
            memory_beside: Bytes::from_mib(160),
            disk_beside: Bytes::from_mib(300),
        }
    }

    fn signs_of_trouble(&self) -> &'static [&'static str] {
        SIGNS
    }
}
