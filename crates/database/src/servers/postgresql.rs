//! A private PostgreSQL: `postgres` with a configuration of its own and no network.

use crate::{
    Catalog, DatabaseError, Endpoint, Place, Settings,
    server::{Purpose, output, program, whole_kib},
};
use host::{Host, User};
use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};
use units::Bytes;
use workload::DatabaseJob;

/// Its programs.
pub struct PostgreSql {
    server: PathBuf,
    install: PathBuf,
    /// `PostgreSQL 15.14`.
    pub title: String,
    /// Whom it runs as: it refuses root.
    pub user: Option<User>,
}

/// What a data directory is made with; both are read-only variables of a running server.
pub const SHAPING: &[&str] = &["data_checksums", "wal_segment_size"];

/// What keeps the server apart from all others.
const OWN: &[&str] = &[
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
const CACHE_USUAL: Bytes = Bytes::from_mib(128);

/// The superuser's name, which initdb makes.
pub(crate) const SUPERUSER: &str = "postgres";

impl PostgreSql {
    /// Finds them: Debian keeps them apart by version, the newest counts.
    pub fn find(host: &Host) -> Result<PostgreSql, DatabaseError> {
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
        let missing = |what: &str| {
            DatabaseError::Usage(format!(
                "{what} is not here: install the package postgresql (Spindle needs no running \
                 service: it may be disabled), or name another server"
            ))
        };
        let server = program("postgres", &folders).ok_or_else(|| missing("postgres"))?;
        let install = program("initdb", &folders).ok_or_else(|| missing("initdb"))?;
        let version = output(Command::new(&server).arg("--version"))?;
        let version = version.split_whitespace().nth(2).unwrap_or_default();
        let user = match rustix::process::geteuid().is_root() {
            false => None,
            true => {
                let found =
                    ["postgres", "nobody"].into_iter().find_map(|name| User::named(host, name));
                Some(found.ok_or_else(|| {
                    DatabaseError::Usage(
                        "PostgreSQL refuses to run as root, and there is neither a user postgres \
                         nor nobody: run Spindle as another user"
                            .to_owned(),
                    )
                })?)
            }
        };
        Ok(PostgreSql { server, install, title: format!("PostgreSQL {version}"), user })
    }

    /// Its own list; `data_checksums` and the like, which it only shows, are in it too.
    pub fn catalog(&self) -> Result<Catalog, DatabaseError> {
        // It refuses root before it looks at its arguments.
        let text = output(self.as_user(Command::new(&self.server)).arg("--describe-config"))?;
        let variables = text
            .lines()
            .filter_map(|line| {
                let mut fields = line.split('\t');
                let name = fields.next()?.trim();
                Some((name.to_owned(), fields.nth(3).unwrap_or_default().to_owned()))
            })
            .filter(|(name, _)| !name.is_empty())
            .chain(SHAPING.iter().map(|name| ((*name).to_owned(), String::new())))
            .collect();
        Ok(Catalog { server: self.title.clone(), variables, own: OWN })
    }

    /// Whether the value is of the variable's type and range, as its own list has them.
    pub fn refuse_value(&self, name: &str, value: &str) -> Option<String> {
        if SHAPING.contains(&name) {
            return None;
        }
        // Without a data directory it complains of that after it has looked at the value.
        let mut command = self.as_user(Command::new(&self.server));
        command.args(["-D", "/nonexistent", "-c"]).arg(format!("{name}={value}"));
        let ended = command.args(["-C", name]).output().ok()?;
        let said = String::from_utf8_lossy(&ended.stderr);
        let complaint = said.lines().find(|line| line.contains(name))?;
        let hint =
            said.lines().find_map(|line| line.split_once("HINT:")).map(|(_, hint)| hint.trim());
        let words = complaint.split_once("FATAL:").map_or(complaint, |(_, words)| words).trim();
        Some(format!(
            "{} would not take {name}={value}: {words}{}",
            self.title,
            hint.map(|hint| format!(" ({})", hint.trim_end_matches('.'))).unwrap_or_default()
        ))
    }

    fn as_user(&self, mut command: Command) -> Command {
        use std::os::unix::process::CommandExt;
        if let Some(user) = &self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command.current_dir("/");
        command
    }

    /// Makes an empty data directory.
    pub fn installation(
        &self,
        place: &Place,
        shaping: &BTreeMap<String, String>,
    ) -> io::Result<Command> {
        fs::create_dir(&place.data)?;
        fs::set_permissions(&place.data, fs::Permissions::from_mode(0o700))?;
        for folder in [&place.data, &place.run] {
            if let Some(user) = &self.user {
                chown(folder, Some(user.uid), Some(user.gid))?;
            }
        }
        let mut command = Command::new(&self.install);
        command.arg("-D").arg(&place.data).args([
            "-U",
            SUPERUSER,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        for (name, value) in shaping {
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

    /// Starts it on data that are there.
    pub fn command(&self, place: &Place, settings: &Settings) -> io::Result<Command> {
        let quoted = |value: &str| value.replace('\'', "''");
        let mut text = String::new();
        for (name, value) in settings {
            text += &format!("{name} = '{}'\n", quoted(value));
        }
        text += "listen_addresses = ''\nlogging_collector = off\n";
        let run = place.run.display().to_string();
        text += &format!("unix_socket_directories = '{}'\n", quoted(&run));
        let path = place.data.join("postgresql.conf");
        fs::write(&path, text)?;
        for path in [&path, &place.run] {
            if let Some(user) = &self.user {
                chown(path, Some(user.uid), Some(user.gid))?;
            }
        }
        // Left by a server that was ended at once, in data that were copied while it ran.
        match fs::remove_file(place.data.join("postmaster.pid")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut command = Command::new(&self.server);
        command.arg("-D").arg(&place.data);
        Ok(command)
    }

    /// Where it listens.
    pub fn endpoint(&self, run: &Path) -> Endpoint {
        Endpoint::PostgreSqlSocket { folder: run.to_owned() }
    }
}

/// What it is told beside the user's variables: all that a comparison rests on is named, though most
/// of it is what 15 does anyway.
pub(crate) fn settings(purpose: Purpose, job: &DatabaseJob, clients: u32) -> Settings {
    let loading = purpose == Purpose::Loading;
    let durable = if loading { "off" } else { "on" };
    let cache = job.buffer_pool.unwrap_or(CACHE_USUAL);
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
    settings.push(("shared_buffers".to_owned(), format!("{}kB", whole_kib(cache))));
    settings.push(("max_connections".to_owned(), (clients + clients / 10 + 32).to_string()));
    settings
}
