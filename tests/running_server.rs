//! Databases on servers that somebody else runs.

use crate::{
    database::{SHORT, has_mariadb, has_postgresql, signal},
    machine::{Ended, Place},
};
use skipped::{Need, skip};
use std::{
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A MariaDB that somebody else runs, on a port of this host.
pub struct Foreign {
    child: Child,
    folder: PathBuf,
    port: u16,
}

/// A server's certificate for 127.0.0.1 and who issued it, and an authority that did not.
struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// None without openssl.
    fn make(place: &Place) -> Option<Certificates> {
        let folder = place.path().join("certificates");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        let openssl = |words: &str| {
            let mut command = Command::new("openssl");
            command.args(words.split(' ')).current_dir(&folder).stderr(Stdio::null());
            command.stdout(Stdio::null()).status()
        };
        for authority in ["ca", "other"] {
            let words = format!(
                "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=Test-{authority} \
                 -keyout {authority}.key -out {authority}.pem"
            );
            match openssl(&words) {
                Ok(made) => assert!(made.success()),
                Err(error) => {
                    skip(Need::Program, &format!("openssl: {error}"));
                    return None;
                }
            }
        }
        std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1").unwrap();
        let request =
            "req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr";
        assert!(openssl(request).unwrap().success());
        let sign = "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                    -extfile names -out server.pem";
        assert!(openssl(sign).unwrap().success());
        Some(Certificates { folder })
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

impl Foreign {
    pub fn start(place: &Place) -> Foreign {
        Foreign::start_with(place, &[])
    }

    fn start_with(place: &Place, more: &[String]) -> Foreign {
        let folder = place.path().join("foreign");
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
        let data = format!("--datadir={}", folder.join("data").display());
        let root = rustix::process::getuid().is_root().then_some("--user=root");
        let made = Command::new("mariadb-install-db")
            .args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"])
            .arg(&data)
            .args(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = Command::new("/usr/sbin/mariadbd")
            .arg("--no-defaults")
            .arg(&data)
            .arg(format!("--socket={}", folder.join("socket").display()))
            .args(["--bind-address=127.0.0.1", &format!("--port={port}")])
            .args(more)
            .args(root)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let foreign = Foreign { child, folder, port };
        let begun = Instant::now();
        while foreign.sql("SELECT 1").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        let user = "CREATE USER me@localhost IDENTIFIED BY 'open sesame'; \
                    GRANT ALL ON *.* TO me@localhost; CREATE DATABASE mine; \
                    CREATE DATABASE empty";
        foreign.sql(user).unwrap();
        foreign
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub fn sql(&self, text: &str) -> Option<String> {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-u", "root", "-N", "-B"])
            .arg(format!("--socket={}", self.folder.join("socket").display()))
            .args(["-e", text])
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    fn compare(&self, place: &Place, database: &str, words: &[&str]) -> Ended {
        let url = format!("server=mysql://me@127.0.0.1:{}/{database}", self.port);
        let workload = format!("oltp_read_write,tables=2,rows=2000,clients=2,{url}");
        let folder = place.scratch();
        let all = [&["compare", folder.to_str().unwrap(), "--workload", &workload][..], words];
        let all = [&all.concat()[..], &["--placebo", "1"], &SHORT].concat();
        let mut command = place.spindle(&all);
        Ended::of(command.env("SPINDLE_DATABASE_PASSWORD", "open sesame").output().unwrap())
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_that_runs_already_is_used_and_left_as_it_was() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let foreign = Foreign::start(&place);
    let ended = foreign.compare(&place, "empty", &[]).expect(0);
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Spindle did not start the server"), "{text}");
    assert!(!text.contains("sesame"), "{text}");
    assert_eq!(foreign.sql("SHOW TABLES IN empty").unwrap(), "");
    // Through its socket file as well.
    let socket = foreign.folder.join("socket");
    foreign.compare(&place, &format!("empty?socket={}", socket.display()), &[]).expect(0);
    // What somebody has there is neither used nor touched without consent.
    foreign.sql("CREATE TABLE mine.dear (x INT); INSERT INTO mine.dear VALUES (7)").unwrap();
    let refused = foreign.compare(&place, "mine", &[]).expect(2);
    refused.complains_of(&["that Spindle did not make", "dear", "--use-existing"]);
    assert_eq!(foreign.sql("SELECT x FROM mine.dear").unwrap().trim(), "7");
    // With consent its tables of the workload's names are used as they are, and stay.
    let socket = format!("--mysql-socket={}", foreign.folder.join("socket").display());
    let prepared = Command::new("sysbench")
        .args(["oltp_read_write", &socket, "--mysql-user=root", "--mysql-db=mine"])
        .args(["--tables=2", "--table-size=2000", "prepare"])
        .output();
    if let Ok(prepared) = prepared {
        assert!(prepared.status.success());
        foreign.compare(&place, "mine", &["--use-existing"]).expect(0);
        assert_eq!(foreign.sql("SHOW TABLES IN mine").unwrap(), "dear\nsbtest1\nsbtest2\n");
    }
    let settings = foreign.compare(&place, "empty", &["--variable", "innodb_io_capacity=7"]);
    settings.expect(2).complains_of(&["set it there yourself"]);
}

/// A PostgreSQL that somebody else runs, on a port of this host.
struct ForeignPostgreSql {
    child: Child,
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
}

impl ForeignPostgreSql {
    pub fn start(place: &Place) -> ForeignPostgreSql {
        ForeignPostgreSql::start_with(place, None)
    }

    /// With certificates it lets nobody in who does not encrypt.
    fn start_with(place: &Place, certificates: Option<&Certificates>) -> ForeignPostgreSql {
        let folder = place.path().join("foreign");
        std::fs::create_dir(&folder).unwrap();
        // It refuses root, and must be let through to its folder.
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o711)).unwrap();
        let root = rustix::process::getuid().is_root();
        let id = |what: &str| -> u32 {
            let output = Command::new("id").args([what, "postgres"]).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
        };
        let user = root.then(|| (id("-u"), id("-g")));
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let newest = std::fs::read_dir("/usr/lib/postgresql")
            .unwrap()
            .flatten()
            .max_by_key(|it| it.file_name().to_string_lossy().parse::<u32>().unwrap_or_default());
        let programs = newest.unwrap().path().join("bin");
        let command = |name: &str| {
            let mut command = Command::new(programs.join(name));
            if let Some((uid, gid)) = user {
                command.uid(uid).gid(gid);
            }
            command.arg("-D").arg(folder.join("data")).current_dir("/");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let made = command("initdb")
            .args(["-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256"])
            .args(["--no-sync", "--locale=C", "--encoding=UTF8"])
            .status();
        assert!(made.unwrap().success());
        let mut encryption = Vec::new();
        if let Some(certificates) = certificates {
            let (key, rules) = (certificates.file("server.key"), folder.join("data/pg_hba.conf"));
            std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
            if let Some((uid, gid)) = user {
                std::os::unix::fs::chown(&key, Some(uid), Some(gid)).unwrap();
            }
            let text = std::fs::read_to_string(&rules).unwrap().replace("\nhost ", "\nhostssl ");
            std::fs::write(&rules, text).unwrap();
            let file = format!("ssl_cert_file={}", certificates.file("server.pem"));
            let words = ["ssl=on".to_owned(), file, format!("ssl_key_file={key}")];
            encryption.extend(words.into_iter().flat_map(|word| ["-c".to_owned(), word]));
        }
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = command("postgres")
            .args(["-c", "listen_addresses=127.0.0.1", "-c", &format!("port={port}"), "-c"])
            .arg(format!("unix_socket_directories={}", folder.display()))
            .args(encryption)
            .spawn()
            .unwrap();
        let foreign = ForeignPostgreSql { child, folder, programs, port };
        let begun = Instant::now();
        while foreign.sql("postgres", "SELECT 1").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        foreign.sql("postgres", "CREATE ROLE me LOGIN PASSWORD 'open sesame'").unwrap();
        for database in ["mine", "empty"] {
            foreign.sql("postgres", &format!("CREATE DATABASE {database} OWNER me")).unwrap();
        }
        foreign
    }

    pub fn sql(&self, database: &str, text: &str) -> Option<String> {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", database, "-c", text])
            .arg("-h")
            .arg(&self.folder)
            .args(["-p", &self.port.to_string()])
            .output()
            .unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    fn tables(&self, database: &str) -> String {
        let of_users = "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_stat_user_tables";
        self.sql(database, of_users).unwrap()
    }

    fn compare(&self, place: &Place, database: &str, words: &[&str], password: &str) -> Ended {
        let url = format!("server=postgresql://me@127.0.0.1:{}/{database}", self.port);
        let workload = format!("oltp_read_only,tables=2,rows=2000,clients=2,{url}");
        let folder = place.scratch();
        let all = [&["compare", folder.to_str().unwrap(), "--workload", &workload][..], words];
        let all = [&all.concat()[..], &["--placebo", "1"], &SHORT].concat();
        let mut command = place.spindle(&all);
        Ended::of(command.env("SPINDLE_DATABASE_PASSWORD", password).output().unwrap())
    }
}

impl Drop for ForeignPostgreSql {
    fn drop(&mut self) {
        // An immediate shutdown, which leaves no shared memory behind.
        signal(self.child.id(), rustix::process::Signal::QUIT);
        let _ = self.child.wait();
    }
}

#[test]
fn a_postgresql_that_runs_already_is_used_and_left_as_it_was() {
    if !has_postgresql() {
        return;
    }
    let place = Place::new();
    let foreign = ForeignPostgreSql::start(&place);
    let ended = foreign.compare(&place, "empty", &[], "open sesame").expect(0);
    let text = ended.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Spindle did not start the server"), "{text}");
    assert!(!text.contains("sesame"), "{text}");
    assert_eq!(foreign.tables("empty"), "");
    // Through its socket's folder as well.
    let socket = foreign.folder.display().to_string().replace('/', "%2F");
    let url = format!("server=postgresql://me@{socket}:{}/empty", foreign.port);
    let workload = format!("oltp_read_only,tables=1,rows=1000,{url}");
    let folder = place.scratch();
    place.run(&["plan", folder.to_str().unwrap(), "--workload", &workload]).expect(0);
    let refused = foreign.compare(&place, "empty", &[], "wrong").expect(2);
    refused.complains_of(&["password authentication failed", "SPINDLE_DATABASE_PASSWORD"]);
    // What somebody has there is neither used nor touched without consent.
    let theirs = "SET ROLE me; CREATE TABLE dear (x INT); INSERT INTO dear VALUES (7)";
    foreign.sql("mine", theirs).unwrap();
    let refused = foreign.compare(&place, "mine", &[], "open sesame").expect(2);
    refused.complains_of(&["that Spindle did not make", "dear", "--use-existing"]);
    assert_eq!(foreign.tables("mine"), "dear");
    // With consent its tables of the workload's names, here sysbench's, are used and stay.
    let prepared = Command::new("sysbench")
        .args(["oltp_read_only", "--db-driver=pgsql", "--pgsql-host=127.0.0.1"])
        .args([&format!("--pgsql-port={}", foreign.port), "--pgsql-user=me", "--pgsql-db=mine"])
        .args(["--pgsql-password=open sesame", "--tables=2", "--table-size=2000", "prepare"])
        .output();
    if let Ok(prepared) = prepared {
        assert!(prepared.status.success(), "{}", String::from_utf8_lossy(&prepared.stdout));
        foreign.compare(&place, "mine", &["--use-existing"], "open sesame").expect(0);
        assert_eq!(foreign.tables("mine"), "dear sbtest1 sbtest2");
    }
    assert_eq!(foreign.sql("mine", "SELECT x FROM dear").unwrap(), "7");
}

#[test]
fn a_connection_is_encrypted_and_its_server_verified_as_the_url_asks() {
    if !has_mariadb() {
        return;
    }
    let place = Place::new();
    let Some(certificates) = Certificates::make(&place) else { return };
    let words = [("ssl-cert", "server.pem"), ("ssl-key", "server.key")];
    let words = words.map(|(name, file)| format!("--{name}={}", certificates.file(file)));
    let foreign = Foreign::start_with(&place, &words);
    foreign.sql("ALTER USER me@localhost REQUIRE SSL").unwrap();
    let compare = |parameters: &str| foreign.compare(&place, &format!("empty{parameters}"), &[]);
    compare("").expect(2).complains_of(&["Access denied"]);
    compare("?ssl-mode=REQUIRED").expect(0);
    let accepted = foreign.sql("SHOW GLOBAL STATUS LIKE 'Ssl_accepts'").unwrap();
    let accepted: u64 = accepted.split_whitespace().last().unwrap().parse().unwrap();
    assert!(accepted > 4, "{accepted} encrypted connections");
    let (right, wrong) = (certificates.file("ca.pem"), certificates.file("other.pem"));
    compare(&format!("?ssl-mode=VERIFY_IDENTITY&ssl-ca={right}")).expect(0);
    let refused = compare(&format!("?ssl-mode=VERIFY_CA&ssl-ca={wrong}")).expect(2);
    refused.complains_of(&["certificate", "UnknownIssuer"]);
    compare("?ssl-mode=VERIFY_CA").expect(2).complains_of(&["needs the file", "ssl-ca=FILE"]);
    compare("?ssl-mode=maybe").expect(2).complains_of(&["not supported", "VERIFY_IDENTITY"]);
    assert_eq!(foreign.sql("SHOW TABLES IN empty").unwrap(), "");
}

#[test]
fn a_connection_to_postgresql_is_encrypted_and_its_server_verified_as_the_url_asks() {
    if !has_postgresql() {
        return;
    }
    let place = Place::new();
    let Some(certificates) = Certificates::make(&place) else { return };
    let foreign = ForeignPostgreSql::start_with(&place, Some(&certificates));
    let compare = |parameters: &str| {
        foreign.compare(&place, &format!("empty{parameters}"), &[], "open sesame")
    };
    compare("").expect(2).complains_of(&["no encryption"]);
    let (right, wrong) = (certificates.file("ca.pem"), certificates.file("other.pem"));
    compare("?sslmode=require").expect(0);
    for mode in ["verify-ca", "verify-full"] {
        compare(&format!("?sslmode={mode}&sslrootcert={right}")).expect(0);
        let refused = compare(&format!("?sslmode={mode}&sslrootcert={wrong}")).expect(2);
        refused.complains_of(&["certificate", "UnknownIssuer"]);
    }
    compare("?sslmode=verify-full").expect(2).complains_of(&["sslrootcert=FILE"]);
    assert_eq!(foreign.tables("empty"), "");
}
