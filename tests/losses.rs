//! What servers lose when the power fails right after a commit that they acknowledged: on an emulated device that takes
//! back all that was not flushed, under the kernel's own ext4.

use crate::{
    database::{has_mariadb, has_postgresql},
    machine::can_emulate,
};
use emulate::{DataPlace, Emulation, Wanted};
use host::{Changes, FilesystemKind, Host, MountedFilesystem, ScratchDevice, User};
use std::{
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use units::Bytes;

/// A device whose power can fail, with a filesystem.
struct Disk {
    changes: Changes,
    device: Emulation,
    scratch: ScratchDevice,
    mounted: Option<MountedFilesystem>,
    _state: tempfile::TempDir,
}

impl Disk {
    fn new() -> Disk {
        let state = tempfile::tempdir_in("/var/tmp").unwrap();
        let host = Host::here();
        let mut changes = Changes::begin_in(&host, &state.path().join("state"), "test").unwrap();
        let wanted = Wanted {
            program: env!("CARGO_BIN_EXE_spindle").into(),
            arguments: vec!["emulate-server".to_owned()],
            profile: "ssd-sata-2018".to_owned(),
            seed: 1,
            size: Some(Bytes::from_gib(1)),
            data: DataPlace::Memory,
            transport: Some("fuse".parse().unwrap()),
            pauses: None,
        };
        let mut device = Emulation::start(&mut changes, &wanted).unwrap();
        device.bypass(true).unwrap();
        let cleared = host::clear(&host, &device.node, Some(&device.confirmation)).unwrap();
        let scratch = ScratchDevice::of_cleared(cleared.unwrap());
        changes.make_filesystem(&scratch, FilesystemKind::Ext4, "").unwrap();
        // PostgreSQL's user must reach it.
        for folder in [state.path().to_owned(), state.path().join("state")] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o711)).unwrap();
        }
        let mut disk = Disk { changes, device, scratch, mounted: None, _state: state };
        disk.mount();
        disk
    }

    fn mount(&mut self) -> PathBuf {
        let mounted = self.changes.mount(&self.scratch, FilesystemKind::Ext4, "").unwrap();
        let point = mounted.point.clone();
        self.mounted = Some(mounted);
        point
    }

    fn point(&self) -> PathBuf {
        self.mounted.as_ref().unwrap().point.clone()
    }

    /// What the device and the kernel have of it afterwards is what was flushed.
    fn after_the_failure(&mut self) {
        self.changes.unmount(self.mounted.take().unwrap()).unwrap();
        let flushed = Command::new("blockdev").arg("--flushbufs").arg(&self.device.node).status();
        assert!(flushed.unwrap().success());
        self.device.restore_power().unwrap();
        self.mount();
    }
}

/// A server on a folder.
struct Server {
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

type Run = dyn Fn(&Path, &[&str]) -> Command;
type Ask = dyn Fn(&Path, &str) -> Command;

/// How a kind of server is made, run and asked.
struct Kind {
    /// Makes the data folder below a place.
    make: Box<dyn Fn(&Path) -> Command>,
    /// Runs it with these settings.
    run: Box<Run>,
    /// Asks it.
    ask: Box<Ask>,
    /// What it says.
    log: tempfile::NamedTempFile,
}

impl Kind {
    fn start(&self, place: &Path, settings: &[&str]) -> Server {
        self.try_start(place, settings).unwrap_or_else(|| panic!("{}", self.said()))
    }

    /// None where it ends by itself.
    fn try_start(&self, place: &Path, settings: &[&str]) -> Option<Server> {
        let log = std::fs::File::create(self.log.path()).unwrap();
        let mut command = (self.run)(place, settings);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let mut server = Server { child: command.process_group(0).spawn().unwrap() };
        let begun = Instant::now();
        while self.asked(place, "SELECT 1").is_none() {
            if server.child.try_wait().unwrap().is_some() {
                return None;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "{}", self.said());
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(server)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    /// The answer; none where it failed.
    fn asked(&self, place: &Path, sql: &str) -> Option<String> {
        let output = (self.ask)(place, sql).stdin(Stdio::null()).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// How many of so many acknowledged commits are lost: each the last one before a power failure of its own.
fn lost(kind: &Kind, settings: &[&str], failures: u32) -> u32 {
    let mut disk = Disk::new();
    let made = (kind.make)(&disk.point()).output().unwrap();
    let said = [made.stdout, made.stderr].concat();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&said));
    let server = kind.start(&disk.point(), settings);
    let setup = "CREATE DATABASE d";
    kind.asked(&disk.point(), setup).unwrap();
    drop(server);
    disk.device.let_power_fail().unwrap();
    let mut lost = 0;
    for failure in 0..failures {
        let server = kind.start(&disk.point(), settings);
        let point = disk.point();
        let table = format!("CREATE TABLE IF NOT EXISTS t{failure} (i INT PRIMARY KEY)");
        kind.asked(&point, &table).unwrap();
        // What is behind it is on the disk.
        std::thread::sleep(Duration::from_secs(3));
        rustix::fs::sync();
        kind.asked(&point, &format!("INSERT INTO t{failure} VALUES (1)")).expect("acknowledged");
        disk.device.fail_power().unwrap();
        drop(server);
        disk.after_the_failure();
        // One that does not come up again has lost it, too, and all else.
        let Some(server) = kind.try_start(&disk.point(), settings) else {
            println!("it does not come up: {}", kind.said());
            return lost + 1;
        };
        let rows = kind.asked(&disk.point(), &format!("SELECT COUNT(*) FROM t{failure}"));
        lost += u32::from(rows.is_none_or(|rows| rows == "0"));
        drop(server);
    }
    lost
}

/// MySQL or MariaDB, from a program.
fn mysql_kind(program: &str, is_mariadb: bool) -> Kind {
    let server = program.to_owned();
    let run = move |place: &Path| {
        let mut command = Command::new(&server);
        command.arg("--no-defaults").arg("--user=root");
        command.arg(format!("--datadir={}", place.join("data").display()));
        command
    };
    let starts = run.clone();
    Kind {
        log: tempfile::NamedTempFile::new().unwrap(),
        make: Box::new(move |place| {
            if !is_mariadb {
                let mut command = run(place);
                command.arg("--initialize-insecure");
                return command;
            }
            let mut command = Command::new("mariadb-install-db");
            command.arg("--no-defaults").arg("--user=root").arg("--skip-test-db");
            command.arg("--auth-root-authentication-method=normal");
            command.arg(format!("--datadir={}", place.join("data").display()));
            command
        }),
        run: Box::new(move |place, settings| {
            let mut command = starts(place);
            command.arg("--skip-networking").arg("--server-id=1");
            if !is_mariadb {
                // Debian's folder for it is not made by unpacking.
                command.args(["--secure-file-priv=NULL", "--mysqlx=OFF"]);
            }
            command.arg(format!("--socket={}", place.join("socket").display()));
            command.arg(format!("--pid-file={}", place.join("pid").display()));
            command.args(settings);
            command
        }),
        ask: Box::new(|place, sql| {
            let mut command = Command::new("mariadb");
            command.args(["--no-defaults", "-u", "root", "-N", "-B", "-S"]);
            command.arg(place.join("socket"));
            if !sql.starts_with("CREATE DATABASE") && sql != "SELECT 1" {
                command.args(["-D", "d"]);
            }
            command.args(["-e", sql]);
            command
        }),
    }
}

const SYNCED: [&str; 2] = ["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=ON"];

fn with<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    [&SYNCED[..], settings].concat()
}

#[test]
fn mysql_and_mariadb_lose_what_their_settings_say() {
    if !can_emulate() {
        return;
    }
    let named = std::env::var("SPINDLE_SERVER_PROGRAM").ok();
    let is_mysql = std::env::var("SPINDLE_SERVER").is_ok_and(|it| it == "mysql");
    if std::env::var("SPINDLE_SERVER").is_ok_and(|it| it == "postgresql") {
        return;
    }
    if named.is_none() && !has_mariadb() {
        return;
    }
    let program = named.as_deref().unwrap_or("/usr/sbin/mariadbd");
    let kind = mysql_kind(program, !is_mysql);
    let binlog = ["--log-bin=binlog"];
    let no_binlog = ["--skip-log-bin"];
    let both = |more: &[&'static str]| -> Vec<&str> { with(&[&binlog[..], more].concat()) };
    let safe = [
        ("durable, without a binary log", with(&no_binlog)),
        ("durable, with a binary log", both(&["--sync-binlog=1"])),
    ];
    for (what, settings) in safe {
        let gone = lost(&kind, &settings, 3);
        println!("{what}: {gone} of 3 lost");
        assert_eq!(gone, 0, "{what}");
    }
    // MariaDB 11.8 takes nosync for fsync.
    let version = Command::new(program).arg("--version").output().unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let number = version.split("Ver ").nth(1).and_then(|it| it.split(['-', ' ']).next()).unwrap();
    let mut parts = number.split('.').map(|it| it.parse::<u32>().unwrap());
    let number = (parts.next().unwrap(), parts.next().unwrap());
    let nosync_loses = is_mysql || number < (11, 8);
    let losing = [
        (
            "the log is synced each second",
            vec!["--innodb-flush-log-at-trx-commit=2", "--skip-log-bin"],
            true,
        ),
        (
            "the log is written each second",
            vec!["--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"],
            true,
        ),
        ("the binary log is not synced", both(&["--sync-binlog=0"]), true),
        ("nosync", with(&["--skip-log-bin", "--innodb-flush-method=nosync"]), nosync_loses),
    ];
    for (what, settings, loses) in losing {
        let gone = lost(&kind, &settings, 3);
        println!("{what}: {gone} of 3 lost");
        assert_eq!(gone > 0, loses, "{what}");
    }
}

/// PostgreSQL, from its `postgres`.
fn postgresql_kind(program: &Path) -> Kind {
    let user = User::named(&Host::here(), "postgres").expect("a user postgres");
    let (uid, gid) = (user.uid, user.gid);
    let as_user = move |program: &Path| {
        let mut command = Command::new(program);
        command.uid(uid).gid(gid).current_dir("/");
        command
    };
    let folder = program.parent().unwrap().to_owned();
    let server = program.to_owned();
    Kind {
        log: tempfile::NamedTempFile::new().unwrap(),
        make: Box::new(move |place| {
            chown(place, Some(uid), Some(gid)).unwrap();
            let mut command = as_user(&folder.join("initdb"));
            command.args(["-A", "trust", "-U", "postgres", "-D"]).arg(place.join("data"));
            command
        }),
        run: Box::new(move |place, settings| {
            // Of a server that the power failure ended.
            let _ = std::fs::remove_file(place.join("data/postmaster.pid"));
            let mut command = as_user(&server);
            command.arg("-D").arg(place.join("data")).arg("-k").arg(place);
            command.args(["-c", "listen_addresses="]);
            command.args(settings);
            command
        }),
        ask: Box::new(|place, sql| {
            let mut command = Command::new("psql");
            command.args(["-U", "postgres", "-A", "-t", "-q", "-h"]).arg(place);
            let first = sql.starts_with("CREATE DATABASE") || sql == "SELECT 1";
            command.args(["-d", if first { "postgres" } else { "d" }, "-c", sql]);
            command
        }),
    }
}

#[test]
fn postgresql_loses_what_its_settings_say() {
    if !can_emulate() {
        return;
    }
    let named = std::env::var("SPINDLE_SERVER_PROGRAM").ok();
    if std::env::var("SPINDLE_SERVER").is_ok_and(|it| it != "postgresql") {
        return;
    }
    if named.is_none() && !has_postgresql() {
        return;
    }
    let installed = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap().flatten();
        versions.map(|it| it.path().join("bin/postgres")).max().unwrap()
    };
    let program = named.map_or_else(installed, PathBuf::from);
    let kind = postgresql_kind(&program);
    for (what, settings, loses) in [
        ("durable", vec!["-c", "synchronous_commit=on"], false),
        ("synchronous_commit=off", vec!["-c", "synchronous_commit=off"], true),
        ("fsync=off", vec!["-c", "fsync=off"], true),
    ] {
        let gone = lost(&kind, &settings, 3);
        println!("{what}: {gone} of 3 lost");
        assert_eq!(gone > 0, loses, "{what}");
    }
}
