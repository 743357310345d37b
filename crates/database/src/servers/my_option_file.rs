//! What MariaDB's and MySQL's servers have in common: their version line, the list of variables in
//! their help, and their option file.

use crate::{
    Catalog, DatabaseError, Place, Settings, VariableError,
    server::{Purpose, output},
};
use host::own_group_command;
use std::{fs, io, path::Path, process::Command};
use units::Bytes;
use workload::{DatabaseJob, StorageEngine};

/// Who made a server that answers `--version` like `mysqld  Ver 9.7.4 for Linux on x86_64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// MariaDB.
    MariaDb,
    /// MySQL as Oracle or a distribution builds it.
    MySql,
    /// Percona Server for MySQL.
    Percona,
}

/// A server program's version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Who made it.
    pub vendor: Vendor,
    /// `9.7.4`.
    pub number: String,
}

impl Version {
    /// Runs `program --version`.
    pub fn of(program: &Path) -> Result<Version, DatabaseError> {
        let text = output(own_group_command(program).arg("--version"))?;
        Version::read(&text).ok_or_else(|| DatabaseError::UnknownVersion {
            program: program.to_owned(),
            text: text.trim().to_owned(),
        })
    }

    /// From the line that it prints, in whichever of these forms:
    /// `mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64 (Debian 12)`,
    /// `/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))`,
    /// `mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28)`.
    fn read(text: &str) -> Option<Version> {
        let line = text.lines().find(|line| line.contains("Ver "))?;
        let (_, rest) = line.split_once("Ver ")?;
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let number = rest.trim_start().split(|c| !is_number(c)).next()?;
        if number.is_empty() {
            return None;
        }
        let vendor = if rest.contains("MariaDB") {
            Vendor::MariaDb
        } else if rest.contains("Percona") {
            Vendor::Percona
        } else {
            Vendor::MySql
        };
        Some(Version { vendor, number: number.to_owned() })
    }

    /// For people: `MySQL 9.7.4`.
    pub fn title(&self) -> String {
        let name = match self.vendor {
            Vendor::MariaDb => "MariaDB",
            Vendor::MySql => "MySQL",
            Vendor::Percona => "Percona Server for MySQL",
        };
        format!("{name} {}", self.number)
    }
}

/// Options that Spindle sets itself, because they keep the server apart from all others.
pub const RESERVED: &[&str] = &[
    "admin_address",
    "basedir",
    "bind_address",
    "datadir",
    "lc_messages_dir",
    "log_error",
    "mysqlx",
    "pid_file",
    "port",
    "secure_file_priv",
    "skip_networking",
    "socket",
    "tmpdir",
    "user",
];

/// The table of names and defaults at the end of a server's help.
pub fn catalog(mut command: Command, title: &str) -> Result<Catalog, DatabaseError> {
    let help = output(command.args(["--verbose", "--help"]))?;
    let table = help.lines().skip_while(|line| !line.starts_with("-----")).skip(1);
    let variables = table
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(' ')?;
            Some((name.replace('-', "_"), value.trim().to_owned()))
        })
        .collect();
    Ok(Catalog { server: title.to_owned(), variables, reserved: RESERVED })
}

/// What the server says to a value when it only prints its help.
pub fn check_value(
    mut command: Command,
    title: &str,
    name: &str,
    value: &str,
) -> Result<(), VariableError> {
    command.arg(format!("--{name}={value}")).args(["--verbose", "--help"]);
    // A server that cannot be run says so when it is started.
    let Ok(ended) = command.output() else { return Ok(()) };
    let said = String::from_utf8_lossy(&ended.stderr);
    let complaint = said.lines().find(|line| {
        let warns = |of: &str| line.contains("[Warning]") && line.contains(of);
        line.contains("[ERROR]") || warns("adjusted") || warns("ignoring option")
    });
    let complaint = match (complaint, ended.status.success()) {
        (None, true) => return Ok(()),
        (Some(line), _) => line.rsplit_once("] ").map_or(line, |(_, words)| words).trim(),
        (None, false) => said.lines().next_back().unwrap_or("it gives no reason").trim(),
    };
    Err(VariableError::Value {
        server: title.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        complaint: complaint.to_owned(),
    })
}

/// Writes an option file with one group; its path.
pub fn write(
    place: &Place,
    group: &str,
    settings: &Settings,
    optional: &[&str],
) -> io::Result<std::path::PathBuf> {
    let mut text = format!("[{group}]\n");
    for (name, value) in settings {
        // A server that does not know a `loose_` option warns and starts all the same.
        let loose = if optional.contains(&name.as_str()) { "loose_" } else { "" };
        text += &format!("{loose}{name} = {value}\n");
    }
    for (name, path) in [
        ("datadir", &place.data()),
        ("socket", &place.run.join("socket")),
        ("tmpdir", &place.run),
        ("pid_file", &place.run.join("pid")),
    ] {
        text += &format!("{name} = {}\n", path.display());
    }
    let path = place.run.join("my.cnf");
    fs::write(&path, text)?;
    Ok(path)
}

/// The server asks for its user's name before it runs as root.
pub fn as_root() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("--user=root")
}

/// The size of each storage engine's cache of pages when nothing is said.
pub const DEFAULT_CACHE: Bytes = Bytes::from_mib(128);

/// How large the caches of a server's storage engines are.
pub struct Caches {
    /// `innodb_buffer_pool_size`.
    pub innodb: Bytes,
    /// `key_buffer_size`.
    pub myisam: Bytes,
    /// `aria_pagecache_buffer_size`.
    pub aria: Bytes,
}

impl Caches {
    /// The workload's `buffer_pool` goes to the engine of its tables, the default to the others.
    pub fn of(purpose: Purpose, job: &DatabaseJob, engine: StorageEngine) -> Caches {
        let mut wanted = job.buffer_pool.unwrap_or(DEFAULT_CACHE);
        if purpose == Purpose::Loading {
            // Random keys come in as fast as their indexes fit in memory.
            wanted = wanted.max(job.data_size().clamp(Bytes::from_mib(256), Bytes::from_gib(1)));
        }
        let of = |this| if engine == this { wanted } else { DEFAULT_CACHE };
        Caches {
            innodb: of(StorageEngine::InnoDb),
            myisam: of(StorageEngine::MyIsam),
            aria: of(StorageEngine::Aria),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_all_vendors() {
        let cases = [
            (
                "mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64 (Debian 12)",
                "MariaDB 10.11.14",
            ),
            ("mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu", "MariaDB 10.11.19"),
            ("/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "MySQL 9.7.4"),
            ("mysqld  Ver 8.0.39-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))", "MySQL 8.0.39"),
            ("mysqld  Ver 8.4.0 for Linux on x86_64 (MySQL Community Server - GPL)", "MySQL 8.4.0"),
            (
                "mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28)",
                "Percona Server for MySQL 8.0.36",
            ),
            ("warning: no locale\n/opt/x/mysqld  Ver 9.0.1 for Linux", "MySQL 9.0.1"),
        ];
        for (text, title) in cases {
            assert_eq!(Version::read(text).unwrap().title(), title, "{text}");
        }
        assert_eq!(Version::read("postgres (PostgreSQL) 18.1"), None);
        assert_eq!(Version::read("mysqld  Ver unknown"), None);
    }
}
